"""Lists what begins the turn of another role than the model's: of the user, the system or a tool.

A model that does not stop at the end of its turn writes the next ones too. Nothing in them is its reply. A head is a
start with a role behind it (`<|im_start|>user`), a mark of a role or of a result (`[INST]`, `<tool_response>`), or a
label at the beginning of a line, for a model without a known layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .dialect import Dialect

ROLES = (
    *("user", "system", "tool", "observation", "developer", "function", "ipython", "environment", "human"),
    *("User", "System", "Tool", "USER", "SYSTEM", "TOOL", "HUMAN", "OBSERVATION"),
)
STARTS = ("<|im_start|>", "<|start_header_id|>", "<start_of_turn>")
"""Starts of a turn that models of several families write."""
MARKS = ("[INST]", "[TOOL_RESULTS]", "<tool_response>", "<|user|>", "<|observation|>", "<｜User｜>")
"""Marks of a role, or of a result, that models of several families write."""
INVENTED_TURN = "invented-turn"
RULES = ("invented-result", INVENTED_TURN)
"""The rules of the notes on such a turn."""
USER_LABELS, MODEL_LABEL = ("User:", "Human:"), "Assistant:"
"""Labels of turns, for a model without a known layout. Behind the user's, the model's own is another turn too."""

_RESULT = re.compile(r"(?:tool|function)s?[\W_]?(?:response|result|output)s?|observation", re.IGNORECASE)
_ROLE = re.compile(rf"(?<![^\W_])(?:user|human|system|inst|\W*tool\W*\Z|{_RESULT.pattern})", re.IGNORECASE)
_START = re.compile(
    r"start|role|from|turn|header|\bbo[mt]\b|:bos|special|unused|~b\]|begin(?:_\Z|\||ning)", re.IGNORECASE
)
_OTHER = re.compile(
    r"/|end(?![a-z])|assistant|startoftext|endof|list|media|declaration|<\w+\|>|:(?:begin|id|name|result)|`",
    re.IGNORECASE,
)
"""Closers, and marks of the model's own turn and of declarations."""


@lru_cache(512)
def turn_heads(d: Dialect) -> dict[str, tuple[str, ...]]:
    """The marks that begin a turn of another role, with the words of which one has to follow; () if none has to."""
    marks = dict.fromkeys((*MARKS, *_labels(d), *_roles_before(d), *filter(_ROLE.search, _words(d))), ())
    return dict.fromkeys(STARTS, ROLES) | dict.fromkeys(_starts(d), ROLES) | marks


def _roles_before(d: Dialect) -> list[str]:
    """The roles with the mark behind them, if nothing begins a turn."""
    first, last = d.layout.head if d.layout else ("", "")
    return [role + last.strip() for role in (*ROLES[:4], "function result")] if last.strip() and not first else []


def _labels(d: Dialect) -> list[str]:
    """The labels at which a reply stops."""
    return [word for word in d.stop if word.endswith((":", ":**"))]


def _starts(d: Dialect) -> list[str]:
    """The dialect's own starts of a turn."""
    begins = [d.header.start.rpartition("assistant")[0]] if d.header else []
    begins += [d.layout.head[0]] if d.layout else []
    control = [word for word in _markers(d.control) if _START.search(word)]
    ends = {*d.stop, *map(str.strip, d.frame)}
    return [word for word in (*(word for word in begins if len(word) > 2), *control) if word not in ends]


def _words(d: Dialect) -> list[str]:
    """The marks of the dialect that may have a role in them."""
    results = (d.speech.results, d.speech.native_results or d.speech.results)
    opened = (part for one in results for part in (one.open, *one.each[:1]) if isinstance(part, str))
    first, last = d.layout.head if d.layout else ("", "")
    inside = (f"{first}{role}{last.strip()}" for role in ROLES[:4] if len(first) == 2)
    return _markers([*d.control, *d.stop, *opened, *inside])


def _markers(words: Iterable[str]) -> list[str]:
    """Those that are no words of letters, no closers, and no marks of the model's own turn."""
    return [word for word in map(str.strip, words) if not any((len(word) < 3, word[:1].isalnum(), _OTHER.search(word)))]


def is_result(head: str) -> bool:
    """Whether this begins the result of a tool, rather than the turn of a person."""
    return bool(_RESULT.search(head))
