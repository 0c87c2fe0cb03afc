"""Shortens a refused reply for the conversation in which the model is asked again.

The model has to see what it wrote, and a conversation needs the call that a result answers. But arguments of megabytes
would fill the prompt, and no model can write them again from there. So a reply beyond ECHOED loses the middle of its long
values, with a mark that says how much is left out. Attempts and steps keep all of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import islice
from typing import Any

from ..schema import nonblocking_json
from ..types import Reply, ToolCall, copy_with

ECHOED = 100_000
"""Characters of a call's arguments, and of a text, that stay whole. That is more than most models can write in a reply."""
VALUE = 4_000
"""Characters of a value that stay, if the arguments are longer."""
NAMES = 20
"""Arguments that stay, if they are longer."""


def shortened(reply: Reply, refused: Collection[ToolCall], *, text: bool = False) -> Reply:
    """The reply with long arguments of its refused calls shortened; with `text`, also a long text."""
    if not any((refused, text)):
        return reply
    calls = tuple(_shortened_call(call) if call in refused else call for call in reply.calls)
    content = _marked(reply.text, ECHOED) if text else reply.text
    return copy_with(reply, calls=calls, text=content)


def _shortened_call(call: ToolCall) -> ToolCall:
    if len(call.json) <= ECHOED or not call.whole:  # those of a call that is not whole are left out anyway
        return call
    arguments = {_marked(name): _shortened_value(value) for name, value in islice(call.arguments.items(), NAMES)}
    if len(call.arguments) > NAMES:
        arguments["…"] = f"[{len(call.arguments) - NAMES:,} more arguments are left out here]"
    return replace(call, arguments=arguments, json=nonblocking_json.dumps(arguments))


def _shortened_value(value: Any) -> Any:
    if isinstance(value, str):
        return _marked(value)
    text = nonblocking_json.dumps(value)
    return value if len(text) <= VALUE else _marked(text)


def _marked(text: str, most: int = VALUE) -> str:
    """The text; if it is longer than `most`, without its middle, and with a mark in its place."""
    if len(text) <= most:
        return text
    half = VALUE // 2
    return f"{text[:half]} … [{len(text) - 2 * half:,} characters are left out here] … {text[-half:]}"
