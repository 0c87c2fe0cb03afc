"""Recognizes text that looks like a call and was not read as one.

A model may write a call in another dialect than the one that is read, in a form of its own, or not to its end. Such a call
is not run, because it would be guessed. But whoever takes the text for an answer should know. In a form that no dialect
reads, the signs are what an answer in words rarely has: the name of an offered tool where such forms have it, with the name
of one of its parameters where an argument would be.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import chain
from typing import Any

from ..events import CallStart, Event, Finished, Noted, TextDelta
from ..plan.calls import checked
from ..schema.phrases import beginning
from ..schema.suggestions import did_you_mean, near
from ..types import Note, Reply, Request, Tool, ToolCall
from ..wire.decode import Decoder
from ..wire.dialect import Dialect
from ..wire.finding.model_names import known
from ..wire.prompt.template_capabilities import literals
from ..wire.reading.collect import collect
from ..wire.reading.doubtful import DRAFTED, TRAILING
from .offload import LARGE, offloaded
from .read_all_dialects import DIALECTS, TRIES, DialectReading, markers, rank, ready

LONGEST = 20_000
"""Characters of the longest text that is looked through."""
PROBLEMS = 3
"""The most problems of a call that are named."""
KEYS = r"name|tool|tool_name|toolName|function|function_name|functionName|recipient_name|action"
"""Keys of a JSON object that hold the name of a tool."""
NEAR = 1_000
"""Characters between the name of a tool and that of an argument, at most."""
TAGS = r"function|function_call|invoke|tool|tool_call|tool_name|call|action|name"
"""Tags that hold the name of a tool, or begin with it."""
SPACES = r"[^\w\s<>]{0,3}\w{1,16}[^\w\s<>]{1,3}\s?"
"""The namespace of a tag, with other marks around it."""
MARKS = r"(?::\d{1,3})?(?:\s{0,4}(?:<[|｜][^<>\n]{1,40}[|｜]>|```(?:json)?)\s{0,4}|\n)?"
"""What may stand between the name of a tool and its arguments: a number, and a marker, a fence or a line break. A blank is prose."""


LOOKS = "a part of the text looks like a call of"
"""What the note on a call begins with."""
QUOTED = (
    "It is a whole call, but it stands where a text shows calls or talks about them: in quoted text, code, a comment, a list, a "
    "sentence, a thought or the turn of another role"
)
"""Why a call stays text in every dialect."""


def like_a_call(text: str, tools: Sequence[Tool[..., Any]], finish: str = "") -> Note | None:
    """What to say of a text in which something looks like a call, of a tool or of one that is nearly named so, and was
    not read as one; None where nothing does. `finish` is how the reply ended."""
    if not 0 < len(text) <= LONGEST:
        return None
    offered = [tool.name for tool in tools]
    words = _opening if any(name in text for name in offered) else literals
    reasons: list[tuple[tuple[int, ...], Dialect, ToolCall]] = []
    tries = TRIES
    for dialect in known():
        if all(word in text for word in words(dialect)):
            reading = DialectReading(dialect, Decoder(dialect, None, ""))
            ended = reading.read_whole(text, tries)
            tries -= reading.tries
            if not ended:
                break
            reply = collect(reading.events)
            if call := _nearly(reply, offered):
                order = (call.name in offered, -len(reply.text.strip()), *rank(dialect, reply, text))
                reasons.append((order, dialect, call))
    if not reasons:
        return _quoted(text, tools, tries) or _in_no_dialect(text, tools)
    order, dialect, call = max(reasons, key=lambda one: one[0])
    return Note("like-a-call", _why(call, dialect, tools, finish, words=order[1] < 0))


def _why(call: ToolCall, dialect: Dialect, tools: Sequence[Tool[..., Any]], finish: str, *, words: bool) -> str:
    """Why a call that this dialect reads stays text, and what to do. `words`: there are words beside it."""
    offered = [tool.name for tool in tools]
    looks = f"{LOOKS} {call.name} in the dialect {dialect.name}, and stays text."
    if call.name not in offered:
        return f"{looks} No tool has that name.{did_you_mean(near(call.name, offered))}"
    rules = {note.rule: note.detail for note in call.notes}
    judged = call if "cut" in rules else replace(call, whole=True)  # its arguments are known, whatever stands beside it
    why = " ".join(_sentence(problem.message) for problem in checked(judged, tools, finish)[1][:PROBLEMS])
    put = f"If it is one, put the tools into the prompt with {setting(dialect)}"
    return " ".join(filter(None, (looks, why or _place(rules, words=words), put)))


def _place(rules: Mapping[str, str], *, words: bool) -> str:
    """Why a right call stays text, by the notes on it: what stands beside it; "" if nothing does."""
    if TRAILING in rules:
        return f"The text goes on directly behind it ({beginning(rules[TRAILING], 40)!r}), so it may be a part of a sentence."
    if DRAFTED in rules:
        return f"It stands before {rules[DRAFTED]}, which ends a thought, so it is a draft."
    return "Words stand beside it, so it may be an example." if words else ""


def _quoted(text: str, tools: Sequence[Tool[..., Any]], tries: int) -> Note | None:
    """The note on a part of the text that is a right call by itself, but not in its place; None without one."""
    for tool, hit in _hits(text, tools):
        for dialect in known():
            openers = _opening(dialect) or ("{", "[", tool.name)
            start = max(text.rfind(opener, 0, hit.end()) for opener in openers)
            if min(start, tries) < 0:
                continue
            reading = DialectReading(dialect, Decoder(dialect, tools, ""))
            reading.read_whole(text[start : hit.end() + NEAR], tries)
            tries -= reading.tries
            if _is_right(reading, tools):
                return Note("like-a-call", f"{LOOKS} {tool.name}, and stays text. {QUOTED}")
    return None


def _is_right(reading: DialectReading, tools: Sequence[Tool[..., Any]]) -> bool:
    """Whether the text begins with a call that could run, whatever follows it."""
    first = next((event for event in reading.events if not isinstance(event, Noted)), None)
    if not isinstance(first, CallStart):
        return False
    call = collect(reading.events).calls[0]
    ended = not any(note.rule in ("cut", "malformed") for note in call.notes)
    return not checked(replace(call, whole=ended), tools)[1]


def setting(dialect: Dialect) -> str:
    """How to name a dialect, in the library, on the command line and in the gateway."""
    name = dialect.name
    return f"dialect={name!r} (--dialect {name}, or `dialect` of the model in the gateway's configuration)"


def _opening(dialect: Dialect) -> tuple[str, ...]:
    """The first of the dialect's markers: a call that was cut lacks the others."""
    return markers(dialect)[:1]


