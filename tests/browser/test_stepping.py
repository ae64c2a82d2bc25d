"""Going through a run step by step, what the graph says on the way, and two modes side by side."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .driving import open_stage, until

pytestmark = pytest.mark.browser

RUN = "example-attention-block"


def test_boxes_move_to_what_they_become(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{RUN}#stage=dynamo")
    for stage in ("joint", "fusion"):
        page.locator(".graph[data-ready=true]").wait_for()
        open_stage(page, stage)
        until(page, "Number(document.querySelector('.graph[data-ready=true] canvas')?.dataset.moved) > 10")


def test_nothing_moves_for_those_who_asked_for_less_motion(page: Page, service: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{service}/r/{RUN}#stage=dynamo")
    page.locator(".graph[data-ready=true]").wait_for()
    open_stage(page, "joint")
    until(page, "Number(document.querySelector('.graph[data-ready=true] canvas')?.dataset.drawn) > 10")
    assert page.evaluate("document.querySelector('.graph canvas').dataset.moved") is None


def test_the_steps_are_said_in_words_and_play_by_themselves(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{RUN}#stage=dynamo")
    page.get_by_role("button", name="step through").click()
    told = page.locator("[data-told]")
    for stage in ("pre_grad", "joint"):
        page.locator("[data-step=next]").click()
        expect(page.locator("main")).to_have_attribute("data-view", stage)
    expect(told).to_contain_text("Since dynamo: 3 nodes new, 204 rewritten")

    page.get_by_role("button", name="passes", exact=True).first.click()
    for _ in range(3):
        page.locator("[data-step=next]").click()
    expect(told).to_have_text("pass_pattern_1: 15 nodes new, 0 rewritten, 3 gone, 194 the same.")
    expect(page.locator("[data-overlay=changed]")).to_contain_text("new")

    page.get_by_role("button", name="program points").click()
    page.locator(".stepper select").select_option("1")
    page.locator("[data-step=play]").click()
    expect(told).to_contain_text("allocates")
    until(page, "Number(new URLSearchParams(location.hash.slice(1)).get('point')) > 1")
    page.locator("[data-step=play]").click()
    page.get_by_role("button", name="large type").click()
    expect(page.locator(".page.present")).to_be_visible()
    expect(told).to_have_css("font-size", "20px")


def test_an_overlay_is_in_the_address_with_its_legend(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{RUN}#stage=partition")
    page.get_by_label("shade").select_option("recompute")
    legend = page.locator(".shades")
    for word in ("computed once", "saved", "recomputed"):
        expect(legend).to_contain_text(word)
    page.goto("about:blank")
    page.goto(f"{service}/r/{RUN}#stage=fusion&overlay=critical")
    expect(legend).to_contain_text("by measured time")


def test_training_and_inference_side_by_side(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{RUN}#stage=joint&step=stage")
    page.get_by_role("button", name="training / inference").click()
    sides = [page.frame_locator(f"iframe[title={mode}]") for mode in ("training", "inference")]
    for side in sides:
        side.locator(".graph[data-ready=true]").wait_for()
    expect(sides[0].locator(".bar")).to_contain_text("backward 116")
    expect(sides[1].locator(".bar")).not_to_contain_text("backward")
    page.locator("[data-step=next]").click()
    for side in sides:
        expect(side.locator("main")).to_have_attribute("data-view", "joint_passes")


def test_an_unknown_message_is_shown_by_its_key(page: Page, service: str) -> None:
    def unknown(route):  # type: ignore[no-untyped-def]
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace('"key":"source.', '"key":"nowhere.'))

    page.route("**/artifacts/*", unknown)
    page.goto(f"{service}/r/{RUN}#stage=source")
    expect(page.locator("main")).to_contain_text("nowhere.")
