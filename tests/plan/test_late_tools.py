"""Tools that came up in the middle of a conversation stand where they came up, in every prompt from then on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolspeak.plan.late_tools import LATE, apart
from toolspeak.schema.infer import as_tools

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Find me a room."},
    {"role": "assistant", "content": None},
    {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
]
TOOLS = as_tools([{"name": name, "description": f"Does {name}."} for name in ("search", "book", "cancel")])


def told(message: Any) -> list[str]:
    """The names of the tools that a message tells of."""
    content = message["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content or ())
    return [json.loads(line)["name"] for line in text.partition(LATE)[2].splitlines() if line]


@pytest.mark.parametrize(
    ("late", "head", "places"),
    [
        ({}, ["search", "book", "cancel"], [[], [], []]),
        ({"book": 0}, ["search", "cancel"], [["book"], [], []]),
        ({"book": 1, "cancel": 2}, ["search"], [[], ["book"], ["cancel"]]),
        ({"book": 2, "cancel": 2}, ["search"], [[], [], ["book", "cancel"]]),
        ({"book": 3}, ["search", "book", "cancel"], [[], [], []]),  # behind the last message: not yet
        ({"search": 0, "book": 0, "cancel": 2}, ["search", "book", "cancel"], [[], [], []]),  # a head needs one
    ],
)
def test_each_stands_where_it_came(late: dict[str, int], head: list[str], places: list[list[str]]) -> None:
    first, rows = apart(MESSAGES, TOOLS, late)
    assert [tool.name for tool in first] == head
    assert [told(row) for row in rows] == places
    for row, message in zip(rows, MESSAGES, strict=True):
        assert row["role"] == message["role"]
        if not told(row):
            assert row == message


def test_what_a_message_said_stays_before_it() -> None:
    _, rows = apart(MESSAGES, TOOLS, {"book": 0, "cancel": 2})
    assert str(rows[0]["content"]).startswith(f"Find me a room.\n\n{LATE}\n")
    assert rows[2]["content"][0] == {"type": "text", "text": "And now?"}
    assert MESSAGES[0]["content"] == "Find me a room."
