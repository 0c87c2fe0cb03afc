"""The reports in a real browser: listed, opened in a frame, and unable to run anything."""

from __future__ import annotations

from typing import Any


def test_a_report_is_opened_in_a_frame(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Reports").click()
    page.get_by_role("button", name="evaluation/report.html").click()
    frame = page.frame_locator("iframe")
    frame.get_by_role("heading", name="How well models call functions").wait_for()
    assert frame.get_by_text("hello").first.is_visible()
    assert page.get_by_role("button", name="other.html").count() == 0


def test_the_address_of_a_report_is_good_for_one_look(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Reports").click()
    with page.expect_response("**/ui/report/*") as answered:
        page.get_by_role("button", name="evaluation/report.html").click()
    assert answered.value.status == 200
    assert "sandbox" in answered.value.headers["content-security-policy"]
    assert page.request.get(answered.value.url).status == 404
