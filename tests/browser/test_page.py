"""The page at rest, at its ends, and without a server."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from compiler.text import Message, render

from .conftest import Complaints
from .driving import await_end, click_line, look, open_stage, paste, recorded, start, until

pytestmark = pytest.mark.browser


def test_opens_on_a_finished_example(page: Page, service: str) -> None:
    page.goto(service)
    expect(page.locator(".page")).to_have_attribute("data-status", "finished")
    page.locator(".graph[data-ready=true] canvas").wait_for()
    until(page, "Number(document.querySelector('.graph canvas').dataset.drawn) > 5")
    expect(page.locator(".tl canvas")).to_have_attribute("aria-valuetext", re.compile("Peak"))


def test_what_a_run_may_use_is_said(page: Page, service: str) -> None:
    health = httpx.get(f"{service}/api/v1/health").json()
    page.goto(service)
    page.locator("footer button").click()
    sheet = page.get_by_role("dialog", name="What a run may use")
    expect(sheet.locator("tr")).to_have_count(len(health["limits"]))
    for row, value in (
        ("time of the whole run", f"{health['limits']['run_seconds']:g} s"),
        ("memory", f"{health['limits']['memory_bytes'] / 2**30:g} GiB"),
        ("processes at the same time", str(health["limits"]["processes"])),
    ):
        expect(sheet.get_by_role("row", name=row)).to_contain_text(value)
    for layer in ("isolation", "outer"):
        expect(sheet).to_contain_text(render(Message.model_validate(health[layer])))
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)


def test_a_syntax_error_is_told_at_its_line(page: Page, service: str) -> None:
    page.goto(service)
    paste(page, "import torch\nmodel = = 3\n")
    start(page)
    assert await_end(page) == "failed"
    banner = page.locator(".banner[data-ending=failed]")
    expect(banner).to_contain_text("line 2")
    expect(page.locator("[data-pane=source] .l-err")).to_have_text("model = = 3")
    expect(page.locator("[data-pane=source] .cm-content")).to_contain_text("import torch")


def test_an_endless_loop_is_cancelled(page: Page, service: str) -> None:
    page.goto(service)
    paste(page, "import torch\nwhile True:\n    pass\n")
    start(page)
    page.wait_for_selector(".page[data-status=running]")
    page.get_by_role("button", name="Cancel").click()
    assert await_end(page) == "cancelled"
    expect(page.locator("button.run")).to_contain_text("Run")
    expect(page.locator("[data-stage=source]")).to_have_attribute("data-status", "skipped")


def test_the_graph_by_keyboard(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service)}#stage=partition")
    canvas = page.locator(".graph[data-ready=true] canvas")
    canvas.focus()
    page.keyboard.press("/")
    page.get_by_role("textbox", name="name, operator or module").fill("softmax")
    page.keyboard.press("Enter")
    title = page.locator(".ins h2")
    expect(title).not_to_have_text("This run")
    first = title.inner_text()
    page.keyboard.press("Escape")
    expect(canvas).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(title).not_to_have_text(first)
    page.keyboard.press("Escape")
    expect(title).to_have_text("This run")


def test_keys_can_be_switched_off_and_never_work_in_the_editor(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service)}#stage=joint")
    page.locator("main .bar").wait_for()
    page.locator("[data-pane=source] .cm-content").click()
    page.keyboard.press("ArrowRight")
    page.locator("main .bar").click()
    page.keyboard.press("ArrowRight")
    expect(page.locator("main")).to_have_attribute("data-view", "joint_passes")  # One stage on, not two.
    page.keyboard.press("?")
    page.get_by_label("Keys are on").uncheck()
    page.get_by_role("button", name="Close").click()
    page.locator("main .bar").click()
    page.keyboard.press("ArrowRight")
    page.locator("header button[aria-expanded]").last.click()
    page.get_by_label("Keys are on").check()
    page.get_by_role("button", name="Close").click()
    page.locator("main .bar").click()
    page.keyboard.press("ArrowRight")
    expect(page.locator("main")).to_have_attribute("data-view", "partition")


def test_both_languages_and_both_themes(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service)}?lang=zh&theme=dark#stage=partition")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("[data-stage=partition]")).to_contain_text("划分")
    expect(page.locator("header select").first.locator("option:checked")).to_have_text("Transformer 块")
    page.get_by_title("English").click()
    expect(page.locator("header select").first.locator("option:checked")).to_have_text("Transformer block")
    expect(page.locator("[data-stage=partition]")).to_contain_text("partition")


def test_embedded_is_read_only(page: Page, service: str) -> None:
    page.goto(f"{service}/embed/{recorded(service)}#stage=partition")
    page.locator(".graph[data-ready=true]").wait_for()
    expect(page.locator("header.top")).to_have_count(0)
    expect(page.locator("[data-pane=source] .cm-content")).to_have_attribute("contenteditable", "false")


def test_one_file_opens_without_a_server(page: Page, service: str, tmp_path: Path) -> None:
    run = recorded(service)
    place = "#stage=codegen"
    page.goto(f"{service}/r/{run}{place}")
    page.locator("[data-kernel]").first.click()
    until(page, "document.querySelector('.pk .row')?.innerText.startsWith('addmm') ?? false")
    served = look(page)
    file = tmp_path / "run.html"
    file.write_text(httpx.get(f"{service}/api/v1/runs/{run}/report.html", timeout=60).text, encoding="utf-8")
    page.goto(f"{file.as_uri()}{served.hash}")
    page.locator("[data-kernel][aria-selected=true]").first.wait_for()
    until(page, "document.querySelector('.pk .row')?.innerText.startsWith('addmm') ?? false")
    assert look(page) == served
    open_stage(page, "partition", "graph")
    page.locator(".graph[data-ready=true]").wait_for()


def test_an_unknown_run_is_told(page: Page, service: str, complaints: Complaints) -> None:
    complaints.provoked = "404"
    page.goto(f"{service}/r/nothing-here")
    expect(page.locator(".banner")).to_contain_text("There is no such run here.")


def test_a_click_on_a_moment_and_on_a_line(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service)}#stage=partition")
    page.locator(".graph[data-ready=true]").wait_for()
    strip = page.locator(".tl canvas")
    expect(strip).to_have_attribute("aria-valuetext", re.compile("Peak"))
    strip.focus()
    page.keyboard.press("Home")
    expect(strip).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("ArrowRight")
    expect(strip).to_have_attribute("aria-valuenow", "1")
    expect(page).to_have_url(re.compile("point=1"))
    page.keyboard.press("p")
    page.locator(".pk .row").first.click()
    expect(page.locator(".pk .row").first).to_have_class("row sel")
    line = int(page.locator(".ins dd .lnk").first.inner_text())
    click_line(page, line)
    expect(page.locator(".ins h2")).to_have_text(f"line {line}")
