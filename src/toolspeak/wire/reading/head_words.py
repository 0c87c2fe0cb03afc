"""The words in the heads of messages: what heads consist of, what they mean, and where the body begins."""

from __future__ import annotations

import re

from ..dialect import Header

HEAD_WORD = re.compile(r"[^\s<>|^$]+").findall
MARKER = re.compile(r"<[^<>]*>")
BARE_HEAD = re.compile(r"[\w.:/-]{0,64}").fullmatch


def route(header: Header, head: str) -> tuple[str, str]:
    """The needle that matches a head, and the kind of its message: call, thought or text."""
    framed = f"^{head}$"
    return next(((needle, what) for needle, what in header.routes if needle in framed), ("", "text"))


def is_bare(head: str) -> bool:
    """Whether this may be everything between the first word of a message without its start, and its body."""
    return BARE_HEAD(head) is not None


def head_words(head: str) -> list[str]:
    """The words of a head, with marks as separate words."""
    return HEAD_WORD(head)


def vocabulary(header: Header) -> frozenset[str]:
    """The words that heads consist of."""
    heads = (*map(str, header.call), header.thought, header.text, *(n for n, _ in header.routes), *header.also)
    return frozenset(w for head in heads for w in head_words(head))


def bare_heads(header: Header) -> tuple[str, ...]:
    """What a message may begin with that lacks its start, or whose start was in an unknown prompt."""
    needles = (needle for needle, what in header.routes if what == "call" and needle[:1] != "^")
    return tuple(dict.fromkeys(needle.strip() for needle in needles if needle.strip()))


def channels(header: Header) -> tuple[str, ...]:
    """The words that begin a head without the mark of its channel."""
    heads = (
        part for part in (header.call[0], header.thought) if isinstance(part, str) and part.startswith(header.also)
    )
    return tuple(word for head in heads for word in MARKER.sub("", head).split()[:1]) if header.also else ()


def body_begins(header: Header | None, prompt: str) -> bool:
    """Whether the prompt ends with the head of a message whose body has not begun."""
    stop = header.stop.strip() if header else ""
    return stop != "" and prompt.rstrip().endswith(stop)
