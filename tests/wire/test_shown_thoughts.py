"""Thoughts that a text only shows, in a code block or in quotation marks, are text, as are the calls beside them."""

from __future__ import annotations

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import read_in_pieces, told

from toolspeak.types import Reply
from toolspeak.wire.dialect import Dialect

TAGGED = [d for d in TALKING if d.thinking and d.thinking.close.strip() and not d.thinking.open[:1].isalpha()]
BY_TAGS = pytest.mark.parametrize("d", [d for d in TAGGED if d.thinking and d.thinking.open], ids=lambda d: d.name)


def read(d: Dialect, text: str, offered: bool = True) -> Reply:
    return read_in_pieces(d, text, TOOLS if offered else ())


def thought(d: Dialect, content: str) -> str:
    assert d.thinking
    return f"{d.thinking.open.strip()}\n{content}\n{d.thinking.close.strip()}"


@BY_TAGS
def test_a_whole_reply_that_is_quoted(d: Dialect) -> None:
    call = wire(d, find("two words"))
    for shown in (
        f"An example:\n\n```\n{thought(d, 'I should.')}\n\n{call}\n```\n\nThat is how a reply looks.",
        f"First\n\n```xml\n{thought(d, 'x')}\n```\n\nand then\n\n```\n{call}\n```\n\nas you see.",
    ):
        for own in ("", thought(d, "Hm.") + "\n\n"):
            reply = read(d, own + shown)
            assert (told(reply), reply.thought.strip(), reply.text.strip()) == ([], own and "Hm.", shown)


@BY_TAGS
@pytest.mark.parametrize("offered", [True, False], ids=["tools", "no tools"])
def test_a_thought_in_a_code_block(d: Dialect, offered: bool) -> None:
    assert d.thinking
    closer = d.thinking.close.strip()
    for shown in (
        f"```xml\n{thought(d, 'x')}\n```\nshows a thought.",
        f"The template:\n```\n{thought(d, '{{ r }}')}\n```\nworks.",
        f"Close it with\n```\n{closer}\n```\nand answer.",
    ):
        reply = read(d, shown, offered)
        assert (reply.thought, reply.text) == ("", shown)


def test_a_quoted_thought_and_its_call() -> None:
    for d in (d for d in TAGGED if d.name in ("hermes", "qwen3-coder", "glm45", "kimi-k2", "minimax-m2")):
        shown = f'A reply is "<think>x</think>{wire(d, find("two words"))}" as a string.'
        reply = read(d, shown)
        assert (told(reply), reply.thought, reply.text) == ([], "", shown)


@BY_TAGS
def test_an_empty_thought_in_a_line_stays(d: Dialect) -> None:
    assert d.thinking
    if d.thinking.open.strip() in d.frame:
        pytest.skip("an empty thought is also a frame around the answer")
    tags = d.thinking.open.strip() + d.thinking.close.strip()
    for shown in (f"Put it between {tags} tags.", f'A "{tags}" in quotes.', f"```python\nx = '{tags}'\n```"):
        assert read(d, shown).text == shown


def test_a_whole_reply_in_a_code_block() -> None:
    """A weak model puts all that it was asked for into a block: the label of a thought begins one there."""
    d = next(d for d in TALKING if d.name == "react")
    for before in ("", "Sure.\n"):
        text = f'{before}```\nThought: I look.\nAction: find\nAction Input: {{"query": "x"}}\n```'
        assert told(read(d, text)) == [("find", {"query": "x"}, True)]
