"""What follows from a dialect, worked out once: what may open what, and where."""

from __future__ import annotations

from functools import lru_cache

from .scan import marks
from .syntax import Dialect, JsonCall, Part

CALL, THINK, FRAME, CODE = "call", "think", "frame", "code"


class Program:
    """The words that a reader of the dialect looks for. `calls`: calls are among them.

    `formal` open a call as the dialect writes it, `bare` in another accepted form, `fences` around either.
    `fresh` maps what may come first (in a reply, or after a call or a thought) to its kind, `inside` what may
    come in a text. `strays` are the closers that a model may write once too often.
    """

    def __init__(self, d: Dialect, calls: bool) -> None:
        self.d = d
        self.formal = first_words(d.open or d.call[0]) if calls else ()
        self.bare = tuple(w for form in d.forms for w in first_words(form[0])) if calls else ()
        if calls and (d.guard or d.forms):
            self.bare += ("[",)
        self.openers = self.formal + self.bare
        self.fences = dict(d.fences) if self.bare else {}
        kinds = dict.fromkeys((*self.openers, *self.fences), CALL)
        space = d.open[: len(d.open) - len(d.open.lstrip())]
        self.fresh = dict(kinds)
        self.inside = kinds | {d.before + w: CALL for w in kinds} | {space + w: CALL for w in self.formal}
        if calls:
            self.fresh |= dict.fromkeys(d.frame, FRAME)
        if self.bare:
            self.inside["`{"] = CODE  # inline code: it only talks about JSON
        if d.thinking:
            word, close = d.thinking.open.strip(), d.thinking.close.strip()
            self.fresh[word] = self.inside["\n" + word] = THINK
            lines = ("\n" + close,) if d.thinking.close.startswith("\n") else ()
            self.closers = marks((close, *lines))
        self.marks = marks(tuple(self.inside)) if self.inside else None
        self.strays = stray_words(d) if calls else ()

    def starts_in_thought(self, prompt: str) -> bool:
        """Does the prompt end by opening a thought?"""
        thinking = self.d.thinking
        return thinking is not None and prompt[-1000:].rstrip().endswith(thinking.open.strip())


def first_words(part: Part) -> tuple[str, ...]:
    """What may come first in a part."""
    return ("{",) if isinstance(part, JsonCall) else tuple(part.split()[:1])


def stray_words(d: Dialect) -> tuple[str, ...]:
    """The closers that a model may write once too often after a call."""
    last = d.call[-1]
    words = (*(last.split()[-1:] if isinstance(last, str) else ("}",)), *d.close.split()[-1:])
    return (*words, d.items[2].strip()) if d.items else words


@lru_cache(512)
def program(d: Dialect, calls: bool) -> Program:
    """The program of a dialect, made once."""
    return Program(d, calls)
