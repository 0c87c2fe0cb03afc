"""The head of a message: what it says, and what may be one."""

from __future__ import annotations

from collections.abc import Callable

from ..dialect import Header
from .head_words import head_words, is_bare, route
from .lexicon import TEXT, Program
from .source import Malformed, Scan, marks, token
from .state import State

HEAD_SIZE = 512
"""The head of a message is at most this long, in characters."""


def tell_rest(s: State, p: Program, head: str) -> None:
    """Tell what a head says besides what is understood."""
    if rest := [word for word in head_words(head) if word not in p.vocabulary]:
        s.note("head", " ".join(rest))


def pass_unread(s: State) -> str:
    """The message is a call, and nobody wants calls: all of it is text."""
    s.unread, said = True, s.recorded()
    s.commit()
    s.say(said)
    return TEXT


def read_head(s: State, p: Program, header: Header, word: str) -> Scan[tuple[str, str]]:
    """The head of a message, and what ends it, which is eaten. Where its markers may have been taken out, the body of a call
    ends it, which is not eaten: "" then."""
    bare = word if word in p.bare else ""
    stop = next(filter(None, (header.stop.strip(), header.stop)))
    body = () if word else p.body
    text, hit = yield from token(s, marks((stop, *body)), HEAD_SIZE, may_begin(s, p, bare))
    head, unmarked = bare + text, hit in body
    what = route(header, head)[1] if unmarked else hit
    if what not in ("call", stop):
        raise Malformed("no head of a message")
    s.pos += 0 if unmarked else len(hit)
    return head, "" if unmarked else hit


def tool_name(s: State, p: Program, needle: str, head: str, hit: str) -> str:
    """The name that the head of a call tells behind the needle: up to white space or a mark. `hit` ended the head."""
    words = f"^{head}$".split(needle, 1)[1].removesuffix("$").split()
    name = words[0].partition("<")[0] if words else ""
    return name if hit else _unmarked_name(s, p, needle, head, name)


def _unmarked_name(s: State, p: Program, needle: str, head: str, written: str) -> str:
    """The offered tool that a head names whose marks were taken out, so that a word may stand right behind the name.

    All else in it are words of which heads are made, but for one right before the body, which tells its kind.
    """
    before, _, behind = head.partition(needle.strip("^$"))
    kind = behind.rpartition(" ")[2]
    odd = {*head_words(before), *behind.split()[1:]} - {*p.vocabulary, kind}
    stems = [written.removesuffix(word) for word in ("", *p.vocabulary) if written.endswith(word)]
    names = {name for stem in stems if s.is_tool(name := s.called(stem))}
    if odd:
        names.clear()
    if len(names) != 1:
        raise Malformed("no message")
    s.note("missing-opener")
    return names.pop()


def may_begin(s: State, p: Program, bare: str) -> Callable[[str], bool] | None:
    """Tells of the beginning of a head whether there may be such a one, where only the names of offered tools count."""
    if bare:
        return is_bare
    if not p.d.guard or s.tools is None or p.d.header is None:
        return None
    needles = [needle.strip("^$") for needle, _ in p.d.header.routes]
    return lambda head: any([s.begins(head), *(needle.startswith(head.strip()) for needle in needles if needle)])
