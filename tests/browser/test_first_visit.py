"""What someone does who has never seen the page and reads nothing but the page: once by pointer, once by keyboard alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from .conftest import Complaints, watch
from .driving import await_end, look, tab_to, until

pytestmark = pytest.mark.browser


class Pointer:
    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, selector: str) -> None:
        self.page.locator(selector).first.click()

    def choose(self, selector: str, words: str) -> None:
        self.page.locator(selector).first.select_option(label=words)


class Keyboard:
    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, selector: str) -> None:
        self.page.locator(selector).first.wait_for()
        tab_to(self.page, selector)
        self.page.keyboard.press("Enter")

    def choose(self, selector: str, words: str) -> None:
        self.page.locator(selector).first.wait_for()
        tab_to(self.page, selector)
        self.page.keyboard.type(words)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("hand", [Pointer, Keyboard])
def test_the_first_visit(
    browser: Browser, service: str, complaints: Complaints, hand: type[Pointer] | type[Keyboard]
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, locale="en-US")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    watch(page, complaints)
    page.goto(service)
    by = hand(page)

    # An example, run anew.
    expect(page.locator(".page")).to_have_attribute("data-status", "finished")
    by.choose("header select", "Where the graph breaks")
    until(page, "document.querySelector('.page').dataset.run === 'example-graph-breaks'")
    expect(page.locator(".page")).to_have_attribute("data-status", "finished")
    by.press("header button[aria-pressed]")  # Without the C++ compiler, for the test's sake.
    by.press("button.run")
    until(page, "location.pathname.startsWith('/r/') && !location.pathname.includes('example')")
    assert await_end(page) == "finished"

    # Why did the graph break?
    by.press("[data-stage=dynamo]")
    said = page.locator("main .say")
    expect(said).to_contain_text("the graph broke 3×")
    by.press("main .say .lnk:last-of-type")
    card = page.locator("article.card").first
    expect(card).to_contain_text("Tensor.item()")
    expect(card).to_contain_text("capture_scalar_outputs = True")
    by.press("article.card .lnk")
    expect(_selected(page)).to_contain_text("s.item()")

    # Whose is the peak of the memory?
    expect(page.locator(".pk h3")).to_contain_text("Peak")
    row = page.locator(".pk button.row").first
    name, line, size = row.locator("> *").all_inner_texts()
    by.press(".pk button.row")
    expect(page.locator(".ins h2")).to_have_text(name)
    expect(page.locator(".ins dl")).to_contain_text(size)
    number = line.split()[1]
    expect(page.locator(".ins dl .lnk").first).to_have_text(number)
    expect(_selected(page)).to_be_visible()

    # Someone else sees the same.
    by.press("[data-share]")
    expect(page.locator("[data-share]")).not_to_have_text("Share")
    address = page.evaluate("navigator.clipboard.readText()")
    before = look(page)
    elsewhere = browser.new_context(viewport={"width": 1280, "height": 720}, locale="en-US")
    other = elsewhere.new_page()
    watch(other, complaints)
    other.goto(address)
    expect(other.locator(".ins h2")).to_have_text(name)
    expect(_selected(other)).to_be_visible()
    expect(other.locator("article.card").first).to_contain_text("Tensor.item()")
    assert look(other) == before
    elsewhere.close()
    context.close()


def _selected(page: Page) -> Locator:
    return page.locator("[data-pane=source] .l-sel").first
