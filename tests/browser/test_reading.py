"""Reading a finished run: what opens where, how figures came about, where findings lead, and what can be taken along."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from .driving import open_stage, recorded, until

pytestmark = pytest.mark.browser

WIDER_THAN_THE_WINDOW = """() => [...document.querySelectorAll('header *, nav *, main .bar *, .say, aside, .tl, .pk, footer *')]
  .filter((part) => part.getBoundingClientRect().right > innerWidth + 1 && !part.closest('[popover]'))
  .map((part) => `${part.tagName}.${part.className}`)"""


def test_code_opens_at_a_kernel_and_goes_to_the_picked_one(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service)}#stage=codegen")
    text = page.locator("[data-code] .cm-content")
    expect(text).to_contain_text('extern "C"')
    expect(text).not_to_contain_text("from ctypes import")
    kernel = page.locator("[data-kernel^=cpp_fused]").last
    kernel.click()
    expect(text).to_contain_text(f"{kernel.get_attribute('data-kernel')} = async_compile")
    expect(page.locator("[data-code] .l-sel").first).to_be_visible()


def test_a_figure_tells_how_it_came_about_by_keyboard(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service)}#stage=partition&line=25")
    chip = page.locator(".chip", has_text="saved")
    chip.focus()
    page.keyboard.press("Enter")
    told = page.locator(".pop:popover-open")
    expect(told).to_contain_text("held by autograd, measured")
    expect(told.locator(".checks b")).to_have_text(["✓", "✓"])
    page.keyboard.press("Escape")
    expect(page.locator(".pop:popover-open")).to_have_count(0)
    expect(page.locator(".ins h2")).to_have_text("line 25")


def test_findings_lead_to_the_line_and_the_evidence(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service, 'graph_breaks')}#stage=partition")
    page.locator("header").get_by_role("button", name="findings").click()
    first = page.locator(".finding").first
    expect(first).to_have_attribute("data-severity", "warning")
    expect(first).to_contain_text("What to try:")
    first.locator(".at").click()
    expect(page.locator("[data-pane=source] .l-sel")).to_contain_text("s.item()")
    first.get_by_role("button", name="see it in dynamo").click()
    expect(page.locator(".finding")).to_have_count(0)
    expect(page.locator("[role=tab][data-tab=breaks]")).to_have_attribute("aria-selected", "true")
    expect(page.locator("article.card.sel").first).to_contain_text("Tensor.item()")


def test_the_graph_and_the_run_are_exported(page: Page, service: str) -> None:
    run = recorded(service)
    page.goto(f"{service}/r/{run}#stage=partition")
    page.locator(".graph[data-ready=true]").wait_for()
    heads = {}
    for kind, entry in {"svg": "SVG", "dot": "DOT", "png": "PNG", "html": "HTML", "json": "JSON"}.items():
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.locator("#export :is(a, button)").filter(has_text=entry).click()
        assert download.value.suggested_filename.endswith(f".{kind}")
        heads[kind] = download.value.path().read_bytes()
    assert heads["png"].startswith(b"\x89PNG")
    assert b"<svg" in heads["svg"][:400]
    assert heads["dot"].startswith(b"digraph")
    assert b'id="aotscope-recording"' in heads["html"]
    assert json.loads(heads["json"])["run"]["id"] == run


def test_a_neighbourhood_and_the_small_map(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service, 'gpt_stack')}#stage=partition&node=0_0/partition/forward/addmm_5")
    until(page, "Number(document.querySelector('.graph canvas')?.dataset.marked) > 0")
    page.locator(".graph canvas").focus()
    page.keyboard.press("n")
    near = page.get_by_role("button", name="neighbours")
    expect(near).to_have_text("neighbours: 1")
    until(page, "Number(document.querySelector('.graph canvas').dataset.near) > 1")
    for _ in range(3):
        page.keyboard.press("n")
    expect(near).to_have_text("neighbours")
    until(page, "document.querySelector('.graph canvas').dataset.near === ''")


def test_nothing_is_cut_off_on_a_phone(page: Page, service: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{service}/r/{recorded(service)}#stage=partition")
    page.locator(".graph[data-ready=true]").wait_for()
    for stage in ("partition", "codegen", "dynamo", "memory"):
        open_stage(page, stage)
        assert page.evaluate(WIDER_THAN_THE_WINDOW) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 390
