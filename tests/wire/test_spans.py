"""What each character of a reply is read as: the spans are all of the reply, and say what the parser says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolspeak import dialect, dialects
from toolspeak.wire.spans import spans

CASES = Path(__file__).parents[1] / "dialects"


@pytest.mark.parametrize("name", [name for name in dialects() if (CASES / f"{name}.jsonl").exists()])
def test_every_character_is_told_once_and_the_texts_are_those_of_the_reply(name: str) -> None:
    for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines():
        text = json.loads(line).get("text")
        if not isinstance(text, str):
            continue
        found, reply = spans(text, dialect(name))
        assert "".join(text[span.start : span.end] for span in found) == text
        if not reply.notes:
            assert "".join(text[span.start : span.end] for span in found if span.kind == "text") == reply.text
            assert {span.call for span in found if span.kind in ("name", "id")} == set(range(1, len(reply.calls) + 1))


def kinds(text: str, name: str) -> list[tuple[str, str]]:
    return [(span.kind, text[span.start : span.end]) for span in spans(text, dialect(name))[0] if span.kind != "space"]


def test_literals_and_holes_of_a_call_are_told_apart() -> None:
    text = 'Yes. <tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
    assert kinds(text, "hermes") == [
        ("text", "Yes. "),
        ("literal", "<tool_call>"),
        ("syntax", '{"name": "'),
        ("name", "weather"),
        ("syntax", '", "arguments":'),
        ("arguments", '{"city": "Rome"}'),
        ("syntax", "}"),
        ("literal", "</tool_call>"),
    ]


def test_arguments_before_the_name_are_found() -> None:
    text = '<tool_call>\n{"arguments": {"city": "Rome"}, "name": "weather"}\n</tool_call>'
    assert ("arguments", '{"city": "Rome"}') in kinds(text, "hermes")
    assert ("name", "weather") in kinds(text, "hermes")


def test_parameters_between_tags_are_arguments() -> None:
    text = "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>"
    told = kinds(text, "qwen3-coder")
    assert [piece for kind, piece in told if kind == "arguments"] == ["city", "Rome"]
    assert ("name", "weather") in told
    assert {"<function=", "<parameter=", "</parameter>"} <= {piece for kind, piece in told if kind == "literal"}


def test_a_marker_in_plain_text_is_text() -> None:
    assert kinds("a <tool_call b", "hermes") == [("text", "a <tool_call b")]
