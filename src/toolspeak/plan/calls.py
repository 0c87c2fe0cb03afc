"""Checks a model's calls against the offered tools and coerces their arguments. Builds the messages for replies,
results and errors.

A server may send a call without a name, or with one that no tool can have. Servers and chat templates refuse a
conversation with such a name. So the conversation has another one in its place (`name_in_conversation`), and the result of the call
says what the model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from ..api.tool_errors import error_text
from ..errors import InvalidCall
from ..schema import nonblocking_json
from ..schema.check import AT_MOST, check, not_json, repeated
from ..schema.coerce import coerce_and_validate
from ..schema.numbers_as_text import texts_of_numbers
from ..schema.phrases import beginning, clipped
from ..schema.suggestions import did_you_mean, listed, near
from ..schema.value_count import has_more
from ..types import Message, Note, Problem, Reply, Tool, ToolCall, Usage
from ..wire.reading.doubtful import DOUBTFUL, DRAFTED
from ..wire.reading.reply_size_limits import CALL_VALUES

UNNAMED = "unnamed"
"""What stands in a conversation for the name of a call that has none."""
LONGEST_NAME = 128
"""Characters of the longest name that a tool can have."""
_FOREIGN = re.compile(r"[^\w.\-/:]+")
"""Matches characters that the name of no tool has."""
AT_LIMIT = Note("cut-call", "the reply reached the limit of its tokens")
"""The note of a call that the server cut because the reply reached `max_tokens`, or the end of the context."""


def reached(limit: int | None, usage: Usage) -> bool:
    """Whether the reply has as many tokens as the request allowed. Some servers report a reply that they cut there as
    complete."""
    return usage.completion_tokens >= (inf if limit is None else limit)


def checked(call: ToolCall, tools: Sequence[Tool[..., Any]], finish: str = "") -> tuple[ToolCall, list[Problem]]:
    """The call with its arguments coerced (losslessly, with notes), and all its problems. `finish` is how its reply
    ended."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return call, [unknown(call.name, [tool.name for tool in tools])]
    if not call.whole:
        call = (
            replace(call, notes=(*call.notes, AT_LIMIT)) if finish == "length" and AT_LIMIT not in call.notes else call
        )
        return call, [broken(call, finish)]
    return judged(call, tool, {})


def judged(call: ToolCall, tool: Tool[..., Any], injected: Mapping[str, Any]) -> tuple[ToolCall, list[Problem]]:
    """A complete call of that tool with its arguments coerced, and their problems. Plans and the toolbox both use this
    check."""
    values, as_text = texts_of_numbers(tool, call.arguments, call.json)
    arguments, notes, valid = coerce_and_validate(tool, values, call.json)
    notes = (*as_text, *notes)
    problems = repeated(call.json) + (not_json(arguments)[:AT_MOST] if valid else check(tool, arguments))
    problems = problems or _unbuildable(tool, arguments, injected)
    if notes:
        text = nonblocking_json.dumps(arguments, len(call.json))
        return replace(call, arguments=arguments, json=text, notes=(*call.notes, *notes)), problems
    return ToolCall(call.id, call.name, arguments, call.json, call.notes, call.whole), problems


def _unbuildable(tool: Tool[..., Any], arguments: Mapping[str, Any], injected: Mapping[str, Any]) -> list[Problem]:
    """Problems of values that a Python type rejects although its JSON Schema allows them, such as "abc" for a Decimal."""
    try:
        if tool.build is not None:
            tool.build(arguments, injected)
    except InvalidCall as error:
        return list(error.problems)
    return []


def unknown(name: str, names: Sequence[str]) -> Problem:
    """The problem of a name that is not offered."""
    offered = listed(names) or "none"
    if not name.strip():
        return Problem("", f"one of: {offered}", name, f"The call has no name of a tool. The tools are: {offered}.")
    hint = did_you_mean(near(name, names))
    return Problem("", f"one of: {offered}", name, f"There is no tool {name!r}.{hint} The tools are: {offered}.")


CUT_AT_LIMIT = "the reply was cut off at its limit of tokens (finish reason `length`). Raise max_tokens, or ask for shorter arguments"
"""What to say of a reply that reached its limit: why, and what to do."""


def draft_note(call: ToolCall) -> Note | None:
    """The note that the call was a draft in a thought; its detail is what ended the thought. None if it was none."""
    return next((note for note in call.notes if note.rule == DRAFTED), None)


