"""Control markers: which strings steer a model, and how they are broken in what others wrote, and mended again.

A marker is broken by a zero-width space (U+200B) behind its opening bracket. So that this can be undone exactly, a
bracket that has zero-width spaces behind it already gets one more. What is broken holds no marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, cast

from ..types import Note, Tool, ToolCall
from .kept import Kept
from .syntax import Dialect
from .turns import Turn

INVISIBLE = "\u200b"
SHAPES = (r"<\|[^\s<>|]{1,60}\|>", r"<｜[^\s<>]{1,60}｜>")
"""How most families write their control tokens: these are markers whatever the dialect."""
WELL_KNOWN = (
    *("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[SYSTEM_PROMPT]"),
    *("[/SYSTEM_PROMPT]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    *("<start_of_turn>", "<end_of_turn>", "<tool_call>", "</tool_call>", "<tool_response>"),
    *("</tool_response>", "<function_calls>", "</function_calls>", "<think>", "</think>"),
)
"""Others that no text has by chance, and that a server's template may know."""
TAG = re.compile(
    r"<[^\s<>\[\]]*[^\W\d_][^\s<>\[\]]*>?|<\][^\s<>]+\[>|<\|[^\s<>]*>|\[/?[A-Z][A-Z_]+\]|\[/?[A-Z][A-Z ]+ [A-Z]+\]"
)
"""A marker inside a literal of a dialect: a tag, whole or as far as it goes, or capitals in brackets."""
IN_TEMPLATE = re.compile(
    r"</?[A-Za-z]{0,30}(?:think|[_:])[A-Za-z_:]{0,60}>|\[/?[A-Z][A-Z_]{2,60}\]|<\|[a-z_]{1,60}>|<[a-z_]{1,60}\|>"
)
"""A marker in the text of a chat template, besides the shapes."""
BRACKETS = "<[]｜"
"""What a marker may begin with."""
BROKEN = re.compile(f"([<\\[\\]｜]){INVISIBLE}")

BRACKET = re.compile(r"[<\[\]｜]")
REMOVAL = re.compile(r"""replace\(\s*(?:'([^'\n]{1,60})'|"([^"\n]{1,60})")\s*,\s*(?:''|"")\s*\)""")
"""Where a chat template takes a word out of a text."""

Clean = Callable[[str], str]


