"""Reads the head of a message: the text between its start marker and its body, such as a role or a tool's name.

Decides also which text may be a head."""

from __future__ import annotations

from collections.abc import Callable

from ..dialect import Header
from .head_words import head_words, is_bare, route
from .lexicon import TEXT, Program
from .marks import marks
from .source import Malformed, Scan, token
from .state import State, may_name

HEAD_SIZE = 512
"""The most characters of a head."""


def note_rest(s: State, p: Program, head: str) -> None:
    """Notes parts of a head that have no known meaning."""
    if rest := [word for word in head_words(head) if word not in p.vocabulary]:
        s.note("head", " ".join(rest))


def pass_unread(s: State) -> str:
    """The message is a call, but calls are not wanted: all of it becomes text."""
    s.ignored_call, text = True, s.recorded()
    s.commit()
    s.emit_text(text)
    return TEXT


def read_head(s: State, p: Program, header: Header, word: str, begun: bool) -> Scan[tuple[str, str]]:
    """The head of a message, and what ends it, which is consumed. If its markers may have been removed, the body of a
    call ends it: then "" is returned and the body is not consumed. `begun`: the message certainly begins here."""
    bare = word if word in p.bare else ""
    stop = next(filter(None, (header.stop.strip(), header.stop)))
    body = () if word else p.body
    over = tuple(end for end in filter(None, (*header.ends, header.start.strip())) if not stop.startswith(end))
    text, hit = yield from token(s, marks((stop, *body, *over)), HEAD_SIZE, may_begin(s, p, bare, begun))
    if hit in over:
        raise Malformed("a message without a body")
    head, unmarked = bare + text, hit in body
    what = route(header, head)[1] if unmarked else hit
    if what not in ("call", stop):
        raise Malformed("no head of a message")
    s.pos += 0 if unmarked else len(hit)
    return head, "" if unmarked else hit


def tool_name(s: State, p: Program, needle: str, head: str, hit: str) -> str:
    """The name after the needle in the head of a call, up to whitespace or a mark. `hit` ended the head."""
    words = f"^{head}$".split(needle, 1)[1].removesuffix("$").split()
    name = words[0].partition("<")[0] if words else ""
    return name if hit else _unmarked_name(s, p, needle, head, name)


def _unmarked_name(s: State, p: Program, needle: str, head: str, written: str) -> str:
    """The offered tool that a head names whose markers were removed, so that a word may directly follow the name.

    All other words must be head words, except the one right before the body, which says what kind the body is.
    """
    before, _, behind = head.partition(needle.strip("^$"))
    kind = behind.rpartition(" ")[2]
    odd = {*head_words(before), *behind.split()[1:]} - {*p.vocabulary, kind}
    stems = [written.removesuffix(word) for word in ("", *p.vocabulary) if written.endswith(word)]
    names = {name for stem in stems if s.is_tool(name := s.resolve_name(stem))}
    if odd:
        names.clear()
    if len(names) != 1:
        raise Malformed("no message")
    s.note("missing-opener")
    return names.pop()


def may_begin(s: State, p: Program, bare: str, begun: bool) -> Callable[[str], bool] | None:
    """A check whether the beginning of a text may be a head, if only names count, and only those of offered tools unless
    the message certainly begins here."""
    if bare:
        return is_bare
    if not p.d.guard or s.tools is None or p.d.header is None:
        return None
    if begun:
        return may_name
    needles = [needle.strip("^$") for needle, _ in p.d.header.routes]
    return lambda head: any([s.begins_tool(head), *(needle.startswith(head.strip()) for needle in needles if needle)])
