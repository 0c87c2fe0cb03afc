"""The words of the heads of messages: what they are made of, what they tell, and where the body begins."""

from __future__ import annotations

import re

from ..dialect import Header

HEAD_WORD = re.compile(r"[^\s<>|^$]+").findall
MARKER = re.compile(r"<[^<>]*>")
BARE_HEAD = re.compile(r"[\w.:/-]{0,64}").fullmatch


def route(header: Header, head: str) -> tuple[str, str]:
    """The needle that a head answers to, and what its message is: call, thought or text."""
    framed = f"^{head}$"
    return next(((needle, what) for needle, what in header.routes if needle in framed), ("", "text"))


def is_bare(head: str) -> bool:
    """May this be all that stands between the first word of a message that lacks its start and its body?"""
    return BARE_HEAD(head) is not None


def head_words(head: str) -> list[str]:
    """The words of a head, its marks told apart."""
    return HEAD_WORD(head)


def vocabulary(header: Header) -> frozenset[str]:
    """The words that heads are made of."""
    heads = (*map(str, header.call), header.thought, header.text, *(n for n, _ in header.routes), *header.also)
    return frozenset(w for head in heads for w in head_words(head))


def bare_heads(header: Header) -> tuple[str, ...]:
    """What a message that lacks its start, or whose start stood in an unknown prompt, may begin with."""
    needles = (needle for needle, what in header.routes if what == "call" and needle[:1] != "^")
    return tuple(dict.fromkeys(needle.strip() for needle in needles if needle.strip()))


def channels(header: Header) -> tuple[str, ...]:
    """The words with which a head begins that lacks the mark of its channel."""
    heads = (
        part for part in (header.call[0], header.thought) if isinstance(part, str) and part.startswith(header.also)
    )
    return tuple(word for head in heads for word in MARKER.sub("", head).split()[:1]) if header.also else ()


def body_begins(header: Header | None, prompt: str) -> bool:
    """Does the prompt end with the head of a message, of which the body has not begun?"""
    stop = header.stop.strip() if header else ""
    return stop != "" and prompt.rstrip().endswith(stop)
