"""Renders messages and tools: the exact prompt, and messages for a chat server without tool support."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ..errors import TemplateError
from ..types import Message, Note, Tool
from .dialect import Dialect, Layout
from .prompt.assistant import unsayable
from .prompt.by_template import by_template
from .prompt.control_markers import cleaned_tools, cleaned_turn, cleaner
from .prompt.conversation import PromptOptions, tell, tells_date
from .prompt.conversation_form import thoughts_apart
from .prompt.jinja import DATE_FORM
from .prompt.known_markers import control_markers
from .prompt.prefilled_thought import begun_messages, prefilled_thought, with_thought
from .prompt.turns import Turn, turns_of

PLAIN = Layout(("", ":\n"), "\n\n")
"""The layout for an unknown model: role, colon, text."""
PLAIN_STOP = ("\nUser:",)
PLAIN_LABELS = ("System:", "User:", "Assistant:", "Tool:")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The input of a model. `prompt` is a text to continue; `messages` are the same for a chat server without tool
    support; `stop` ends the reply; `notes` report what was lost or changed."""

    prompt: str
    messages: list[Message] = field(default_factory=list[Message])
    stop: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def _check_choice(choice: str, tools: Sequence[Tool[..., Any]]) -> None:
    names = [tool.name for tool in tools]
    if choice not in ("auto", "none", "required", *names):
        raise TemplateError(
            f"expected a choice of auto, none, required or an offered tool ({', '.join(names)}), got {choice!r}"
        )


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
    laid_out: bool = True,
) -> Rendered:
    """Renders the conversation in the dialect, or with the model's own chat `template` if one is given.

    Without tools, or with `choice` none, the prompt mentions no tools. `now` is the date for the prompt. `variables`
    (bos_token, datetime, ...) override computed ones. `continue_final` leaves the last message, an assistant's, open;
    if it is only a thought, the prompt ends inside the thought. With `laid_out` false and no template the prompt stays
    empty. A control marker in text from outside is defused by a zero-width space (U+200B) after its first character,
    with a note, and nothing else is changed; the decoder undoes this in the reply. Raises TemplateError for an invalid
    conversation and for one that the template rejects.
    """
    notes: list[Note] = []
    turns, thought = _turns(messages, d, bool(continue_final), notes)
    offered = tuple(tools or ()) if choice != "none" else ()
    _check_choice(choice, offered)
    markers = control_markers(d, template, variables)
    if laid_out and template is None and d.layout is None:
        markers += PLAIN_LABELS
    clean, clean_open = cleaner(markers, notes, template), cleaner(markers, notes, template, open_ended=True)
    open_ended = not thought if continue_final else False
    *before, last = turns
    turns = [*(cleaned_turn(turn, clean) for turn in before), cleaned_turn(last, clean_open if open_ended else clean)]
    thought = clean_open(thought)
    safe = cleaned_tools(offered, markers, notes, template)
    notes += unsayable(turns, d, safe)
    want = PromptOptions(safe, _date(now, variables, d), thinking, clean(choice), dict(variables or {}))
    begun = begun_messages(thought, d)
    lost: list[Note] = []
    written = tell(turns, d, want, lost) + begun
    if template is not None:
        prompt, native = by_template(template, turns, d, want, now, open_ended, notes)
        prompt = with_thought(prompt, thought, d) if thought else prompt
        return Rendered(prompt, written, d.stop, _unique(notes if native else notes + lost))
    stop = d.stop if d.layout else (*d.stop, *PLAIN_STOP)
    if not laid_out:
        return Rendered("", written, stop, _unique(lost + notes))
    native = tell(turns, d, replace(want, native=True), []) + begun if d.layout else written
    prompt = _lay_out(native, d, want, bool(continue_final))
    return Rendered(prompt, written, stop, _unique(lost + notes))


def _turns(messages: Sequence[Message], d: Dialect, continue_final: bool, notes: list[Note]) -> tuple[list[Turn], str]:
    """The turns of the messages, and the thought that is continued, which is then none of them."""
    turns = turns_of(messages, notes)
    if not continue_final:
        return thoughts_apart(turns, d), ""
    if turns[-1].role != "assistant":
        raise TemplateError(f"expected an assistant's message to continue, the last one is the {turns[-1].role}'s")
    thought = prefilled_thought(turns, d)
    return thoughts_apart(turns[:-1] if thought else turns, d), thought


def _date(now: datetime | None, variables: Mapping[str, Any] | None, d: Dialect) -> str:
    """The date, if the prompt has a place for it. Without one, equal prompts can be cached."""
    if not tells_date(d):
        return ""
    date = (variables or {}).get("datetime")
    return str(date) if date is not None else now.strftime(DATE_FORM).strip() if now else ""


def _unique(notes: list[Note]) -> tuple[Note, ...]:
    return tuple(dict.fromkeys(notes))


def _lay_out(messages: list[Message], d: Dialect, want: PromptOptions, open_ended: bool) -> str:
    """The turns as one text. An open-ended one stops at the end of the last message."""
    layout = d.layout or PLAIN
    before, after = layout.head
    ended = d.header.ends if d.header else ()  # a call in a message of its own has already ended its turn
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
