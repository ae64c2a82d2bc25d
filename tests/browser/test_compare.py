"""Two runs held against each other, as a person sees it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from .conftest import Complaints
from .driving import until

PAIR = "/compare/example-two-layer-net/example-training-script"


def test_two_runs_are_compared_and_the_address_keeps_what_is_seen(page: Page, service: str) -> None:
    page.goto(f"{service}{PAIR}")
    page.locator(".cmp[data-status=ready]").wait_for()
    expect(page.locator("[data-equal]")).to_have_attribute("data-equal", "false")
    page.locator("[data-compared=joint]").click()
    page.locator("[data-row=added]").first.wait_for()
    expect(page.locator("[data-counts]")).to_have_text(re.compile(r"^\+\d+ −\d+ ~\d+ =\d+$"))
    until(page, "() => location.hash === '#stage=joint&compile=0'")
    page.locator("[data-compared=codegen]").click()
    page.locator(".diff .add").first.wait_for()
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.locator(".diff .add").first.wait_for()
    expect(page.locator("[data-compared=codegen]")).to_have_attribute("aria-current", "true")


def test_a_run_and_itself_are_equal(page: Page, service: str) -> None:
    page.goto(f"{service}/compare/example-dropout/example-dropout")
    page.locator("[data-equal=true]").wait_for()
    expect(page.locator("[data-compared]").first).to_be_visible()
    expect(page.locator("[data-compared] >> text=≠")).to_have_count(0)


def test_an_unknown_run_is_said(page: Page, service: str, complaints: Complaints) -> None:
    complaints.provoked = "404"
    page.goto(f"{service}/compare/nope/example-dropout")
    expect(page.locator(".cmp [role=alert]")).to_contain_text("nope")


def test_from_a_run_to_the_comparison_with_the_one_before(page: Page, service: str) -> None:
    page.goto(f"{service}/r/example-dropout")
    page.locator(".page[data-status=finished]").wait_for()
    page.locator("select").first.select_option("two_layer_net")
    until(page, "() => document.querySelector('.page').dataset.run === 'example-two-layer-net'")
    page.locator(".page[data-status=finished]").wait_for()
    page.locator("[popovertarget=compare]").click()
    page.locator("#compare a[href='/compare/example-dropout/example-two-layer-net']").click()
    page.locator(".cmp[data-status=ready]").wait_for()
