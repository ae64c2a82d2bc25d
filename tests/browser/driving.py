"""What a person does on the page, for the tests."""

from __future__ import annotations

import time
from dataclasses import dataclass

import httpx
from playwright.sync_api import Page

STAGES = [
    "source",
    "dynamo",
    "pre_grad",
    "joint",
    "joint_passes",
    "partition",
    "post_grad",
    "schedule",
    "fusion",
    "codegen",
    "memory",
    "execute",
    "cache",
]
DONE = "ok|changed|unchanged|skipped|failed"

_PASTE = """(text) => {
  const data = new DataTransfer();
  data.setData('text/plain', text);
  document.querySelector('[data-pane=source] .cm-content').dispatchEvent(
    new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
}"""

_WATCH = """(done) => {
  window.finished = [];
  const seen = new Set();
  new MutationObserver(() => {
    for (const stage of document.querySelectorAll('[data-stage]')) {
      const name = stage.dataset.stage;
      if (!seen.has(name) && new RegExp(`^(${done})$`).test(stage.dataset.status)) {
        seen.add(name);
        window.finished.push(name);
      } else if (stage.dataset.status === 'waiting') seen.delete(name);
    }
  }).observe(document.querySelector('nav.rail'), { subtree: true, childList: true, attributes: true });
}"""


def recorded(service: str, name: str = "attention_block") -> str:
    """The id of an example's recorded run."""
    examples = httpx.get(f"{service}/api/v1/examples", timeout=60).json()
    return next(str(example["run"]) for example in examples if example["name"] == name)


def until(page: Page, said: str, argument: object = None) -> None:
    """Wait until the page says yes. Asked from here: the page's own policy forbids evaluation inside it."""
    for _ in range(600):
        if page.evaluate(said, argument):
            return
        time.sleep(0.1)
    raise AssertionError(f"never true: {said} ({argument})")


def paste(page: Page, source: str) -> None:
    """Replace what is in the editor."""
    page.locator("[data-pane=source] .cm-content").click()
    page.keyboard.press("Control+a")
    page.evaluate(_PASTE, source)


def start(page: Page) -> None:
    """Run by keyboard, from inside the editor."""
    page.evaluate(_WATCH, DONE)
    before = page.url
    page.keyboard.press("Control+Enter")
    until(page, "(before) => location.pathname.startsWith('/r/') && location.href !== before", before)


def await_end(page: Page, timeout_s: float = 120) -> str:
    """Wait for the run's end; how it ended."""
    page.wait_for_selector(
        ".page:is([data-status=finished],[data-status=failed],[data-status=timed_out],[data-status=cancelled],[data-status=lost])",
        timeout=timeout_s * 1000,
    )
    return page.locator(".page").get_attribute("data-status") or ""


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is on one of these."""
    for _ in range(150):
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
        if page.evaluate("document.activeElement.matches('.cm-content')"):
            page.keyboard.press("Escape")  # In an editor, Tab indents; after Escape it leaves.
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reaches {selector}")


def open_stage(page: Page, stage: str, tab: str | None = None) -> None:
    page.locator(f"[data-stage={stage}]").click()
    page.locator(f"[data-view={stage}]").wait_for()
    if tab:
        page.locator(f"[role=tab][data-tab={tab}]").click()


def click_line(page: Page, line: int) -> None:
    page.locator("[data-pane=source] .cm-lineNumbers .cm-gutterElement").get_by_text(str(line), exact=True).click()


@dataclass(frozen=True)
class Seen:
    """What a person sees selected."""

    hash: str
    view: str | None
    title: str
    lines: list[str]
    kernels: list[str]
    tensors: list[str]


def look(page: Page) -> Seen:
    page.locator(".pk .row.sel").first.wait_for()
    return Seen(
        hash=page.evaluate("location.hash"),
        view=page.locator("main").get_attribute("data-view"),
        title=page.locator(".ins h2").inner_text(),
        lines=page.locator("[data-pane=source] .l-sel").all_inner_texts(),
        kernels=page.locator("[data-kernel][aria-selected=true]").all_inner_texts(),
        tensors=page.locator(".pk .row.sel").all_inner_texts(),
    )
