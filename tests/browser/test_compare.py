"""Two runs held against each other, as a person sees it."""

from __future__ import annotations

import re

from playwright.sync_api import Page

from tests.browser.driving import until

PAIR = "/compare/example-two-layer-net/example-training-script"


def test_two_runs_are_compared_and_the_address_keeps_what_is_seen(page: Page, service: str) -> None:
    page.goto(f"{service}{PAIR}")
    page.locator(".cmp[data-status=ready]").wait_for()
    assert page.locator("[data-equal]").get_attribute("data-equal") == "false"
    page.locator("[data-compared=joint]").click()
    assert page.locator("[data-row=added]").count() > 0
    counts = page.locator("[data-counts]").inner_text()
    assert re.fullmatch(r"\+\d+ −\d+ ~\d+ =\d+", counts)
    until(page, "() => location.hash === '#stage=joint&compile=0'")
    page.locator("[data-compared=codegen]").click()
    page.locator(".diff .add").first.wait_for()
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.locator(".diff .add").first.wait_for()
    assert page.locator("[data-compared=codegen]").get_attribute("aria-current") == "true"


def test_a_run_and_itself_are_equal(page: Page, service: str) -> None:
    page.goto(f"{service}/compare/example-dropout/example-dropout")
    page.locator("[data-equal=true]").wait_for()
    assert page.locator("[data-compared] >> text=≠").count() == 0


def test_an_unknown_run_is_said(page: Page, service: str, complaints: list[str]) -> None:
    page.goto(f"{service}/compare/nope/example-dropout")
    page.locator(".cmp [role=alert]").wait_for()
    assert "nope" in page.locator(".cmp [role=alert]").inner_text()
    # The browser itself complains of the two answers that are 404.
    assert all("404" in said for said in complaints)
    complaints.clear()


def test_from_a_run_to_the_comparison_with_the_one_before(page: Page, service: str) -> None:
    page.goto(f"{service}/r/example-dropout")
    page.locator(".page[data-status=finished]").wait_for()
    page.locator("select").first.select_option("two_layer_net")
    until(page, "() => document.querySelector('.page').dataset.run === 'example-two-layer-net'")
    page.locator(".page[data-status=finished]").wait_for()
    page.locator("[popovertarget=compare]").click()
    page.locator("#compare a[href='/compare/example-dropout/example-two-layer-net']").click()
    page.locator(".cmp[data-status=ready]").wait_for()
