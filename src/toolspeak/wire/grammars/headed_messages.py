"""The grammar of a reply of several messages, each with a header, as in harmony."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialect import Dialect, Header
from .rules import EMPTY, Lit, Node, Pattern, Repeat, Text, alt, heads, opt, seq


def messages(d: Dialect, header: Header, each: Sequence[Node], choice: str, parallel: bool, thoughts: bool) -> Node:
    """An optional message with a thought; then one with text, calls, or both. The first message may already be open."""
    body = _calls(d, header, each, parallel) if each else None
    if body is None or choice != "required":
        body = _text(d, header, body)
    thought = thoughts and header.thought and Lit(header.thought + header.stop)
    ends = _ends(d, header)
    if thought and ends:
        begun = alt(*(seq(Lit(head), rest) for head, rest in _begun(body, header)))
        after = Text(tuple((word, body) for word in ends))
        return alt(begun, *(seq(Lit(start), thought, after) for start in ("", header.start)), body)
    return alt(body, *(seq(Lit(head), rest) for head, rest in _begun(body, header)))


def _begun(body: Node, header: Header) -> list[tuple[str, Node]]:
    """The message without its start mark."""
    return [(text.removeprefix(header.start), rest) for text, rest in heads(body) if text.startswith(header.start)]


def _ends(d: Dialect, header: Header) -> list[str]:
    return list(dict.fromkeys(word for word in (d.between, *header.ends) if word.strip()))


def _calls(d: Dialect, header: Header, each: Sequence[Node], parallel: bool) -> Node:
    """Calls, each in a message."""
    more = Repeat(alt(*(seq(Lit(d.between), call) for call in each))) if parallel else EMPTY
    return seq(alt(*each), more, opt(Lit(header.end)))


def _text(d: Dialect, header: Header, body: Node | None) -> Node:
    """A message with text, optionally followed by calls."""
    barred: list[Pattern] = [tuple(word) for word in (header.start, *header.also) if word.strip()]
    after = EMPTY if body is None else opt(body)
    goto = [(word, after) for word in _ends(d, header)]
    if body is not None and not goto:
        goto = [(header.start, seq(Lit(text), rest)) for text, rest in _begun(body, header)]
    text = seq(Lit(header.start + header.text + header.stop), Text(tuple(goto), tuple(barred), end=True))
    return text if body is None else alt(text, body)
