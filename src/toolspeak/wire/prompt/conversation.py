"""Writes a conversation with tools in a dialect's words, as chat messages without tool fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ...errors import TemplateError
from ...schema.nonblocking_json import loads_or
from ...types import Message, Note, Tool
from ..dialect import (
    DATE,
    EXAMPLE,
    ID,
    INDEX,
    NAME,
    RESULT,
    SYSTEM,
    TOOL_NAMES,
    TOOLS,
    USER,
    Dialect,
    Results,
    Slot,
    When,
)
from ..memo import Memo
from .assistant import assistant_turn, example, worked_calls
from .calls import dumps, write_tools
from .conversation_form import id_form, joined_users, with_ids
from .turns import Turn

OPENING: tuple[str | Slot | When, ...] = (
    "You can call tools. These are offered, each with the JSON Schema of its parameters:\n",
    TOOLS,
    "\n\nTo call one, write exactly in this form, with the name of an offered tool and its own parameters:\n",
    EXAMPLE,
    "\nWithout need of a tool, answer in plain text.",
)
"""The opening for a dialect without its own."""


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """The content of a prompt besides the conversation."""

    tools: tuple[Tool[..., Any], ...] = ()
    date: str = ""
    thinking: bool | None = None
    choice: str = "auto"
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    native: bool = False


def tell(turns: Sequence[Turn], d: Dialect, want: PromptOptions, notes: list[Note]) -> list[Message]:
    """The conversation as messages: first the declaration of the tools, with calls and results in the dialect."""
    speech = d.speech
    form = id_form(d)
    out, rest = opened(with_ids(turns, form) if form else turns, d, want, notes)
    results = speech.native_results if want.native and speech.native_results else speech.results
    row: list[Turn] = []
    count = 0
    for turn in rest:
        if row and (turn.role != "tool" or not results.grouped):
            out.append(_results(row, results))
            row = []
        if turn.role == "tool":
            number = turn.place if INDEX in d.call else max(turn.index, 0)
            row.append(replace(turn, index=number + d.index_base))
        elif turn.role == "assistant":
            out.append({"role": "assistant", "content": _assistant_turn(turn, d, notes, count)})
            count += len(turn.calls)
        elif turn.role == "user":
            out.append({"role": "user", "content": speech.user + turn.text})
        elif speech.alternate:
            raise TemplateError("Invalid role: expected the system message first, and only once")
        else:
            out.append({"role": "system", "content": turn.text})
    if row:
        out.append(_results(row, results))
    return out


def opened(
    turns: Sequence[Turn], d: Dialect, want: PromptOptions, notes: list[Note]
) -> tuple[list[Message], list[Turn]]:
    """The first message, which declares the tools, if there is one; and the turns that it does not include."""
    speech = d.speech
    rest = _joined(turns) if speech.alternate else list(turns)
    if speech.strip:
        rest = [replace(turn, text=turn.text.strip()) for turn in rest]
    system = rest.pop(0).text if rest and rest[0].role == "system" else None
    return _opening(rest, system, d, want, notes), rest


def _joined(turns: Sequence[Turn]) -> list[Turn]:
    """Consecutive user turns merged; consecutive assistant turns are rejected."""
    if any(one.role == other.role == "assistant" for one, other in pairwise(turns)):
        raise TemplateError("Consecutive assistant messages are not allowed")
    return joined_users(turns, [])


def _opening(rest: list[Turn], system: str | None, d: Dialect, want: PromptOptions, notes: list[Note]) -> list[Message]:
    """The first message, which declares the tools. Removes the user's turn from `rest` if it is included."""
    speech = d.speech
    inside = USER in speech.opening
    if not want.tools and not inside:
        return [] if system is None else [{"role": "system", "content": system}]
    user = rest.pop(0).text if inside and rest and rest[0].role == "user" else ""
    if not want.tools:
        text = "\n\n".join(filter(None, (system, user)))
        return [{"role": "user", "content": text}] if text or not rest else []
    if inside:
        text = _declared(d, system, user, want)
    else:  # cached, since it is the same for these tools and this system text
        key = (d, system, want.date, want.thinking, _functions(want))
        text = _openings.get(want.tools, key, lambda: _declared(d, system, "", want), len)
    order = _order(want, d, notes)
    return [{"role": "user" if inside else "system", "content": text + order}]


