"""Checks that a dialect reads a call that it writes itself."""

from __future__ import annotations

from functools import lru_cache

from ..errors import UsageError
from ..types import Tool, ToolCall
from .decode import parse
from .dialect import Dialect, Raw
from .prompt.calls import write_calls

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@lru_cache(512)
def readable(d: Dialect) -> Dialect:
    """Returns the dialect. Raises UsageError if it does not find a call that it wrote: it would find none at all."""
    try:
        call = _sample(d)
        written = write_calls([call], d)
        calls = parse(written, d, [Tool(call.name, "", SCHEMA)]).calls
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"the dialect {d.name!r} cannot write and read a call: {type(error).__name__}: {error}"
        ) from error
    if all(one.name != call.name for one in calls):
        raise UsageError(
            f"the dialect {d.name!r} does not find the call that it writes, {written!r:.200}: put literals between the call's "
            "parts and around them, so that each part has an end"
        )
    return d


def _sample(d: Dialect) -> ToolCall:
    """A call as a model may write it: of the dialect's own tool, if it writes code for one."""
    raw = next((part for part in d.call if isinstance(part, Raw)), None)
    return ToolCall("call_1", raw.tool, {raw.key: "x"}) if raw else ToolCall("call_1", "weather", {"city": "Oslo"})
