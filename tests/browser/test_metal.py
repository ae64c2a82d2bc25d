"""A kernel for a GPU that is not there, in the browser: from a line of the model to machine code, forward and backward."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from server.targets import served

from .driving import await_end, click_line, open_stage, paste, start

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif("sm_90" not in served(), reason="virtual GPUs cannot be had here"),
]

MODEL = """\
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 512)

    def forward(self, x):
        h = self.up(x)
        h = torch.softmax(h, -1)
        return h.sin()


model = Net()
inputs = (torch.randn(64, 16),)
"""
SOFTMAX = MODEL.splitlines().index("        h = torch.softmax(h, -1)") + 1
LIT = "[data-code$='/{level}'] .cm-line.l-sel"


def _run_for(page: Page, service: str, target: str) -> str:
    """Run the model for a target, as a person does; the run's id."""
    page.goto(service)
    page.locator("header select", has=page.locator(f"option[value={target}]")).select_option(target)
    paste(page, MODEL)
    start(page)
    assert await_end(page, 300) == "finished"
    return str(page.evaluate("location.pathname.split('/').pop()"))


def _answer(service: str, run: str, kernel: str) -> dict[str, Any]:
    """What the page asked for, asked again: the finished run of the same question."""
    derived = httpx.post(f"{service}/api/v1/runs/{run}/kernels", json={"kernel": kernel}).json()
    assert derived["reused"]
    (compiled,) = httpx.get(f"{service}/api/v1/runs/{derived['id']}/document").json()["compiles"]
    payload: dict[str, Any] = compiled["stages"][0]["artifacts"][0]["payload"]
    return payload


def _lines_of(answer: dict[str, Any], name: str, entity: str) -> list[str]:
    """The lines of a level that are marked with an entity."""
    code = next(level["code"] for level in answer["levels"] if level["name"] == name)
    text, marks = code["text"].split("\n"), code["marks"]
    at = sorted(
        {line for line, of in zip(marks["line"], marks["entity"], strict=True) if code["strings"][of] == entity}
    )
    return [text[line - 1] for line in at]


def _lit(page: Page, level: str) -> list[str]:
    page.locator(f"[role=tab][data-tab={level}]").click()
    page.locator(LIT.format(level=level)).first.wait_for()
    return page.locator(LIT.format(level=level)).all_inner_texts()


@pytest.mark.timeout(900)
def test_a_line_of_the_model_lights_its_machine_code_forward_and_backward(page: Page, service: str) -> None:
    run = _run_for(page, service, "sm_90")
    open_stage(page, "codegen")
    click_line(page, SOFTMAX)
    seen = set()
    for graph in ("forward", "backward"):
        page.locator(f"[role=tab][data-tab={graph}]").click()
        # The kernel that the line reaches is the one whose levels are shown.
        page.locator("[role=tab][data-tab=triton]").click()
        shown = page.locator("[data-metal]")
        shown.wait_for()
        kernel = shown.get_attribute("data-metal") or ""
        assert f"/codegen/{graph}/triton_" in kernel
        assert "softmax" in kernel
        answer = _answer(service, run, kernel)
        for level in ("triton", "ptx", "sass"):
            lit = _lit(page, level)
            due = _lines_of(answer, level, f"line/{SOFTMAX}")
            # The editor draws what is in sight: of the lines that come from this one, and of no other.
            assert set(lit) <= set(due)
            seen.add((graph, level, len(lit) > 0, len(due) > 1))
        expect(page.locator("[data-pane=source] .l-sel")).to_have_text("        h = torch.softmax(h, -1)")
    assert seen == {
        (graph, level, True, True) for graph in ("forward", "backward") for level in ("triton", "ptx", "sass")
    }

    # And back: from a line of PTX to the line of the model.
    page.locator("[role=tab][data-tab=ptx]").click()
    page.locator("main .bar").first.click()
    line = page.locator(LIT.format(level="ptx")).first
    line.click()
    expect(page.locator("[data-pane=source] .l-sel").first).to_be_visible()

    # The address holds it: another visitor sees the same kernel and level.
    expect(page.locator("[role=tab][data-tab=ptx]")).to_have_attribute("aria-selected", "true")
    page.goto(page.url)
    page.reload()
    expect(page.locator("[data-metal]")).to_have_attribute("data-metal", kernel)
    expect(page.locator("[role=tab][data-tab=ptx]")).to_have_attribute("aria-selected", "true")