_openings: Memo[str] = Memo()


def _declared(d: Dialect, system: str | None, user: str, want: PromptOptions) -> str:
    """The opening, with the examples of tools."""
    return _filled(d, system, user, want) + worked_calls(want.tools, d)


@lru_cache(256)
def tells_date(d: Dialect) -> bool:
    """Whether a dialect's opening has a place for the date."""
    return any(DATE in (part.parts if isinstance(part, When) else (part,)) for part in _opening_of(d))


def _opening_of(d: Dialect) -> tuple[str | Slot | When, ...]:
    return d.speech.opening or OPENING


def _functions(want: PromptOptions) -> str | None:
    """The declaration of tools that the caller passes as a variable, as for some templates."""
    declared = want.variables.get("functions")
    return declared if isinstance(declared, str) else None


def _parts(opening: Sequence[str | Slot | When], want: PromptOptions) -> Iterator[str | Slot]:
    """The parts that apply to these options."""
    there = {"thinking": bool(want.thinking), "date": bool(want.date)}
    for part in opening:
        if not isinstance(part, When):
            yield part
        elif there[part.what]:
            yield from part.parts


def _filled(d: Dialect, system: str | None, user: str, want: PromptOptions) -> str:
    """The opening with its holes filled."""
    speech, opening = d.speech, _opening_of(d)
    declared = _functions(want)
    values = {
        SYSTEM: speech.system if system is None else system.strip() if speech.strip else system,
        USER: user,
        TOOLS: write_tools(want.tools, speech.tools) if declared is None else declared,
        TOOL_NAMES: ", ".join(sorted(tool.name for tool in want.tools)),
        DATE: want.date,
        EXAMPLE: example(d, [tool.name for tool in want.tools]) if EXAMPLE in opening else "",
    }
    text = "".join(part if isinstance(part, str) else values[part] for part in _parts(opening, want))
    return _behind(system if SYSTEM not in opening else "", text) if values[SYSTEM] else _without_gap(text, d)


def _behind(system: str | None, text: str) -> str:
    """The text after a system text that it does not include."""
    before = (system or "").strip()
    return f"{before}\n\n{text}" if before else text


def _without_gap(text: str, d: Dialect) -> str:
    """The text without what would separate it from a system text before it, as a layout that trims turns writes it."""
    trims = d.layout.strip if d.layout else True
    return text.lstrip() if trims else text


def _order(want: PromptOptions, d: Dialect, notes: list[Note]) -> str:
    """The sentence that demands a call, for a model that only its prompt can make call."""
    if want.choice in ("auto", "none"):
        return ""
    if d.layout is not None:
        notes.append(Note("choice-not-told", want.choice))
        return ""
    wanted = "one of the tools" if want.choice == "required" else f"the tool {want.choice}"
    return f"\nThis time you have to call {wanted}."


def _assistant_turn(turn: Turn, d: Dialect, notes: list[Note], first: int) -> str:
    """An assistant's turn: its text, its calls in the dialect, or both."""
    if turn.thought:
        notes.append(Note("thought-lost", "earlier thoughts are left out"))
    if turn.calls and turn.text.strip() and d.speech.exclusive:
        notes.append(Note("text-lost", "a turn of this dialect is a text or calls: the text beside calls is left out"))
    return assistant_turn(turn.text, turn.calls, d, first)


def _results(row: Sequence[Turn], how: Results) -> Message:
    """Tool results as one message."""
    if how.record:
        body = dumps([_record(turn, how) for turn in row], how.indent, how.ascii)
        return {"role": how.role, "content": how.open + body + how.close}
    texts = ("".join(p if isinstance(p, str) else _field(turn, p) for p in how.each) for turn in row)
    return {"role": how.role, "content": how.open + how.between.join(texts) + how.close}


def _field(turn: Turn, slot: Slot) -> str:
    return {RESULT: turn.text, NAME: turn.name or "the tool", ID: turn.id, INDEX: str(turn.index)}[slot]


def _record(turn: Turn, how: Results) -> dict[str, object]:
    if not turn.id:
        raise TemplateError('"tool_call_id" must be provided for message with role "tool"')
    return {
        key: loads_or(turn.text, {"result": turn.text}) if how.decoded and slot is RESULT else _field(turn, slot)
        for key, slot in how.record
    }
