"""Renders the prompt with a model's own chat template: adapts the conversation to it, and notes what it still loses."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...errors import TemplateError
from ...schema.examples import in_words
from ...types import Note, ToolCall
from ..dialect import Dialect
from ..reading.lexicon import THINK, program
from .calls import declared
from .conversation import PromptOptions, opened, tell
from .conversation_form import id_form, joined_users, one_at_a_time, short_ids, text_apart, with_ids
from .jinja import free_variables, render_template
from .template_capabilities import SHORT, THOUGHTS, Abilities, abilities, speaks
from .thinking_switch import thinking_variables
from .turns import Turn, message_of

TESTED = r"\b(?:set|for|macro)\s+(?:[\w,\s]{0,200},\s{0,9})?NAME\b|\bNAME\s*(?:\|\s*d(?:efault)?\b|is\b|or\b)|\b(?:el)?if\s+(?:[^%]{0,300}[^%.\w])?NAME\b"
"""Shows that a template sets the variable NAME somewhere, or tests whether it exists."""
MOST_VARIABLES = 50
"""The most variables of a template that are examined."""
SEARCHED = 2_000_000
"""The most characters that are searched for variables, so that fewer are examined in a long template."""
STANDARD_VARIABLES = ("bos_token", "eos_token", "documents", "messages", "tools", "add_generation_prompt")
"""Variables that a template has without being given them, or must not have."""
Row = dict[str, Any]
Placed = tuple[int, Row]
"""A message, and its place in the original conversation."""


@dataclass(frozen=True, slots=True)
class TemplateJob:
    """A template, and its inputs besides the messages."""

    template: str
    tools: list[Row]
    variables: Mapping[str, Any]
    now: datetime | None
    open_ended: bool

    def render(self, rows: Sequence[Row]) -> str:
        return render_template(
            self.template, rows, self.tools, variables=self.variables, now=self.now, generate=not self.open_ended
        )


def by_template(
    template: str,
    turns: Sequence[Turn],
    d: Dialect,
    want: PromptOptions,
    now: datetime | None,
    open_ended: bool,
    notes: list[Note],
) -> tuple[str, bool]:
    """The prompt, and whether the template itself writes the dialect; otherwise the dialect's words describe the
    tools.

    The turns and tools are cleaned already. Raises TemplateError if the template rejects them.
    """
    native, known = speaks(template, d), abilities(template)
    tools: list[Row] = []
    if native:
        rows = fitted(turns, d, known, want, notes)
        tools = [declared(tool) for tool in in_words(want.tools)] if known.tools else []
        notes += [Note("choice-not-told", want.choice)] if want.choice not in ("auto", "none") else []
    else:
        rows = [(i, dict(message)) for i, message in enumerate(tell(turns, d, want, []))]
    if not known.system and rows[0][1]["role"] == "system":
        rows = _without_system(rows, notes)
    variables = {**want.variables, **thinking_variables(template, want.thinking)}
    job = TemplateJob(template, tools, variables, now, open_ended)
    prompt = job.render([row for _, row in rows])
    notes += _unwanted_thought(prompt, d) if want.thinking is False else []
    notes += _lost_texts(job, prompt, rows)
    notes += [Note("variable-not-given", name) for name in _missing_variables(template, variables, now)]
    return (_cut(prompt, rows[-1][1], notes) if open_ended else prompt), native


def _unwanted_thought(prompt: str, d: Dialect) -> list[Note]:
    opens = program(d, True).begins(prompt) == THINK
    return [Note("thinking-not-off", "the template opens a thought in any case")] if opens else []


def _missing_variables(template: str, variables: Mapping[str, object], now: datetime | None) -> list[str]:
    """Variables that the template reads without testing for them and that nobody set: they render as nothing."""
    old = re.search(r"\btools\b", template) is None
    known = {*variables, *STANDARD_VARIABLES, *(["functions"] if old else []), *(["datetime"] if old and now else [])}
    return [
        name
        for name in free_variables(template)[: min(MOST_VARIABLES, SEARCHED // (len(template) + 1))]
        if name not in known and not re.search(TESTED.replace("NAME", name), template)
    ]


def fitted(turns: Sequence[Turn], d: Dialect, known: Abilities, want: PromptOptions, notes: list[Note]) -> list[Placed]:
    """The turns as messages in the form that the template needs."""
    form = id_form(d) or (short_ids(SHORT) if known.short else _any_id)
    turns = with_ids(turns, form)
    opening: list[Placed] = []
    if want.tools and not known.tools:
        first, turns = opened(turns, d, want, notes)
        opening = [(0, dict(message)) for message in first]
    if not known.beside:
        turns = text_apart(turns)
    if not known.parallel:
        turns = one_at_a_time(turns)
    if not known.rows:
        turns = joined_users(turns, notes)
    return opening + [(turn.at, message_of(turn, known.objects, known.blank, known.thought)) for turn in turns]


def _any_id(call: ToolCall, n: int) -> str:
    return call.id or f"call_{n + 1}"


def _without_system(rows: list[Placed], notes: list[Note]) -> list[Placed]:
    """For a template without system turns: the system text is prepended to the first user message."""
    (at, system), rest = rows[0], rows[1:]
    notes.append(Note("system-moved", "the template has no system turn: the system text is prepended to the user's"))
    if rest and rest[0][1]["role"] == "user":
        at, user = rest.pop(0)
        return [(at, {**user, "content": f"{system['content']}\n\n{user['content']}"}), *rest]
    return [(at, {**system, "role": "user"}), *rest]


@dataclass(slots=True)
class Placeholder:
    """A text, and the word that replaces it to see whether it is rendered."""

    rule: str
    where: str
    text: str
    word: str


def _lost_texts(job: TemplateJob, prompt: str, rows: Sequence[Placed]) -> list[Note]:
    """Notes on parts of the messages that are not in the prompt.

    They are rendered once more with a unique word in place of each text and of each call's arguments. If the template
    rejects such words, the texts themselves are searched for.
    """
    seen: list[Placeholder] = []
    marked = [_marked(at, row, seen) for at, row in rows]
    try:
        rendered = job.render(marked)
    except TemplateError:
        return [Note(w.rule, w.where) for w in seen if w.text not in prompt]
    return [Note(w.rule, w.where) for w in seen if w.word not in rendered]


def _marked(at: int, row: Row, seen: list[Placeholder]) -> Row:
    """The message with words in place of its texts."""

    def word(rule: str, text: str, what: str = "") -> str:
        seen.append(Placeholder(rule, f"message {at}{what}", text.strip(), f"witness{len(seen)}x"))
        return seen[-1].word

    new = dict(row)
    for key, rule in (("content", "text-lost"), *((key, "thought-lost") for key in THOUGHTS)):
        text = row.get(key)
        if isinstance(text, str) and text.strip():
            new[key] = word("result-lost" if row["role"] == "tool" else rule, text)
    calls: list[Row] = []
    for call in row.get("tool_calls") or ():
        function = call["function"]
        arguments: object = {"witness": word("call-lost", function["name"], f": {function['name']}")}
        if isinstance(function["arguments"], str):
            arguments = json.dumps(arguments)
        calls.append({**call, "function": {**function, "arguments": arguments}})
    return new | ({"tool_calls": calls} if calls else {})


def _cut(prompt: str, last: Row, notes: list[Note]) -> str:
    """The prompt up to the end of the last message."""
    text = str(last.get("content") or "").strip()
    end = prompt.rfind(text) if text else -1
    if end < 0:
        notes.append(Note("not-continued", "the template does not show the last message"))
        return prompt
    return prompt[: end + len(text)]
