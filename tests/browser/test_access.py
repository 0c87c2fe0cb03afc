"""The page as such: its key, the keyboard, contrast in both schemes, a phone's width, its first view."""

from __future__ import annotations

from typing import Any

import pytest

from browser.conftest import SCHEMES, settled

VIEWS = ("Playground", "Live", "Dialects", "Reports")
CONTRAST = """() => {
    const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
    const light = (color) => {
        const [r, g, b] = color.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const color = numbers(getComputedStyle(at).backgroundColor);
            if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
        }
        return [255, 255, 255];
    };
    const poor = [];
    let seen = 0;
    for (const element of document.querySelectorAll("body *")) {
        const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        const field = ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName);
        if (!(text || field) || !element.checkVisibility() || element.disabled) continue;
        seen += 1;
        const [one, other] = [light(numbers(getComputedStyle(element).color).slice(0, 3)), light(behind(element))].sort((a, b) => a - b);
        const ratio = (other + 0.05) / (one + 0.05);
        if (ratio < 4.5) poor.push(`${element.tagName} ${element.className} ${element.textContent.slice(0, 30)}: ${ratio.toFixed(2)}`);
    }
    return [seen, [...new Set(poor)]];
}"""


def filled(page: Any, address: str, view: str) -> None:
    """Opens a view and puts something into it."""
    page.goto(address)
    page.get_by_role("link", name=view).click()
    if view == "Playground":
        page.get_by_label("Model", exact=True).select_option("again")
        page.get_by_role("button", name="Ask", exact=True).click()
        settled(page)
    elif view == "Dialects":
        page.get_by_role("button", name="Read", exact=True).click()
        page.get_by_label("How it is read").wait_for()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("view", VIEWS)
def test_text_has_enough_contrast(page: Any, address: str, view: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    filled(page, address, view)
    seen, poor = page.evaluate(CONTRAST)
    assert seen > 5
    assert poor == []


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_all_of_it_without_scrolling_sideways(page: Any, address: str, view: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    filled(page, address, view)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    heights = page.evaluate("[...document.querySelectorAll('th')].map((one) => one.offsetHeight)")
    assert max(heights, default=0) < 40  # no heading is broken within a word


def test_the_keyboard_is_enough(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("heading", name="Playground").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SELECT"
    page.keyboard.type("again")
    page.get_by_label("Question").focus()
    page.keyboard.press("Control+Enter")
    settled(page)
    assert page.get_by_role("region", name="again").count() == 1


def test_every_field_and_button_has_a_name(page: Any, address: str) -> None:
    for view in VIEWS:
        filled(page, address, view)
        nameless = page.evaluate("""() => [...document.querySelectorAll("button, input, select, textarea, iframe, pre[tabindex]")]
            .filter((one) => !(one.textContent.trim() && ["BUTTON", "PRE"].includes(one.tagName)) && !one.labels?.length && !one.ariaLabel && !one.title)
            .map((one) => one.outerHTML.slice(0, 100))""")
        assert nameless == []


def test_the_theme_is_kept(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Theme").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    page.get_by_role("link", name="Live").wait_for()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    assert dark != "rgb(255, 255, 255)"


def test_a_key_is_asked_for_and_leaves_the_address(page: Any, address: str) -> None:
    home, key = address.split("#key=")
    page.goto(home)
    field = page.get_by_label("Key")
    field.fill("a-wrong-key")
    page.get_by_role("button", name="Open").click()
    page.get_by_text("unknown API key").wait_for()
    page.get_by_label("Key").fill(key)
    page.get_by_role("button", name="Open").click()
    page.get_by_role("heading", name="Playground").wait_for()
    page.goto("about:blank")
    page.goto(address)
    page.get_by_role("heading", name="Playground").wait_for()
    assert page.url == home
    page.wrong.clear()  # the browser logs that the server refused the wrong keys


def test_the_first_view_asks_for_little(page: Any, address: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.get_by_role("heading", name="Playground").wait_for()
    assert len(asked) <= 16
    assert [url for url in asked if "/api/" in url] == [f"{address.split('#')[0]}api/about"]
