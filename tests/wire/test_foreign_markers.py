"""A sentence around a call in the markers of another family: it is read like one around a call of the dialect's own."""

from __future__ import annotations

from functools import cache, partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from test_continued_sentences import INLINE, TALK
from wire_cases import DIALECTS, called, read_at_cuts, stream

from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.foreign_markers import line_before

WRAPPED = (
    "<other_call>\n{}\n</other_call>",
    "<|other_begin|><|call|>\n{}\n<|other_end|>",
    "<other>\n<call>\n\n{}\n\n</call>\n</other>",
    "[OTHER]\n{}\n[/OTHER]",
)


@cache
def forms() -> dict[str, str]:
    """The calls of all families on several lines, with one that has each."""
    return {call: d.name for d in TALKING if "\n" in (call := wire(d, find("two words")).strip())}


def runs(d: Dialect, text: str) -> bool:
    return called(collect(stream(d, [text], TOOLS))) == ["find"]


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_a_call_of_any_family_in_a_sentence_that_goes_on(d: Dialect) -> None:
    for call, name in forms().items():
        if runs(d, call):
            for behind in TALK:
                for form in ("I would say {}{}", "{}{}"):
                    assert called(collect(stream(d, [form.format(call, behind)], TOOLS))) == [], (name, form, behind)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_its_own_call_in_markers_of_another(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for form in WRAPPED:
        wrapped = form.format(call)
        if not runs(d, wrapped):
            continue
        for behind in (" but no.", ", which is wrong.", " (not now)", "? No.", "\nbut no."):
            assert called(collect(stream(d, [f"I would say {wrapped}{behind}"], TOOLS))) == [], (form, behind)
        between = (
            [] if form == WRAPPED[2] else [f"I look: {wrapped}\nI wait.", f"{wrapped}\nI wait."]
        )  # else an example
        for text in (f"I would say {wrapped}", *between):
            assert runs(d, text), text


@pytest.mark.parametrize(
    "d", [d for d in INLINE if d.name in ("hermes", "tool-json", "granite3", "xlam")], ids=lambda d: d.name
)
def test_at_every_cut(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for form in WRAPPED:
        for text in ("I would say {} but no.", "I would say {}\nbut no.", "I look: {}\nI wait.", "{} is it"):
            read_at_cuts(d, text.format(form.format(call)), TOOLS)


def test_a_frame_that_closes_a_call_hides_no_sentence() -> None:
    read = partial(read_at_cuts, get("granite3"), tools=TOOLS)
    call = '<tool_call>\n{"name": "find", "arguments": {"query": "a"}}\n</tool_call>'
    assert called(read(f"{call}\nI wait.")) == ["find"]
    for form in ("I would say {} but no.", "{} is how I would do it.", "I look.\n{} is how I would do it."):
        assert called(read(form.format(call))) == [], form


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", None),
        ("I look", None),
        ("I look <tool_call>", "I look"),
        ("I look <a>\n<b>\n\n", "I look"),
        ("I look.\n<tool_call>", ""),
        ("<|a|><|b|>", ""),
        ("I know. </thinking>\n", None),
        ("I know.<|im_end|>\n", None),
        ("I look <|start_header_id|>assistant<|end_header_id|>\n\n", "I look"),
        ("I look.\nfunction call<|role_sep|>\n", ""),
        ("a < b", None),
        ("in x[i]", None),
    ],
)
def test_the_line_before_a_marker(text: str, line: str | None) -> None:
    assert line_before(text) == line


@pytest.mark.parametrize("unit", ["I say <a>\n{}\n</a> no.\n", "<a>\n{}", "{}\n<a", "{}<"])
def test_many_markers_take_linear_time(unit: str) -> None:
    call = wire(get("hermes"), find("two words")).strip()
    assert growth(lambda n: lambda: stream(get("hermes"), [unit.replace("{}", call) * n], TOOLS), 50) <= LINEAR
