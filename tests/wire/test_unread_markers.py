"""The markers of a call around something that is no call: the text stays, with the note `unread-call`. Talk gets none."""

from __future__ import annotations

import pytest
from hard_cases import TOOLS
from test_talk import TALK
from wire_cases import read_at_cuts, stream

import toolspeak as ts
from cost import LINEAR, growth
from toolspeak.dialects import get, names
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.lexicon import program


def marks(d: Dialect) -> tuple[str, str]:
    """What opens calls, and what closes them."""
    first, last = d.call[0], d.call[-1]
    opener = d.open.strip() or str(first).strip()
    return opener, d.close.strip() or (last.strip() if isinstance(last, str) else "")


MARKED = [d for d in map(get, names()) if {*marks(d)[0].split()[:1]} & program(d, True).markers_of_calls]
CLOSED = [d for d in MARKED if program(d, True).visible_closers]
BODIES = {
    "a command": "\nls -la\n",
    "code": "\nfind(query='a', limit=2) if ready else None\n",
    "arguments alone": '\n{"query": "a", "limit": 2}\n',
    "a patch": "\n*** Begin Patch\n*** Update File: a.py\n-x\n+y\n*** End Patch\n",
    "a sentence": "\nI should look into the files.\n",
}
TALKING = {
    "both in a sentence": "The opener is {open} and the closer is {close}.",
    "both at the beginning of a sentence": "{open} and {close} are the markers.",
    "a list of both": "- {open} opens a call\n- {close} closes it",
    "lines that explain": "{open}: the opener\n{close}: the closer",
    "the opener alone, explained": "{open} is the marker of a call.",
    "the closer alone": "A call ends with\n{close}",
    "a fence between texts": "The form:\n```\n{block}\n```\nSo it is.",
    "a fence at the end": "The form:\n```xml\n{block}\n```",
    "a block between texts": "The form is:\n\n{block}\n\nThe name comes first.",
    "a block in code": "Write `{block}`",
    "a block in quotation marks": 'The text "{block}"',
    "a comment": "<!-- {block} -->",
    "a quoted block": "> {quoted}",
}


def unread(d: Dialect, text: str) -> bool:
    """Whether the note is there, the same at every cut."""
    return "unread-call" in [note.rule for note in read_at_cuts(d, text, TOOLS, every=3).notes]


@pytest.mark.parametrize("d", MARKED, ids=lambda d: d.name)
def test_markers_around_no_call(d: Dialect) -> None:
    opener, closer = marks(d)
    for what, body in BODIES.items():
        text = f"{opener}{body}{closer}"
        reply = collect(stream(d, [text], TOOLS))
        if not reply.calls:
            assert unread(d, text), what
            shown = closer if program(d, True).visible_closers else ""
            assert reply.text.strip() == f"{opener}{body}{shown}".strip(), what


@pytest.mark.parametrize("d", MARKED, ids=lambda d: d.name)
def test_an_object_glued_to_the_opener(d: Dialect) -> None:
    opener, closer = marks(d)
    for body in ('{"query": "a", "limit": 2}', '[{"query": "a", "limit": 2}]'):
        text = opener + body + closer
        reply = ts.parse(text, d, TOOLS)
        assert any(note.rule in ("unread-call", "cut-opener") for note in reply.notes) or reply.calls, text
        unread(d, text)


@pytest.mark.parametrize("d", CLOSED, ids=lambda d: d.name)
def test_words_on_one_side(d: Dialect) -> None:
    block = f"{{}}{BODIES['a command']}{{}}".format(*marks(d))
    assert unread(d, f"I look.\n\n{block}")
    assert unread(d, f"{block}\nI wait for the answer.")
    assert unread(d, f"{block}\n{block}\n")


@pytest.mark.parametrize("d", CLOSED, ids=lambda d: d.name)
def test_talk_of_markers(d: Dialect) -> None:
    opener, closer = marks(d)
    block = f"{opener}{BODIES['a command']}{closer}"
    for what, text in TALKING.items():
        written = text.format(
            open=opener.split()[0], close=closer.split()[-1], block=block, quoted=block.replace("\n", "\n> ")
        )
        assert not unread(d, written), what


@pytest.mark.parametrize("d", CLOSED, ids=lambda d: d.name)
def test_talk_of_calls(d: Dialect) -> None:
    """The table of texts that only talk of a call."""
    block = f"{{}}{BODIES['a command']}{{}}".format(*marks(d))
    for what, text in TALK.items():
        lines = {"quoted": block.replace("\n", "\n> "), "indented": block.replace("\n", "\n    ")}
        assert not unread(d, text.format(call=block, string='"x"', **lines)), what


@pytest.mark.parametrize("d", [d for d in MARKED if d not in CLOSED], ids=lambda d: d.name)
def test_talk_of_an_opener_without_a_closer(d: Dialect) -> None:
    opener = marks(d)[0]
    for text in ("{} is the marker of a call.", "{}: the marker", "The marker is\n{}\nand nothing closes it.", "`{}`"):
        assert not unread(d, text.format(opener)), text


def test_in_a_thought_nothing_is_meant() -> None:
    block = "<tool_call>\nls -la\n</tool_call>"
    assert not unread(get("hermes"), f"<think>\n{block}\n</think>\nHello.")
    assert not unread(get("hermes"), f"<think>\n{block}\n</think>")


def test_beside_a_call_nothing_is_noted() -> None:
    call = '<tool_call>\n{"name": "find", "arguments": {"query": "a"}}\n</tool_call>'
    assert not unread(get("hermes"), f"<tool_call>\nls\n</tool_call>\n{call}")


def test_no_tools_no_note() -> None:
    reply = ts.parse("<tool_call>\nls\n</tool_call>", "hermes", [])
    assert (reply.text, reply.notes) == ("<tool_call>\nls\n</tool_call>", ())


def test_the_note_has_the_form_of_a_call() -> None:
    """Without markers, which would be broken in the prompt; "" if they are needed within."""

    def find(query: str, limit: int = 5) -> None:
        """Find it."""

    for name, form in (
        ("hermes", '{"name": "find", "arguments": {"query": "..."}}'),
        ("lfm2", "[find(query='...')]"),
        ("qwen3-coder", ""),
    ):
        opener, closer = marks(get(name))
        (note,) = ts.parse(f"{opener}\nls\n{closer}", name, [find]).notes
        assert note.detail == form


@pytest.mark.parametrize("form", ["<tool_call>\nls\n</tool_call>\n", "<tool_call>\nls", "<tool_call>", "words "])
def test_many_markers_take_linear_time(form: str) -> None:
    hermes = get("hermes")
    assert growth(lambda n: lambda: stream(hermes, ["<tool_call>\nls\n", *[form] * n], TOOLS), 200) <= LINEAR
