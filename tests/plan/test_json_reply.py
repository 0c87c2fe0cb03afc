"""Why a text is no value of a schema, as the model and the person read it."""

from __future__ import annotations

import pytest

from toolspeak.plan.json_reply import json_text
from toolspeak.types import Reply

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('Sure: {"n": "x"}', '/n: expected integer, got "x"'),
        ('Sure: [0, {"n": 1}]', 'the value: expected object, got [0, {"n": 1}]'),
        ('{"n": 1} or {"n": 2}', "it has 2 values that fit and differ, and one is wanted"),
        ("I cannot.", 'it is not JSON: "I cannot."'),
        ("Of {n} things", 'it is not JSON: "Of {n} things"'),
        ('Here: {"n": }', "it is not JSON (Expecting value: line 1 column 7 (char 6))"),
        ('Here:\n```json\n{"n": }\n```', "it is not JSON (Expecting value: line 1 column 7 (char 6))"),
        ('{"n": 1}', ""),
    ],
)
def test_the_reason_is_about_the_value_in_the_text(text: str, why: str) -> None:
    assert json_text(Reply(text=text), SCHEMA)[1] == why