def broken(call: ToolCall, finish: str = "") -> Problem:
    """The problem of a call whose text was cut, is no JSON object, or is ambiguous. `finish` is how its reply ended, ""
    if unknown."""
    if draft := draft_note(call):
        return Problem(
            "",
            "a call behind the thought",
            beginning(call.json, 200),
            f"The call to {call.name!r} was not run: it stood before {draft.detail}, which ends a thought, so it was a draft. "
            "If you need the call, write it behind the thought; if not, answer in words.",
        )
    why = next((note for note in call.notes if note.rule in DOUBTFUL), None)
    if why:
        reason = f" ({why.rule}: {why.detail})" if why.detail else f" ({why.rule})"
        return Problem(
            "",
            "one JSON object of arguments, and nothing beside it",
            beginning(call.json, 200),
            f"The call to {call.name!r} was not run: something of it would be left out, or it can be read in more than one way{reason}. Write the whole call "
            "again, every argument once, and nothing else within it.",
        )
    why = _why(call, finish)
    received = (
        f"Its arguments arrived up to: {clipped(call.json, 200)}" if call.json else "None of its arguments arrived"
    )
    message = f"The call to {call.name!r} was not run: {why}. {received}"
    return Problem("", "a whole call with a JSON object of arguments", clipped(call.json, 200), message)


def _why(call: ToolCall, finish: str) -> str:
    """Why the arguments of a call that is not whole cannot be used."""
    if AT_LIMIT in call.notes:
        return CUT_AT_LIMIT
    rules = {note.rule: note.detail for note in call.notes}
    reason = "" if finish in ("", "tool_calls") else f" (finish reason `{finish}`)"
    ended = f"it was cut off: the reply ended{reason} before the call did"
    if rules.get("malformed"):
        ended = f"what follows the arguments below is not valid there ({rules['malformed']})"
    elif "quote-in-string" in rules:
        ended += ", or a quotation mark in a string is not escaped"
    if has_more(call.json, CALL_VALUES):
        return f"its arguments contain more than {CALL_VALUES:,} values"
    if len(call.json) > DIAGNOSED:
        return f"{ended}, or its arguments are not valid JSON"
    return _not_json(call.json) or ended


def _not_json(text: str) -> str:
    """What is wrong with a JSON text of arguments; "" if it only ends too early."""
    try:
        value = json.loads(text)
        return "" if isinstance(value, dict) else f"its arguments are {_kind(value)}, and no JSON object"
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()):
            return ""
        return (
            f"its arguments are not valid JSON: {error.msg} at character {error.pos + 1:,}, {text[error.pos :][:20]!r}"
        )
    except (ValueError, RecursionError) as error:
        return f"its arguments cannot be read: {error}"


def _kind(value: Any) -> str:
    """What a JSON value is."""
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else json.dumps(value)


DIAGNOSED = 1_000_000
"""Characters of the longest arguments that are read again to say what is wrong with them."""


def problem_text(problems: Sequence[Problem]) -> str:
    """Problems as a text for the model."""
    return error_text("; ".join(problem.message for problem in problems))


def assistant(reply: Reply) -> Message:
    """A reply as a message of the conversation."""
    message: Message = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    if reply.thought:
        message["reasoning_content"] = reply.thought
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": name_in_conversation(call), "arguments": arguments_text(call)},
            }
            for call in reply.calls
        ]
    return message


def name_in_conversation(call: ToolCall) -> str:
    """The name of a call in a conversation: its own, or what is nearest to it among the names that a tool can have."""
    legal = _FOREIGN.sub("_", call.name.strip()[:LONGEST_NAME])
    return legal if legal.strip("_") else UNNAMED


def arguments_text(call: ToolCall) -> str:
    """The arguments of a call as JSON text. Those of a broken call are an empty object, since templates parse them."""
    return nonblocking_json.dumps(call.arguments, len(call.json))


def written(call: ToolCall) -> str:
    """The arguments of a call as canonical text, independent of their order and whitespace; large ones as they came."""
    if not call.whole:
        return call.json
    large = len(call.json) >= nonblocking_json.LARGE  # sorting and writing so much is one long step
    return call.json if large else json.dumps(call.arguments, sort_keys=True, default=str)


def answer(call: ToolCall, text: str) -> Message:
    """A tool result as a message."""
    return {"role": "tool", "tool_call_id": call.id, "name": name_in_conversation(call), "content": text}


def not_allowed(call: ToolCall, choice: str) -> str:
    """Why the choice of the request forbids a call, whatever its arguments; "" if it does not."""
    if choice == "none":
        return "No tool may be called now. Answer in words."
    return "" if choice in ("auto", "required", call.name) else f"Only {choice} may be called, not {call.name}."


def one_call(reply: Reply) -> Reply:
    """The reply with its first call alone."""
    further = reply.calls[1:]
    if not further:
        return reply
    note = Note("one-call", f"left out: {', '.join(call.name for call in further)}")
    return replace(reply, calls=reply.calls[:1], notes=(*reply.notes, note))


def without_calls(reply: Reply) -> Reply:
    """The reply without its calls, if none is allowed."""
    notes = [Note("call-not-allowed", call.name) for call in reply.calls]
    return replace(reply, calls=(), finish="stop", notes=(*reply.notes, *notes))
