"""Fast path for a call that is one JSON object, has arrived completely and is written exactly in the dialect. It takes
a third of the time.

Most replies arrive in one piece, and most calls are written as the dialect specifies. One look at the text gives the
same events as `json_call_reader`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ..dialect import ARGS, NAME, JsonCall
from ..reading.call import Call
from ..reading.json_tokens import quoted, whole_value
from ..reading.state import State

BLANK = r"\s{0,8}+"
CLOSE = re.compile(rf"{BLANK}\}}").match
NOTHING = re.compile("(?!)").match


def read(s: State, hole: JsonCall, call: Call) -> bool:
    """Reads a complete call of an offered tool in the dialect's exact words. Returns False for any other, without
    consuming anything; `json_call_reader` then takes over."""
    parts = _parts(s, hole) if call.name is None else None
    if parts is None:
        return False
    call.name, text, value, end = parts
    s.start_call(call)
    s.emit_arguments(text)
    if s.decoded is not None:
        s.decoded[id(text)] = text, value
    s.pos = end
    call.filled = True
    s.end_call(call)
    return True


def _parts(s: State, hole: JsonCall) -> tuple[str, str, object, int] | None:
    """The name of the next call, the text and the value of its arguments, and its end; None if it is uncertain."""
    head = _head(hole)(s.text, s.pos)
    if head is None:
        return None
    arguments = whole_value(s.text, head.end()) if s.is_tool(head[1]) else None
    if arguments is None:
        return None
    value, end = arguments
    close = CLOSE(s.text, end)
    return None if close is None else (head[1], s.text[head.end() : end], value, close.end())


@lru_cache(256)
def _head(hole: JsonCall) -> Callable[[str, int], re.Match[str] | None]:
    """A matcher for a call up to the brace of its arguments, if the name and the arguments are its only slots."""
    keys = [key for key, _ in hole.keys if isinstance(key, str)]
    if len(keys) != len(hole.keys) or [slot for _, slot in hole.keys] != [NAME, ARGS]:
        return NOTHING
    if hole.encoded == "always":
        return NOTHING
    name, arguments = (re.escape(quoted(key)) for key in keys)
    colon = rf"{BLANK}:{BLANK}"
    return re.compile(rf'{BLANK}{name}{colon}"([^"\\\x00-\x1f]+)"{BLANK},{BLANK}{arguments}{colon}(?={{)').match
