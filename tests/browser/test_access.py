"""The page for everyone: nothing that axe objects to, and everything by keyboard alone."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import ROOT, Complaints, watch
from .driving import STAGES, recorded, tab_to, until

pytestmark = pytest.mark.browser

PAIR = "/compare/example-two-layer-net/example-training-script"
AXE = ROOT / "frontend/node_modules/axe-core/axe.min.js"
VIEWS = [
    *(f"stage={stage}" for stage in STAGES),
    *(f"stage=partition&tab={tab}" for tab in ("code", "table", "cut")),
    *(f"stage=joint&tab={tab}" for tab in ("steps", "ledger")),
    *(f"stage=dynamo&tab={tab}" for tab in ("table", "guards")),
    "stage=fusion&tab=table",
    "stage=joint_passes&tab=graph&pass=5&overlay=changed&step=pass",
    "stage=partition&overlay=bytes&step=stage",
    "stage=fusion&overlay=critical&step=point&point=12&present=1",
    "stage=codegen&node=0_0/post_grad/forward/addmm_2",
]
VIOLATIONS = """() => axe.run({ resultTypes: ['violations'] }).then((found) =>
  found.violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target} ${node.html.slice(0, 120)}`)))"""
STILL = "() => document.getAnimations().every((one) => one.effect.getTiming().iterations === Infinity)"


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        pytest.fail("axe-core is missing: npm ci in frontend/")
    return AXE.read_text(encoding="utf-8")


def _objections(page: Page, axe: str, address: str, shown: str) -> list[str]:
    page.goto(address)
    page.locator(shown).first.wait_for()
    page.evaluate(axe)
    until(page, STILL)
    return list(page.evaluate(VIOLATIONS))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(
    browser: Browser, service: str, complaints: Complaints, axe: str, theme: Literal["light", "dark"], width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 720}, reduced_motion="reduce")
    page = context.new_page()
    watch(page, complaints)
    page.goto(f"{service}/r/{recorded(service)}?theme={theme}#stage=source")
    page.locator("[data-pane=printed], [data-view=source]").first.wait_for()
    page.evaluate(axe)
    found: dict[str, Any] = {}
    for view in VIEWS:
        page.evaluate("(hash) => { location.hash = hash; }", view)
        page.locator(f"[data-view={view.split('&')[0].removeprefix('stage=')}]").wait_for()
        if page.locator(".graph").count():
            page.locator(".graph[data-ready=true]").wait_for()
        until(page, STILL)
        if said := page.evaluate(VIOLATIONS):
            found[view] = said
    # In large type the header is away; the last view had it so.
    page.evaluate("(hash) => { location.hash = hash; }", "stage=joint")
    for sheet in (0, 1):
        page.locator("header button[aria-expanded]").nth(sheet).click()
        if said := page.evaluate(VIOLATIONS):
            found[f"sheet {sheet}"] = said
    context.close()
    assert found == {}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_other_page(
    browser: Browser, service: str, complaints: Complaints, axe: str, theme: Literal["light", "dark"], width: int
) -> None:
    """The first page, an embedded run, two runs held against each other, and a run without scripts, in Chinese too."""
    run = recorded(service)
    context = browser.new_context(viewport={"width": width, "height": 720}, reduced_motion="reduce", color_scheme=theme)
    page = context.new_page()
    watch(page, complaints)
    pages = {
        "/": ".graph[data-ready=true]",
        f"/embed/{run}?theme={theme}#stage=partition": ".graph[data-ready=true]",
        f"/embed/{run}?theme={theme}&only=stage#stage=fusion": ".graph[data-ready=true]",
        f"{PAIR}?theme={theme}": ".cmp[data-status=ready]",
        f"{PAIR}?theme={theme}&lang=zh#stage=joint&compile=0": "[data-row=added]",
        f"{PAIR}?theme={theme}#stage=codegen&compile=0": ".diff .add",
        f"/r/{run}/plain": "#outcome, .outcome",
        f"/r/{recorded(service, 'graph_breaks')}/plain?lang=zh": "#outcome, .outcome",
        f"/r/{recorded(service, 'graph_breaks')}?theme={theme}&lang=zh#stage=dynamo&tab=breaks": "article.card",
    }
    found = {view: said for view, shown in pages.items() if (said := _objections(page, axe, f"{service}{view}", shown))}
    context.close()
    assert found == {}


def test_a_tensor_is_followed_through_every_pane_by_keyboard_alone(page: Page, service: str) -> None:
    page.goto(f"{service}/r/{recorded(service)}#stage=joint")
    page.locator(".graph[data-ready=true]").wait_for()
    tab_to(page, "[data-pane=source] .cm-content")
    page.keyboard.press("Control+Home")
    for _ in range(24):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+F10")
    expect(page.locator("[data-pane=source] .l-sel")).to_have_text("        h = F.gelu(self.up(self.ln2(x)))")
    until(page, "Number(document.querySelector('.graph canvas').dataset.marked) > 0")

    tab_to(page, ".graph canvas")
    page.keyboard.press("/")
    page.keyboard.type("addmm_2")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    title = page.locator(".ins h2")
    expect(title).to_have_text("addmm_2")
    until(page, "new URLSearchParams(location.hash.slice(1)).get('node') === '0_0/joint/joint/addmm_2'")

    for stage in ("joint_passes", "partition", "post_grad", "schedule", "fusion", "codegen", "memory"):
        page.keyboard.press("ArrowRight")
        expect(page.locator("main")).to_have_attribute("data-view", stage)
        expect(title).to_have_text("addmm_2")
        expect(page.locator("[data-pane=source] .l-sel")).to_have_text("        h = F.gelu(self.up(self.ln2(x)))")
        if stage in ("partition", "fusion"):
            page.locator(".graph[data-ready=true]").wait_for()
            until(page, "Number(document.querySelector('.graph canvas').dataset.marked) > 0")
        if stage == "schedule":
            expect(page.locator("main [role=option][aria-selected=true]").first).to_contain_text("external [64, 256]")
        if stage == "codegen":
            expect(page.locator("[data-kernel][aria-selected=true]").first).to_contain_text("extern_kernels.addmm")
            expect(page.locator("[data-code] .l-sel").first).to_be_visible()

    tab_to(page, ".tl canvas")
    strip = page.locator(".tl canvas")
    page.keyboard.press("Home")
    born = page.locator(".pk .row.sel", has_text="addmm_2")
    for point in range(60):
        expect(strip).to_have_attribute("aria-valuenow", str(point))
        if born.count():
            break
        page.keyboard.press("ArrowRight")
    expect(born).to_have_count(1)
    expect(born).to_contain_text("line 25")
    expect(title).to_contain_text("addmm_2")


def test_the_graph_has_a_twin_in_text(page: Page, service: str) -> None:
    page.goto(
        f"{service}/r/{recorded(service)}#stage=post_grad&tab=table&overlay=time&node=0_0/post_grad/forward/addmm_2"
    )
    row = page.locator("main tbody tr", has=page.get_by_role("button", name="addmm_2", exact=True))
    expect(row).to_contain_text("f32[64, 256]")
    expect(row).to_contain_text("µs")
