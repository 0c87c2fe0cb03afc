"""Values in a terminal and in a notebook: readable, bounded, and nothing that others wrote is obeyed."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import toolspeak as ts
from replies import calls, native
from toolspeak.types import Pending

HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> & \x1b[2J\x1b]0;owned\x07"
ALLOWED = {"table", "tr", "td", "p", "b", "pre"}


def weather(city: str, days: int = 1) -> str:
    """Get the current weather in a city."""
    return f"Sunny in {city}"


def broken(city: str) -> str:
    """Always fails."""
    raise ValueError("no such city")


class Tags(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_run_of_two_steps() -> None:
    model = native(calls(("weather", {"city": "Oslo"}), ("broken", {"city": "Rome"})), "It is sunny.\nIn Oslo.")
    reply = ts.run("Weather?", tools=[weather, broken], model=model)
    assert repr(reply).splitlines() == [
        "Reply: stop, 2 steps",
        '  1 → weather {"city": "Oslo"}',
        "    ← Sunny in Oslo",
        '    → broken {"city": "Rome"}',
        "    ✗ the tool 'broken' failed: ValueError: no such city",
        "  2 It is sunny.",
        "    In Oslo.",
    ]
    page = Tags(reply._repr_html_())
    for text in ('weather {"city": "Oslo"}', "Sunny in Oslo", "no such city", "It is sunny.\nIn Oslo."):
        assert text in page.text


def test_what_else_a_reply_holds() -> None:
    usage = ts.Usage(1200, 34)
    call = ts.ToolCall("c", "weather", {}, '{"city": "Os', whole=False)
    waits = Pending("c", "pay", {"sum": 3}, "a rule", "user", "", "", 0.0)  # type: ignore[arg-type]
    notes = (ts.Note("repaired", "a comma"),)
    reply = ts.Reply("Hm.", "Let me see", (call,), "length", notes, usage, pending=(waits,), output=[1])
    assert repr(reply).splitlines() == [
        "Reply: length (cut off), 1,200 + 34 tokens",
        "  1 thought: Let me see",
        "    Hm.",
        '    → weather {"city": "Os (cut off)',
        "    note: repaired: a comma",
        '  2 waits: pay {"sum": 3} (a rule)',
        "    output: [1]",
    ]
    assert "[1]" in Tags(reply._repr_html_()).text
    assert repr(ts.Reply()) == "Reply: stop"


@pytest.mark.parametrize("what", ["reply", "box", "explanation", "hits"])
def test_what_others_wrote_is_shown_and_not_obeyed(what: str) -> None:
    tool = ts.Tool("get", f"Weather. {HOSTILE}", {"type": "object", "properties": {HOSTILE: {"type": "string"}}})
    values = {
        "reply": lambda: ts.Reply(HOSTILE, HOSTILE, notes=(ts.Note("rule", HOSTILE),)),
        "box": lambda: ts.Toolbox(tool),
        "explanation": lambda: ts.explain(HOSTILE, tools=[tool], model="scripted:x"),
        "hits": lambda: ts.ToolIndex([tool]).search("weather"),
    }
    value = values[what]()
    page = Tags(value._repr_html_())
    assert page.tags <= ALLOWED
    assert "<script>" in page.text
    assert not {"\x1b", "\x07"} & set(repr(value))


def test_long_texts_are_cut() -> None:
    reply = ts.Reply("x" * 1_000_000)
    assert len(repr(reply)) < 1_000
    assert "999,400 characters" in repr(reply)
    assert len(reply._repr_html_()) < 30_000


def test_a_search_is_a_list_still() -> None:
    index = ts.ToolIndex([weather, broken])
    hits = index.search("What is the weather?")
    assert hits == list(hits)
    assert hits[0][0].name == "weather"
    assert repr(hits).splitlines()[0].endswith("weather: Get the current weather in a city.")
    assert repr(index.search("xyzzy")) == "nothing found"
    assert "days?: integer" in Tags(ts.Toolbox(weather)._repr_html_()).text
