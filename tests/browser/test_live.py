"""The live view in a real browser: a client's request shows up, is opened, and becomes a case."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

from toolspeak.evals.jsonl_cases import load

TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def ask(address: str, model: str, stream: bool = False) -> str:
    """What a client gets that asks the server of the page."""
    home, key = re.fullmatch(r"(.*)/ui/#key=(.*)", address).groups()  # type: ignore[union-attr]
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Rain in Rome?"}],
        "tools": [TOOL],
        "stream": stream,
    }
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{home}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return response.read().decode()


def test_a_request_shows_up_and_is_saved_as_a_case(page: Any, address: str, tmp_path: Path) -> None:
    page.goto(address)
    page.get_by_role("link", name="Live").click()
    page.get_by_text("Nothing yet").wait_for()
    assert '"city' in ask(address, "client")
    row = page.get_by_role("row").filter(has_text="client")
    row.get_by_text("200").wait_for()
    row.get_by_role("button").click()
    detail = page.get_by_role("region", name="Request")
    assert '{"tool": "weather"' in detail.get_by_label("What the model wrote").inner_text()
    assert '"tool_calls"' in detail.get_by_label("What the client got").inner_text()
    assert "prompted in tool-json" in detail.inner_text()
    assert detail.locator("[data-kind=user]").last.inner_text() == "Rain in Rome?"
    with page.expect_download() as download:
        detail.get_by_role("button", name="Save as case").click()
    file = tmp_path / "case.jsonl"
    download.value.save_as(file)
    (case,) = load(file)
    assert case.messages[0]["content"] == "Rain in Rome?"
    assert [call["arguments"] for call in case.expected] == [{"city": "Rome"}]


def test_a_hostile_reply_is_shown_as_text(page: Any, address: str) -> None:
    ask(address, "hostile-client", stream=True)
    page.goto(address)
    page.get_by_role("link", name="Live").click()
    page.get_by_role("row").filter(has_text="hostile-client").first.get_by_role("button").click()
    detail = page.get_by_role("region", name="Request")
    assert '<img src=x onerror="window.hurt=1"></script>' in detail.get_by_label("What the model wrote").inner_text()
    assert detail.get_by_label("What the client got").locator("img, script").count() == 0
    assert page.evaluate("[window.hurt, document.images.length]") == [None, 0]
