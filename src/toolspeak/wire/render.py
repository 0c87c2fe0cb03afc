"""Messages and tools to what a model is asked: the exact prompt, and messages for a server that knows no tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

from ..errors import TemplateError
from ..types import Message, Note, Tool
from .engine import DATE_FORM, render_template
from .speech import Wanted, tell
from .syntax import Dialect, Layout
from .template import abilities, speaks, tokens
from .turns import Turn, cleaned, message_of, turns_of
from .write import declared

PLAIN = Layout(("", ":\n"), "\n\n")
"""A layout for a model of which none is known: role, colon, text."""
PLAIN_STOP = ("\nUser:",)
INVISIBLE = "\u200b"


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a model is asked. `prompt` is a text to continue; `messages` say the same to a chat server that
    knows no tools; `stop` ends the reply; `notes` tell what was lost or changed on the way."""

    prompt: str
    messages: list[Message] = field(default_factory=list[Message])
    stop: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def render(
    messages: Sequence[Message],
    tools: Sequence[Tool[..., Any]] | None,
    d: Dialect,
    template: str | None = None,
    thinking: bool | None = None,
    now: datetime | None = None,
    continue_final: bool | None = None,
    variables: Mapping[str, Any] | None = None,
    choice: str = "auto",
) -> Rendered:
    """The conversation as the dialect tells it, with the model's own chat `template` where one is given.

    Without tools, or with `choice` none, nothing of tools is told. `now` is the date to tell, `variables`
    (bos_token, datetime, ...) go before what would be worked out. `continue_final` leaves the last
    message, an assistant's, open. A control marker in a text from outside is broken by a zero-width space
    (U+200B) after its first character, in the prompt, with a note; nothing else is ever changed. Raises
    TemplateError for what is no conversation and for what a template refuses.
    """
    notes: list[Note] = []
    turns = turns_of(messages, notes)
    offered = tuple(tools or ()) if choice != "none" else ()
    if choice not in ("auto", "none", "required") and choice not in {tool.name for tool in offered}:
        names = ", ".join(tool.name for tool in offered)
        raise TemplateError(f"expected a choice of auto, none, required or an offered tool ({names}), got {choice!r}")
    if continue_final and turns[-1].role != "assistant":
        raise TemplateError(f"expected an assistant's message to continue, the last one is the {turns[-1].role}'s")
    want = Wanted(offered, _date(now, variables), thinking, choice, dict(variables or {}))
    lost: list[Note] = []
    told = tell(turns, d, want, lost)
    open_ended = bool(continue_final)
    if template is not None:
        prompt, native = _by_template(template, turns, d, want, now, open_ended, notes)
        return Rendered(prompt, told, (), _unique(notes if native else notes + lost))
    clean = _cleaner(d.layout.control if d.layout else (), notes)
    native = (
        tell([cleaned(t, clean) for t in turns], d, replace(want, clean=clean, native=True), []) if d.layout else told
    )
    prompt = _lay_out(native, d, want, open_ended)
    return Rendered(prompt, told, d.stop if d.layout else PLAIN_STOP, _unique(lost + notes))


def _date(now: datetime | None, variables: Mapping[str, Any] | None) -> str:
    given = (variables or {}).get("datetime")
    return str(given) if given is not None else now.strftime(DATE_FORM).strip() if now else ""


def _unique(notes: list[Note]) -> tuple[Note, ...]:
    return tuple(dict.fromkeys(notes))


def _cleaner(markers: Sequence[str], notes: list[Note]) -> Callable[[str], str]:
    """A function that breaks control markers in a text from outside."""
    if not markers:
        return str
    found = re.compile("|".join(re.escape(m) for m in sorted(markers, key=len, reverse=True)))

    def broken(m: re.Match[str]) -> str:
        notes.append(Note("control-marker", m[0]))
        return m[0][0] + INVISIBLE + m[0][1:]

    return lambda text: found.sub(broken, text)


