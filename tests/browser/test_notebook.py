"""The page in a notebook's frame, which has no address, no origin and no server."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from aotscope import Explored
from server.examples import FOLDER, read_recording


def test_the_page_works_inside_the_frame(page: Page, tmp_path: Path) -> None:
    shown = Explored(read_recording(FOLDER / "recorded" / "two_layer_net.json.gz"), [])
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><p>cell</p>{shown._repr_html_()}", encoding="utf-8")
    page.goto(file.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".page[data-status=finished]").wait_for()
    frame.locator("[data-stage=joint]").click()
    frame.locator("[data-view=joint] canvas").first.wait_for()
    frame.locator("[data-stage=codegen]").click()
    frame.locator("[data-view=codegen]").wait_for()