def _sentence(message: str) -> str:
    """A problem as a sentence."""
    return f"{message[:1].upper()}{message[1:].rstrip('.')}."


def _nearly(reply: Reply, offered: Sequence[str]) -> ToolCall | None:
    """The first call of a tool that is offered, else of one that is nearly named so, else None."""
    exact, close = (c for c in reply.calls if c.name in offered), (c for c in reply.calls if near(c.name, offered))
    return next(chain(exact, close), None)


def _hits(text: str, tools: Sequence[Tool[..., Any]]) -> Iterator[tuple[Tool[..., Any], re.Match[str]]]:
    """The offered tools that the text seems to call, each with the first sign of that."""
    for tool in (one for one in tools if one.name in text):
        hits = (re.search(pattern, text) for pattern in _signs(tool))
        if hit := next(filter(None, hits), None):
            yield tool, hit


def _in_no_dialect(text: str, tools: Sequence[Tool[..., Any]]) -> Note | None:
    """A note of the first offered tool that the text seems to call; None where it calls none."""
    tool = next((tool for tool, _ in _hits(text, tools)), None)
    if tool is None:
        return None
    looks = f"{LOOKS} {tool.name} that is not whole, or in a form that no dialect has"
    return Note("like-a-call", f"{looks}, and stays text. If it is one, try other forms: `toolspeak tune`")


def _signs(tool: Tool[..., Any]) -> Iterator[str]:
    """Patterns of what seems to call a tool."""
    name = re.escape(tool.name)
    yield rf"<(?:{TAGS})\b[^<>\n]{{0,40}}[=>\"'\s]{name}(?![\w-])"  # <function=f>, <invoke name="f">
    yield rf"<{SPACES}(?:{TAGS})\b[^<>\n]{{0,40}}=\s?[\"']?{name}(?![\w-])"  # <ns:invoke name="f">, <|DSML| invoke name="f">
    yield rf"<(?:{TAGS})>\s*{name}(?![\w-])"  # <tool_name>f
    yield rf"\A\s*<{name}>[\s\S]*</{name}>\s*\Z"  # <f>..</f>, and nothing else
    yield rf"(?m)^\W{{0,4}}(?:Action|Tool|Function)\s{{0,4}}:\s{{0,4}}[`\[]{{0,2}}{name}(?:[`\]]|\s*[\[({{]|\s*$)"  # Action: f[..]
    yield rf"(?<![\w.]){name}\[ARGS\]"
    keys = "|".join(map(re.escape, tool.parameters.get("properties", {})))
    if not keys:
        return
    yield rf"<{name}>\s*(?:<(?:{keys})>|\{{\s*[\"'](?:{keys})[\"']\s*:)"  # <f><k>.., <f>{"k": ..
    yield rf"<arg_key>\s*(?:{keys})\s*</arg_key>\s*<arg_value>"
    yield rf"(?<![\w.])(?:functions\.)?{name}{MARKS}\{{\s*[\"'](?:{keys})[\"']\s*:"  # functions.f:0{"k": ..
    yield rf"(?<![\w.]){name}\(\s*(?:{keys})\s*=(?!=)"  # f(k=..)
    yield rf"(?<![\w.]){name}\(\s*\{{\s*[\"']?(?:{keys})\b"  # f({k: ..})
    yield rf"[\"']{name}[\"']\s*:\s*\{{\s*[\"'](?:{keys})[\"']"  # {"f": {"k": ..}}
    yield rf"[\"'](?:{KEYS})[\"']\s*:\s*[\"']{name}[\"'][\s\S]{{0,{NEAR}}}?[\"'](?:{keys})\\?[\"']\s*:"


def with_hint(events: AsyncGenerator[Event], request: Request) -> AsyncGenerator[Event]:
    """The events, with a note where the text of a reply without calls looks like a call in another dialect."""
    return _hinting(events, request) if may_hold_calls(request) and request.choice != "none" else events


async def _hinting(events: AsyncGenerator[Event], request: Request) -> AsyncGenerator[Event]:
    text, tools = "", request.tools or ()
    async with aclosing(events) as source:
        async for event in source:
            if isinstance(event, TextDelta):
                text += event.text if len(text) <= LONGEST else ""
            elif isinstance(event, CallStart):
                tools = ()
            elif isinstance(event, Finished) and tools:
                size = DIALECTS * len(text) if ready() else LARGE
                if note := await offloaded(size, like_a_call, text, tools, event.finish):
                    yield Noted(note)
            yield event


def may_hold_calls(request: Request) -> bool:
    """Whether the text of a reply to this request is read for calls."""
    return bool(request.tools) and request.schema is None
