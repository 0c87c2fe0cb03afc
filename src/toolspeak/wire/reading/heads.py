"""The head of a message: what it says, and what may be one."""

from __future__ import annotations

from collections.abc import Callable

from .head_words import head_words, is_bare
from .lexicon import TEXT, Program
from .source import Malformed
from .state import State


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


def tool_name(text: str) -> str:
    """The name that a head tells: up to white space or a mark."""
    words = text.removesuffix("$").split()
    return words[0].partition("<")[0] if words else ""


def unmarked_name(s: State, p: Program, written: str) -> str:
    """The offered tool that a head names whose marks were taken out, so that a word may stand right behind the name."""
    words = ("", *p.vocabulary)
    names = {
        name for word in words if written.endswith(word) and s.is_tool(name := s.called(written.removesuffix(word)))
    }
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
    return lambda head: s.begins(head) or any(needle.startswith(head.strip()) for needle in needles if needle)
