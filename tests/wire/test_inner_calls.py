"""Values between tags that contain calls of the same dialect, or the closers of their own: files that document them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from spoken import TALKING, wire
from wire_cases import read_in_pieces, rules, stream

import cost
from properties import rotated
from toolspeak.types import Reply, Tool
from toolspeak.wire.dialect import Dialect, Part, Tagged, Tree
from toolspeak.wire.holes.inner_calls import LIMIT
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.lexicon import program
from toolspeak.wire.reading.openers import spelled
from toolspeak.wire.reading.unbalanced_closers import KEYWORDS, VALUE_END

TEXT = {"type": "string"}
TOOLS = tuple(
    Tool(name, "", {"type": "object", "properties": dict.fromkeys(keys, TEXT), "required": [*keys]})
    for name, keys in {"write": ("path", "content"), "find": ("query",), "read": ("path",)}.items()
)
PLAIN = Tagged('<param name="', '">', "</param>\n")
"""Parameters in tags that models write in place of their own."""


def is_raw(d: Dialect, form: tuple[Part, ...]) -> bool:
    """Does the form have values without escapes?"""
    pattern = program(d, True).unbalanced[form]
    return pattern not in (None, KEYWORDS) and VALUE_END not in pattern.pattern


def other_forms(d: Dialect) -> Iterator[tuple[Part, ...]]:
    """Other forms of calls that have values without escapes, and those with the tags of other families."""
    yield from (form for form in (*d.forms, *spelled(d)) if is_raw(d, form))

    if any(isinstance(part, Tagged) and re.fullmatch(r"</\w+>", part.close.strip()) for part in d.call):
        yield tuple(PLAIN if isinstance(part, Tagged) else part for part in d.call)


OTHER_FORMS = {
    f"{d.name}, form {at}": (d, replace(d, name=f"{d.name}, form {at}", call=form, forms=(), **section))
    for d in TALKING
    for at, form in enumerate(other_forms(d), 1)
    for section in [{"open": "", "close": ""} if form in d.forms else {}]
}
"""Dialects that read such a form, and as they would be with that form alone."""
RAW = [
    *(d for d in TALKING if is_raw(d, d.call) and not isinstance(d.call[0], Tagged)),
    *rotated([written for _, written in OTHER_FORMS.values()], 4),
]
"""Dialects that write values without escapes."""
TAGS = [d for d in RAW if any(isinstance(part, Tagged | Tree) and part is not PLAIN for part in d.call)]
QUOTING = [d for d in TAGS if any(isinstance(part, Tagged) and part.quote for part in d.call)]
"""Their values are quoted wherever they contain tags, so nothing in them is a call."""
HEADED = [d for d in TAGS if d.header]
"""Nothing follows a call in its message."""
FIND, WRITE, READ = (
    ("find", {"query": "two words"}),
    ("write", {"path": "b.md", "content": "x"}),
    ("read", {"path": "x"}),
)
UNKNOWN = ("get_weather", {"city": "Rome", "content": "a\nb"})
DOCUMENTS = {
    "nothing else": "{find}",
    "on lines": "Like this:\n{find}\n",
    "another key": "Like this:\n{write}\n",
    "in a fence": "# Calls\n```xml\n{find}\n```\n",
    "in a line": "So `{find}` calls it.",
    "several": "{find}\n\n{write}\n\n{unknown}\n{read}",
    "text behind": "1. {unknown}\n\nThat calls a tool.\n\n2. {find}\n\nSo does that.",
    "an unknown tool": "\n{unknown}\nThat was it.\n",
}
CLOSERS = {
    "on lines": "It ends with:\n{0}\n",
    "text behind": "It ends with:\n{0}\nand that is it.",
    "in a fence": "It ends with:\n```\n{0}\n```\n",
    "a call behind": "It ends with:\n{0}\nLike here:\n{find}\nThat is it.",
    "twice": "First\n{0}\nthen\n{0}\nthe end.",
}


def reader(d: Dialect) -> Dialect:
    """The dialect that reads what `d` writes."""
    return OTHER_FORMS.get(d.name, (d, d))[0]


def read(d: Dialect, text: str) -> Reply:
    return read_in_pieces(reader(d), text, TOOLS)


dialects = pytest.mark.parametrize("d", TAGS, ids=lambda d: d.name)
raw = pytest.mark.parametrize("d", RAW, ids=lambda d: d.name)


def document(d: Dialect, form: str, *more: str) -> str:
    calls = {"find": FIND, "write": WRITE, "read": READ, "unknown": UNKNOWN}
    return form.format(*more, **{name: wire(d, call).strip() for name, call in calls.items()})


def written(d: Dialect, content: str, *, last: bool, **more: Any) -> str:
    arguments = {"path": "a.md", "content": content} if last else {"content": content, "path": "a.md"}
    return wire(d, ("write", arguments), *more.values())


def closers(d: Dialect) -> str:
    """The closers of a call of `write` with its value, as they end the call."""
    return wire(d, ("write", {"path": "a", "content": "MARK"})).partition("MARK")[2].strip("\n")


def whole(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in reply.calls if call.whole]


@dialects
@pytest.mark.parametrize("form", DOCUMENTS)
def test_whole_calls_in_a_value_belong_to_it(d: Dialect, form: str) -> None:
    content = document(d, DOCUMENTS[form])
    call = ("write", {"path": "a.md", "content": content})
    if d in QUOTING and "]]>" in wire(d, UNKNOWN) in content:
        return
    for last in (True, False):
        assert whole(read(d, written(d, content, last=last))) == [call]
        assert whole(read(d, written(d, content, last=last, then=READ))) == [call, READ]
        reply = read(d, written(d, content, last=last) + "\nDone.")
        assert (whole(reply), reply.text.strip()) == ([call], "Done.") or d in HEADED


@raw
@pytest.mark.parametrize("form", CLOSERS)
def test_no_call_runs_that_closers_in_its_value_cut(d: Dialect, form: str) -> None:
    content = document(d, CLOSERS[form], closers(d))
    for last in (True, False):
        text = written(d, content, last=last)
        for reply in (read(d, text), read(d, text + "\nDone."), read(d, written(d, content, last=last, then=READ))):
            if d in QUOTING and "]]>" not in closers(d):
                assert ("write", {"path": "a.md", "content": content}) in whole(reply)
            else:
                assert {name for name, _ in whole(reply)} <= {"read"}, text


@raw
def test_no_beginning_of_such_a_call_runs_with_less(d: Dialect) -> None:
    """A reply may be cut behind the closers of the inner call."""
    content = document(d, DOCUMENTS["text behind"])
    text = written(d, content, last=True)
    right = [("write", {"path": "a.md", "content": content})]
    start = len(text) - len(closers(d)) - len(content)
    for end in range(start, len(text)):
        assert whole(collect(stream(reader(d), [text[:end]], TOOLS))) in ([], right), text[:end]


@dialects
def test_an_opener_without_closers_is_the_next_call_or_a_part_of_the_value(d: Dialect) -> None:
    lost = written(d, "Hello", last=True).partition("Hello")[0] + "Hello\n"
    for call in (FIND, UNKNOWN):
        opener = wire(d, call).strip()
        for text in (lost + opener, lost + wire(d, call, READ).strip()):
            if d not in HEADED:
                assert [one for one in whole(read(d, text)) if one[0] == "write"] == [], text
        if d not in QUOTING:
            begun = opener.partition("Rome" if call is UNKNOWN else "two words")[0]
            assert whole(read(d, written(d, f"It begins:\n{begun}\nand so on.", last=True))) == []


@raw
def test_an_example_behind_a_call_changes_nothing(d: Dialect) -> None:
    """Its closers have an opener in the text."""
    call = wire(d, FIND).strip()
    reply = read(d, f"{call}\nI called it like this:\n```\n{call}\n```\nWait.")
    assert whole(reply)[:1] == [FIND] or d in HEADED
    assert "unbalanced-closers" not in rules(reply)


@raw
def test_closers_in_a_text_that_is_behind_no_call(d: Dialect) -> None:
    reply = read(d, f"It ends with\n{closers(d)}\nSo:\n{wire(d, FIND)}")
    assert "unbalanced-closers" not in rules(reply)


def test_the_note_says_which_calls_are_not_whole() -> None:
    """All before it, since each may have ended too early; a call behind it is one of its own."""
    d = next(d for d in TAGS if d.name == "qwen3-coder")
    text = wire(d, FIND) + "\n" + written(d, f"a\n{closers(d)}\nb", last=True) + "\n" + wire(d, READ)
    reply = read(d, text)
    assert whole(reply) == [READ]
    assert [[note.rule for note in call.notes] for call in reply.calls] == [["unbalanced-closers"]] * 2 + [[]]
    assert [note.detail for note in reply.notes] == ["</parameter> </function>"]


@pytest.mark.parametrize("name", ["qwen3-coder", "glm47", "minimax-m3"])
def test_the_next_call_is_awaited_up_to_a_limit(name: str) -> None:
    d = next(d for d in TAGS if d.name == name)
    for size, runs in ((LIMIT - 1_000, True), (LIMIT + 1_000, False)):
        content = wire(d, FIND).strip() + "\n" + "word " * (size // 5)
        for chunk in (7, LIMIT * 2):
            text = written(d, content, last=True)
            chunks = [text[i : i + chunk] for i in range(0, len(text), chunk)]
            assert bool(whole(collect(stream(reader(d), chunks, TOOLS)))) == runs


@pytest.mark.parametrize("name", ["qwen3-coder", "glm47", "minimax-m3"])
@pytest.mark.parametrize("form", ["{find}\n", "<tool_call>x\n", "{0}\n", "{find}\n{0}\n", "{begun}\n"])
@pytest.mark.parametrize("piece", [4, 100_000])
def test_the_cost_grows_with_the_text(name: str, form: str, piece: int) -> None:
    d = next(d for d in TAGS if d.name == name)
    unit = document(d, form.replace("{begun}", wire(d, FIND).partition("two words")[0]), closers(d))

    def calls(units: int) -> int:
        text = written(d, unit * units, last=True)
        chunks = [text[i : i + piece] for i in range(0, len(text), piece)]
        return cost.calls(lambda: stream(d, chunks, TOOLS))

    calls(10)
    assert calls(400) < 2.3 * calls(200)