def _lay_out(messages: list[Message], d: Dialect, want: Wanted, open_ended: bool) -> str:
    """The turns as one text. An open-ended one stops where the last message does."""
    layout = d.layout or PLAIN
    before, after = layout.head
    ended = d.header.ends if d.header else ()  # a call that is a message of its own has ended its turn
    title: Callable[[str], str] = str.capitalize if layout is PLAIN else str
    out = [str(want.variables.get("bos_token", layout.bos))]
    for message in messages:
        content = str(message.get("content") or "")
        content = content.strip() if layout.strip else content
        end = "" if ended and content.endswith(ended) else layout.end
        out += [before, title(str(message.get("role"))), after, content, end]
    if open_ended:
        return "".join(out[:-1])
    return "".join((*out, before, title("assistant"), after)).rstrip("\n" if layout is PLAIN else "")


def _by_template(
    template: str,
    turns: list[Turn],
    d: Dialect,
    want: Wanted,
    now: datetime | None,
    open_ended: bool,
    notes: list[Note],
) -> tuple[str, bool]:
    """The prompt by the model's own template, and whether it speaks the dialect itself; else tools are told in words."""
    clean = _cleaner((*tokens(template), *(d.layout.control if d.layout else ())), notes)
    safe = [cleaned(turn, clean) for turn in turns]
    native, known = speaks(template, d), abilities(template)
    tools: list[Any] = []
    variables = dict(want.variables)
    if native:
        rows = [message_of(turn, known.objects) for turn in safe]
        tools = [_cleaned_data(declared(tool), clean) for tool in want.tools]
        notes += [Note("choice-not-told", want.choice)] if want.choice not in ("auto", "none") else []
    else:
        rows = [dict(m) for m in tell(safe, d, replace(want, clean=clean), [])]
    if not known.system:
        rows = _without_system(rows, notes)
    if want.thinking is not None:
        variables["enable_thinking"] = want.thinking
    prompt = render_template(template, rows, tools, variables=variables, now=now, generate=not open_ended)
    _note_missing(prompt, rows, notes)
    return (_cut(prompt, rows, notes) if open_ended else prompt), native


def _cleaned_data(value: object, clean: Callable[[str], str]) -> Any:
    """JSON data with every text in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(k)): _cleaned_data(v, clean) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_cleaned_data(v, clean) for v in cast("Sequence[Any]", value)]
    return value


def _without_system(rows: list[dict[str, Any]], notes: list[Note]) -> list[dict[str, Any]]:
    """For a template that has no system turn: its text goes before the first user's."""
    if rows[0]["role"] != "system":
        return rows
    system, rest = rows[0], rows[1:]
    notes.append(Note("system-moved", "the template has no system turn: its text stands before the user's"))
    if rest and rest[0]["role"] == "user":
        return [{**rest[0], "content": f"{system['content']}\n\n{rest[0]['content']}"}, *rest[1:]]
    return [{"role": "user", "content": system["content"]}, *rest]


def _note_missing(prompt: str, rows: list[dict[str, Any]], notes: list[Note]) -> None:
    """Tell what of the messages did not come into the prompt."""
    for i, row in enumerate(rows):
        for rule, text in (("text-lost", row.get("content")), ("thought-lost", row.get("reasoning_content"))):
            if isinstance(text, str) and text.strip() and text.strip() not in prompt:
                notes.append(Note(rule, f"message {i}"))
        names = (call["function"]["name"] for call in row.get("tool_calls") or ())
        notes.extend(Note("call-lost", f"message {i}: {name}") for name in names if name not in prompt)


def _cut(prompt: str, rows: list[dict[str, Any]], notes: list[Note]) -> str:
    """The prompt up to where the last message ends."""
    text = str(rows[-1].get("content") or "").strip()
    end = prompt.rfind(text) if text else -1
    if end < 0:
        notes.append(Note("not-continued", "the template does not show the last message"))
        return prompt
    return prompt[: end + len(text)]
