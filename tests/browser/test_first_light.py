"""Paste a model, watch every stage arrive, step, select, share, change."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import Complaints, watch
from .driving import STAGES, await_end, click_line, look, open_stage, paste, start, until

pytestmark = pytest.mark.browser

MODEL = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.up = nn.Linear(16, width)
        self.down = nn.Linear(width, 16)

    def forward(self, x):
        h = F.gelu(self.up(x))
        return self.down(h)


model = Net()
inputs = (torch.randn(8, 16, requires_grad=True),)
print("made", sum(p.numel() for p in model.parameters()))
"""
UP = MODEL.splitlines().index("        h = F.gelu(self.up(x))") + 1

SAME_TENSORS = """(tensors) => {
  const rows = [...document.querySelectorAll('.pk .row.sel')].map((row) => row.innerText);
  return JSON.stringify(rows) === JSON.stringify(tensors);
}"""


@pytest.mark.timeout(600)
def test_a_model_from_paste_to_permalink(page: Page, browser: Browser, service: str, complaints: Complaints) -> None:
    page.goto(service)
    paste(page, MODEL)
    start(page)
    assert await_end(page, 240) == "finished"
    assert page.evaluate("window.finished") == STAGES

    open_stage(page, "source")
    expect(page.locator("[data-pane=printed]")).to_have_text("made 1600\n")
    page.locator("main .bar").click()
    for stage in STAGES[1:]:
        page.keyboard.press("ArrowRight")
        expect(page.locator("main")).to_have_attribute("data-view", stage)
        expect(page.locator(f"[data-stage={stage}]")).to_have_attribute("aria-current", "true")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("main")).to_have_attribute("data-view", "execute")

    open_stage(page, "partition", "graph")
    page.locator(".graph[data-ready=true]").wait_for()
    click_line(page, UP)
    until(page, "Number(document.querySelector('.graph canvas').dataset.marked) > 2")
    open_stage(page, "codegen")
    page.locator("[data-kernel][aria-selected=true]").first.wait_for()
    page.locator("[data-code] .l-sel").first.wait_for()
    before = look(page)
    assert before.lines == ["        h = F.gelu(self.up(x))"]
    assert any("gelu" in kernel for kernel in before.kernels)
    assert all(f"line {UP}" in tensor for tensor in before.tensors)

    elsewhere = browser.new_context(viewport={"width": 1280, "height": 720})
    other = elsewhere.new_page()
    watch(other, complaints)
    other.goto(page.url)
    other.locator("[data-kernel][aria-selected=true]").first.wait_for()
    until(other, SAME_TENSORS, before.tensors)
    assert look(other) == before
    elsewhere.close()

    figures = _figures(page)
    paste(page, MODEL.replace("width=48", "width=96"))
    expect(page.get_by_text("edited since the run")).to_be_visible()
    page.get_by_role("button", name="g++ ✓").click()
    page.locator("[data-pane=source] .cm-content").click()
    start(page)
    assert await_end(page) == "finished"
    changed = _figures(page)
    assert {name for name in figures if figures[name] == changed[name]} == set()
    assert "f32[8, 96]" in changed["shapes"]
    assert "f32[8, 48]" in figures["shapes"]


def _figures(page: Page) -> dict[str, str]:
    """Shapes, saved bytes, kernel source and timeline, as the page shows them."""
    open_stage(page, "dynamo", "table")
    expect(page.locator("main tbody tr").nth(2)).to_be_visible()
    shapes = page.locator("main tbody").inner_text()
    open_stage(page, "partition", "graph")
    saved = page.locator(".chip", has_text="saved").inner_text()
    open_stage(page, "codegen")
    page.locator("[data-code] .cm-line").first.wait_for()
    kernel = page.locator("[data-kernel]").first
    kernel.click()
    page.locator("[data-code] .l-sel").first.wait_for()
    source = page.locator("[data-code] .cm-content").inner_text()
    timeline = page.locator(".tl canvas").get_attribute("aria-valuetext") or ""
    return {"shapes": shapes, "saved": saved, "source": source, "timeline": timeline}
