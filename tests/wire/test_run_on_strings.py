"""A string that nothing closes runs over the end of its call into the next one: that one is read, in every dialect that
quotes texts and has escapes. A value that holds such text stays one value, and no call in it runs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from spoken import TALKING, schema_of, wire
from wire_cases import cuts, merged, stream, told

import cost
from toolspeak.types import Reply, Tool
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

Call = tuple[str, dict[str, str]]
BAD: Call = ("read_file", {"path": "STAND"})
GOOD: Call = ("bash", {"command": "ls -la"})
OTHER: Call = ("find", {"query": "two words"})
WRITE: Call = ("write", {"path": "a.md", "content": "STAND"})
TOOLS = [Tool(name, "", schema_of(arguments)) for name, arguments in (BAD, GOOD, OTHER, WRITE)]
QUOTES = ('"STAND"', "'STAND'")
BROKEN = {
    "no quote at the end": "{0}a.py",
    "a comment": "{0}a.py{0} // the file\n",
    "a comment with an apostrophe": "{0}a.py{0} // it's the file\n",
    "a comment with quotes": '{0}a.py{0} // the "main" file\n',
    "a comment between marks": "{0}a.py{0} /* the file */",
    "dots": "{0}a.py{0}...",
    "a comma and dots": "{0}a.py{0}, ...",
    "a word": "{0}a.py{0} here",
    "a long text": "{0}" + "All is well, he said.\n" * 200,
}


def quoted(d: Dialect, *calls: Call) -> tuple[str, str]:
    """The calls as the dialect writes them, and the text of the first with its quotes; "" if it quotes none."""
    text = wire(d, *calls)
    return text, next((quote for quote in QUOTES if quote in text), "")


QUOTING = [d for d in TALKING if quoted(d, BAD)[1]]


def at_cuts(d: Dialect, text: str) -> Reply:
    """The reply, the same at several cuts."""
    whole = stream(d, [text], TOOLS)
    for chunks in (list(text), *cuts(text, random.Random(d.name))):
        assert merged(stream(d, chunks, TOOLS)) == merged(whole), text
    return collect(whole)


def broken(d: Dialect, calls: tuple[Call, ...], form: str) -> str:
    text, stand = quoted(d, *calls)
    return text.replace(stand, form.replace("{0}", stand.partition("STAND")[0]))


@pytest.mark.parametrize("form", BROKEN)
@pytest.mark.parametrize("d", QUOTING, ids=lambda d: d.name)
def test_the_calls_beside_it_are_read(d: Dialect, form: str) -> None:
    for calls in ((BAD, GOOD), (BAD, OTHER, GOOD), (GOOD, BAD, OTHER)):
        text = broken(d, calls, BROKEN[form])
        reply = at_cuts(d, text)
        assert [(name, arguments) for name, arguments, whole in told(reply) if whole] == [
            call for call in calls if call is not BAD
        ], text
        assert [call.name for call in reply.calls] == [name for name, _ in calls], text
        (refused,) = (call for call in reply.calls if call.name == "read_file")
        assert (refused.whole, "malformed" in [note.rule for note in refused.notes]) == (False, True), text


def test_most_dialects_quote_texts() -> None:
    assert len(QUOTING) > 58


def values(d: Dialect) -> Iterator[str]:
    """Texts that hold the end of a call and another call."""
    text, stand = quoted(d, BAD, GOOD)
    quote = stand.partition("STAND")[0]
    end = text.partition(stand)[2]
    whole = text.replace("STAND", "a.py")
    for more in (quote + end, end, f"{end}# no", f"\n{end}", f" {whole}", f"1\n{whole}\n{whole}"):
        yield from (
            f"It ends with{more}",
            f"It ends with{more}\nand so on.",
            f"It ends with{more} and so on, {quote}x{quote}, y.",
        )


@pytest.mark.parametrize("d", QUOTING, ids=lambda d: d.name)
def test_a_value_that_holds_calls_is_one_value(d: Dialect) -> None:
    for content in values(d):
        call = ("write", {"path": "a.md", "content": content})
        reply = at_cuts(d, wire(d, call, OTHER))
        assert told(reply) == [(*call, True), (*OTHER, True)], content


@pytest.mark.parametrize("d", QUOTING, ids=lambda d: d.name)
def test_no_call_in_a_value_that_is_not_escaped_runs(d: Dialect) -> None:
    """If such text has the quote that ends the value, nothing tells it from two calls."""
    for content in list(values(d))[3:]:
        for arguments in ({"path": "a.md", "content": "STAND"}, {"content": "STAND", "path": "a.md"}):
            text = wire(d, ("write", arguments)).replace("STAND", content)
            assert [call for call in told(at_cuts(d, text)) if call[2] and call[0] == "bash"] == [], text


@pytest.mark.parametrize(
    "unit", ['{"', '}}, "id', '", "', '} , "id": ', "}\n</tool_call>\n<tool_call>\n{", '{"name": "find"', "(a='"]
)
@pytest.mark.parametrize("name", ["hermes", "mistral-v3", "pythonic", "llama3-builtin"])
@pytest.mark.parametrize("piece", [3, 100_000])
def test_the_cost_grows_with_the_text(name: str, unit: str, piece: int) -> None:
    (d,) = (d for d in QUOTING if d.name == name)

    def calls(units: int) -> int:
        text = broken(d, (BAD, GOOD), "{0}" + unit * units)
        chunks = [text[i : i + piece] for i in range(0, len(text), piece)]
        return cost.calls(lambda: stream(d, chunks, TOOLS))

    calls(10)
    assert calls(400) < 2.3 * calls(200)