def control_markers(
    d: Dialect, template: str | None = None, variables: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """The strings that must never reach a model out of what others wrote: the dialect's, the template's, those that
    everyone knows, and the values of variables like bos_token."""
    special = [v for k, v in (variables or {}).items() if k.endswith("_token") and isinstance(v, str)]
    return tuple(
        dict.fromkeys((*WELL_KNOWN, *_of_dialect(d), *_of_template(template or ""), *filter(_breakable, special)))
    )


@lru_cache(256)
def _of_dialect(d: Dialect) -> tuple[str, ...]:
    told = replace(d, fences=(), models=(), speech=replace(d.speech, opening=(), system=""))
    whole = (*d.control, *d.frame, *d.stop)
    exact = [word.strip() for word in whole if _breakable(word.strip())]
    return tuple(dict.fromkeys((*exact, *(m for word in _literals(told) for m in TAG.findall(word) if len(m) > 2))))


@lru_cache(64)
def _of_template(template: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(IN_TEMPLATE.findall(template)))


def _breakable(marker: str) -> bool:
    return len(marker) > 2 and marker[0] in BRACKETS


def _literals(value: object) -> Iterator[str]:
    """Every text in a dialect's value, its name and its defaults for reading left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            yield from _literals(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            if f.name not in ("name", "origin"):
                yield from _literals(getattr(value, f.name))


def cleaner(markers: Iterable[str], notes: list[Note], template: str | None = None) -> Clean:
    """A function that breaks these markers, and all of the known shapes, in a text, and notes each.

    Where the template removes words from texts, and a marker would be left of one, every bracket in it is broken.
    """
    pattern = _pattern(tuple(markers))
    removed = _removed(template or "")

    def broken(match: re.Match[str]) -> str:
        if rest := match[match.lastindex] if match.lastindex else "":
            notes.append(Note("control-marker", match[0] + rest))
        return match[0] + INVISIBLE

    def clean(text: str) -> str:
        if not removed:
            return pattern.sub(broken, text)
        for left in _left(text, removed):
            if made := next((match for match in pattern.finditer(left) if match.lastindex), None):
                notes.append(Note("control-marker", made[0] + str(made[1] or made[2] or made[3] or made[4])))
                return BRACKET.sub(lambda match: match[0] + INVISIBLE, text)
        return pattern.sub(broken, text)

    return clean


@lru_cache(64)
def _removed(template: str) -> tuple[str, ...]:
    """The words that the template takes out of texts."""
    return tuple(dict.fromkeys(a or b for a, b in REMOVAL.findall(template)))


def _left(text: str, removed: Sequence[str]) -> Iterator[str]:
    """What would be left of a text without one of these words, or without all of them."""
    there = [word for word in removed if word in text]
    for word in there:
        yield text.replace(word, "")
    if len(there) > 1:
        for word in there:
            text = text.replace(word, "")
        yield text


@lru_cache(256)
def _pattern(markers: tuple[str, ...]) -> re.Pattern[str]:
    """The bracket of a marker, or one that has a zero-width space behind it; what follows is only looked at, since a
    marker may begin inside another."""
    parts: list[str] = []
    for bracket in BRACKETS:
        rests = [re.escape(m[1:]) for m in sorted(markers, key=len, reverse=True) if m[0] == bracket]
        rests += [shape[1:] for shape in SHAPES] if bracket == "<" else []
        known = "|".join(rests) or "(?!)"
        parts.append(f"{re.escape(bracket)}(?={INVISIBLE}|({known}))")
    return re.compile("|".join(parts))


def restore(text: str) -> str:
    """The text with its markers whole again: what was given to be cleaned, exactly."""
    return BROKEN.sub(r"\1", text)


def cleaned_turn(turn: Turn, clean: Clean) -> Turn:
    """The turn with every text in it cleaned."""
    calls = tuple(_call(call, clean) for call in turn.calls)
    return replace(
        turn, text=clean(turn.text), thought=clean(turn.thought), calls=calls, id=clean(turn.id), name=clean(turn.name)
    )


def _call(call: ToolCall, clean: Clean) -> ToolCall:
    """The call, its arguments cleaned; their text stays as it is where there was nothing to clean."""
    given: object = call.arguments
    if call.json:
        try:
            given = json.loads(call.json)
        except (ValueError, RecursionError):
            given = call.json
    new = cleaned_data(given, clean)
    call = replace(call, id=clean(call.id), name=clean(call.name))
    if new == given and clean(call.json) == call.json:
        return call
    arguments = cast("dict[str, Any]", new) if isinstance(new, dict) else call.arguments
    return replace(call, arguments=arguments, json=json.dumps(new, ensure_ascii=False, default=str))


_tools: Kept[tuple[tuple[Tool[..., Any], ...], tuple[Note, ...]]] = Kept()


def cleaned_tools(
    tools: Sequence[Tool[..., Any]], markers: tuple[str, ...], notes: list[Note], template: str | None = None
) -> tuple[Tool[..., Any], ...]:
    """The tools as they may be declared; see `cleaner`."""

    def make() -> tuple[tuple[Tool[..., Any], ...], tuple[Note, ...]]:
        found: list[Note] = []
        clean = cleaner(markers, found, template)
        return tuple(cleaned_tool(tool, clean) for tool in tools), tuple(found)

    made, found = _tools.get(tools, (markers, template), make, lambda made: sum(len(str(tool)) for tool in made[0]))
    notes += found
    return made


def cleaned_tool(tool: Tool[..., Any], clean: Clean) -> Tool[..., Any]:
    """The tool as it may be declared: its name, description and schema cleaned."""
    return replace(
        tool,
        name=clean(tool.name),
        description=clean(tool.description),
        parameters=cleaned_data(tool.parameters, clean),
    )


def cleaned_data(value: object, clean: Clean) -> Any:
    """JSON data with every text in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(k)): cleaned_data(v, clean) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [cleaned_data(v, clean) for v in cast("Sequence[Any]", value)]
    return value
