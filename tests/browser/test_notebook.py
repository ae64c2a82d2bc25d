"""The page in a notebook's frame, which has no address, no origin and no server."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from server.examples import FOLDER, read_recording
from server.report import frame


def test_the_page_works_inside_the_frame(page: Page, tmp_path: Path) -> None:
    shown = frame(read_recording(FOLDER / "recorded" / "two_layer_net.json.gz"))
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><p>cell</p>{shown}", encoding="utf-8")
    page.goto(file.as_uri())
    inside = page.frame_locator("iframe")
    inside.locator(".page[data-status=finished]").wait_for()
    inside.locator("[data-stage=joint]").click()
    inside.locator("[data-view=joint] canvas").first.wait_for()
    inside.locator("[data-stage=codegen]").click()
    inside.locator("[data-view=codegen]").wait_for()
