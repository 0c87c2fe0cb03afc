"""Control markers: strings that steer a model. They are defused in text from outside, and restored in the reply.

A marker is defused by a zero-width space (U+200B) after its first character, a bracket or another symbol. To make this
exactly reversible, a symbol that is already followed by zero-width spaces gets one more. Defused text contains no marker. The end of a text
that may continue as a marker in the following text, whatever that is, is defused as well. `restoring` restores what a
model copies.

A label is a marker that is a word and a colon at the beginning of a line (`Observation:`), in capitals or not, with
Markdown's marks and spaces around it or not (`**ASSISTANT** :`, `1. User:`), and with characters that print as nothing
around or in it. There the space goes before the colon.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any, cast
from unicodedata import category

from ...schema.nonblocking_json import loads_or
from ...types import Message, Note, Request, Tool, ToolCall
from ..dialect import Dialect
from ..marker_forms import BREAKABLE, LABEL, SYMBOL
from ..memo import Memo
from ..nonblocking_replace import BLANKS, IGNORABLE, replaced
from .known_markers import ALSO_SHAPES, SHAPES, beginning, control_markers
from .turns import Turn

INVISIBLE = "\u200b"
THOUGHT = ("<think>", "</think>")
"""How most templates write a thought in an earlier reply."""
NOTED = 1_000
"""The most notes of one conversation; further defused markers are not noted one by one."""
MARKS = "*_~`#>"
"""Marks of Markdown that may be around a label."""
LIST_MARKS = rf"[-+|\u2800{MARKS}{BLANKS}]|[0-9]{{1,9}}[.)]"
"""What Markdown may have before a label: also the marks of lists and tables. A blank of Braille prints as nothing."""
BEFORE_COLON = rf"(?!{INVISIBLE})[A-Za-z_`>{BLANKS}]"
"""What the colon of a label may follow: any letter, mark or blank but the zero-width space, and but a symbol, after
which the space is that of a symbol."""
BROKEN = re.compile(f"({SYMBOL}){INVISIBLE}|(?<={BEFORE_COLON}){INVISIBLE}(?={INVISIBLE}*[:：])")
ESCAPED = "\\u200b"
"""The zero-width space in ASCII JSON."""

ANY_SYMBOL = re.compile(SYMBOL)
BEGINNING = re.compile("|".join(map(beginning, (*SHAPES, *ALSO_SHAPES))))
"""What a marker of a shape begins with."""
LINES = r"\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
"""Characters that begin a line, besides a line feed."""
TAIL = 128
"""Characters at the end of a text that are searched for the beginning of a marker."""
REMOVAL = re.compile(r"""replace\(\s*(?:'([^'\n]{1,60})'|"([^"\n]{1,60})")\s*,\s*(?:''|"")\s*\)""")
"""Where a chat template removes a word from a text."""

AHEAD = 800
"""Context after a marker's bracket or a label's line start, besides whitespace and the marker itself."""

Clean = Callable[[str], str]
Patterns = tuple[re.Pattern[str], re.Pattern[str]]
Compiled = tuple[Patterns, frozenset[str], int, re.Pattern[str], bool]


def cleaner(
    markers: Iterable[str], notes: list[Note], template: str | None = None, *, open_ended: bool = False
) -> Clean:
    """A function that defuses these markers, and all known shapes, in a text, and notes each of them.

    It also defuses the end of a text that may continue as a marker in the next one, unless the text is `open_ended`:
    then the model continues it. If the template removes words from texts, and this could leave a marker, every bracket
    is defused.
    """
    (marker, symbol), begins, ahead, labels, speaking = _compiled(tuple(markers))
    begins = frozenset[str]() if open_ended else begins
    removed = _removed(template or "")

    def labelled(match: re.Match[str]) -> str:
        if match[1]:
            _note(notes, f"{match[1].strip()}:")
        return match[0] + INVISIBLE

    def broken(match: re.Match[str]) -> str:
        if rest := match[match.lastindex] if match.lastindex else "":
            _note(notes, match[0] + rest)
        return match[0] + INVISIBLE

    def clean(text: str) -> str:
        if not text:
            return text
        pattern = symbol if INVISIBLE in text else marker
        text = whole(text, pattern) if removed else replaced(pattern, broken, text, ahead)
        text = _defuse_end(text, begins, notes) if begins else text
        return replaced(labels, labelled, text, ahead) if speaking or INVISIBLE in text else text

    def whole(text: str, pattern: re.Pattern[str]) -> str:
        for left in _after_removal(text, removed):
            if marker := next((match for match in pattern.finditer(left) if match.lastindex), None):
                _note(notes, marker[0] + marker[marker.lastindex or 0])
                return ANY_SYMBOL.sub(lambda match: match[0] + INVISIBLE, text)
        return replaced(pattern, broken, text, ahead)

    return clean


@lru_cache(256)
def _compiled(markers: tuple[str, ...]) -> Compiled:
    """Patterns for these markers, for their beginnings and for labels, the context that they need, and whether there
    are labels."""
    ahead = AHEAD + max(map(len, markers), default=0)
    return _patterns(markers), _begins(markers), ahead, _labels(markers), any(map(LABEL.fullmatch, markers))


def _note(notes: list[Note], marker: str) -> None:
    """Notes a defused marker. Of a text with a million markers only the first ones are noted."""
    if len(notes) < NOTED:
        notes.append(Note("control-marker", marker))


def _defuse_end(text: str, begins: frozenset[str], notes: list[Note]) -> str:
    """The text with a possible beginning of a marker at its end defused. Templates may trim whitespace behind it."""
    end = len(text.rstrip())
    at = max(0, end - TAIL)
    window = text[at:end]

    def begun(match: re.Match[str]) -> str:
        rest = window[match.start() :]
        if rest not in begins and not BEGINNING.fullmatch(rest):
            return match[0]
        _note(notes, rest)
        return match[0] + INVISIBLE

    new = ANY_SYMBOL.sub(begun, window)
    return text if new == window else text[:at] + new + text[end:]


@lru_cache(64)
def _removed(template: str) -> tuple[str, ...]:
    """The words that the template removes from texts."""
    return tuple(dict.fromkeys(a or b for a, b in REMOVAL.findall(template)))


def _after_removal(text: str, removed: Sequence[str]) -> Iterator[str]:
    """What would be left of a text without one of these words, or without all of them."""
    there = [word for word in removed if word in text]
    for word in there:
        yield text.replace(word, "")
    if len(there) > 1:
        for word in there:
            text = text.replace(word, "")
        yield text


def _labels(markers: tuple[str, ...]) -> re.Pattern[str]:
    """A label at the beginning of a line, or a character before zero-width spaces and a colon."""
    words = (map(f"[{IGNORABLE}]{{0,9}}".join, marker[:-1].split()) for marker in markers if LABEL.fullmatch(marker))
    labels = [rf"[{BLANKS}]{{1,9}}".join(label) for label in words]
    before, behind = rf"[{BLANKS}]*+(?:{LIST_MARKS}){{0,12}}", rf"[{MARKS}{BLANKS}]{{0,12}}[{BLANKS}]*"
    label = rf"(?:^|(?<=[{LINES}]))({before}(?i:{'|'.join(labels) or '(?!)'}){behind})(?=[:：])"
    return re.compile(rf"{label}|{BEFORE_COLON}(?={INVISIBLE}+[:：])", re.MULTILINE)


def _begins(markers: tuple[str, ...]) -> frozenset[str]:
    """The incomplete beginnings of markers: more than one character, or a bracket that only opens."""
    begun = (marker[:end] for marker in markers if BREAKABLE.fullmatch(marker) for end in range(1, len(marker)))
    return frozenset(begin for begin in begun if len(begin) > 1 or begin == "<" or category(begin) in ("Ps", "Pi"))


def _patterns(markers: tuple[str, ...]) -> Patterns:
    """The symbol of a marker, whose rest is only looked at, since markers may overlap. The second pattern is for texts
    with zero-width spaces, and also matches any symbol that one follows."""
    rests: dict[str, list[str]] = {}
    for first, words in groupby(sorted(filter(BREAKABLE.fullmatch, markers)), key=lambda word: word[0]):
        # by their second character: few of them are tried in full
        groups = groupby(
            sorted((word[1:] for word in words), key=lambda word: (word[0], -len(word))), key=lambda word: word[0]
        )
        rests[first] = [f"{re.escape(c)}(?:{'|'.join(re.escape(word[1:]) for word in group)})" for c, group in groups]
    for shape in (*SHAPES, *ALSO_SHAPES):
        first = shape.lstrip("\\")[0]
        rests.setdefault(first, []).append(shape.removeprefix(re.escape(first)))
    parts = [f"{re.escape(first)}(?=({'|'.join(known)}))" for first, known in rests.items()]
    spaced = [f"{re.escape(first)}(?={INVISIBLE}|({'|'.join(known)}))" for first, known in rests.items()]
    return re.compile("|".join(parts)), re.compile("|".join((*spaced, f"{SYMBOL}(?={INVISIBLE})")))


def restore(text: str) -> str:
    """The text with its markers restored: exactly the text before cleaning."""
    return BROKEN.sub(lambda match: match[1] or "", text) if INVISIBLE in text else text


def cleaned_request(request: Request, d: Dialect | None = None) -> Request:
    """The request with markers defused in its messages and tools, including those of the model's own dialect. A raw
    prompt stays unchanged."""
    if request.prompt is not None:
        return request
    markers, notes = control_markers(d), list[Note]()
    thinking = d.thinking if d else None
    thought = (thinking.open.strip(), thinking.close.strip()) if thinking else THOUGHT
    offered = request.tools or ()
    tools = cleaned_tools(offered, markers, notes)
    renamed = {old.name: new.name for old, new in zip(offered, tools, strict=True)}
    choice = renamed.get(request.choice, request.choice)
    messages = cleaned_messages(request.messages, markers, thought)
    return replace(request, messages=messages, tools=tools if offered else request.tools, choice=choice)


def was_broken(value: object) -> bool:
    """Whether any text in JSON data was defused: if a model copies it, it must be restored."""
    todo = [value]
    for one in todo:
        if isinstance(one, str):
            if (INVISIBLE in one and BROKEN.search(one)) or ESCAPED in one:
                return True
        elif isinstance(one, list | tuple):
            todo += cast("Sequence[object]", one)
        elif isinstance(one, dict | Mapping):  # `dict` is fast, `Mapping` is an abstract class and slow
            todo += cast("Mapping[Any, object]", one).values()
    return False


def cleaned_messages(messages: Sequence[Message], markers: tuple[str, ...], thought: tuple[str, str]) -> list[Message]:
    """The messages of a chat API with every text cleaned, for a server that renders them by its own template.

    An assistant's text may begin with a `thought`, (opener, closer), which templates look for.
    """
    clean = cleaner(markers, [])
    return [_cleaned_message(message, clean, thought) for message in messages]


def _cleaned_message(message: Message, clean: Clean, thought: tuple[str, str]) -> Message:
    new: dict[str, Any] = dict(message)
    for key in ("content", "reasoning_content", "reasoning", "name"):
        value = new.get(key)
        if isinstance(value, str):
            new[key] = _cleaned_text(value, clean, thought if key == "content" and _assistant(message) else None)
        elif isinstance(value, list):
            new[key] = [_cleaned_part(part, clean) for part in cast("list[object]", value)]
    if isinstance(calls := new.get("tool_calls"), list):
        new["tool_calls"] = [_cleaned_row(call, clean) for call in cast("list[object]", calls)]
    return cast("Message", new)


def _assistant(message: Message) -> bool:
    return message.get("role") == "assistant"


def _cleaned_text(text: str, clean: Clean, thought: tuple[str, str] | None) -> str:
    if thought and all(thought):
        start = len(text) - len(text.lstrip())
        end = text.find(thought[1], start)
        if end >= 0 and text.startswith(thought[0], start):
            inner = clean(text[start + len(thought[0]) : end])
            return text[:start] + thought[0] + inner + thought[1] + clean(text[end + len(thought[1]) :])
    return clean(text)


def _cleaned_part(part: object, clean: Clean) -> object:
    if isinstance(part, str):
        return clean(part)
    row: Mapping[str, object] = cast("Mapping[str, object]", part) if isinstance(part, Mapping) else {}
    text = row.get("text")
    return {**row, "text": clean(text)} if isinstance(text, str) else cast("object", part)


def _cleaned_row(row: object, clean: Clean) -> object:
    """A call of an earlier turn with its name and arguments cleaned."""
    function = cast("Mapping[str, Any]", row).get("function") if isinstance(row, Mapping) else None
    if not isinstance(function, Mapping):
        return cast("object", row)
    fields = cast("Mapping[str, Any]", function)
    arguments = fields.get("arguments")
    is_text = isinstance(arguments, str)
    new = _call(
        ToolCall("", str(fields.get("name") or ""), {} if is_text else arguments or {}, arguments if is_text else ""),
        clean,
    )
    cleaned = {**fields, "name": new.name, "arguments": new.json if is_text else new.arguments}
    return {**cast("Mapping[str, Any]", row), "function": cleaned}


def cleaned_turn(turn: Turn, clean: Clean) -> Turn:
    """The turn with every text cleaned."""
    calls = tuple(_call(call, clean) for call in turn.calls)
    text, thought, id_, name = map(clean, (turn.text, turn.thought, turn.id, turn.name))
    return Turn(turn.role, text, thought, calls, id_, name, turn.index, turn.place, turn.at)


def _call(call: ToolCall, clean: Clean) -> ToolCall:
    """The call with its arguments cleaned; their JSON text stays unchanged if there was nothing to clean."""
    arguments: object = loads_or(call.json, call.json) if call.json else call.arguments
    new = cleaned_data(arguments, clean)
    call = replace(call, id=clean(call.id), name=clean(call.name))
    if new == arguments and clean(call.json) == call.json:
        return call
    whole = cast("dict[str, Any]", new) if isinstance(new, dict) else call.arguments
    return replace(call, arguments=whole, json=json.dumps(new, ensure_ascii=False, default=str))


_tools: Memo[tuple[tuple[Tool[..., Any], ...], tuple[Note, ...]]] = Memo()


def cleaned_tools(
    tools: Sequence[Tool[..., Any]], markers: tuple[str, ...], notes: list[Note], template: str | None = None
) -> tuple[Tool[..., Any], ...]:
    """The tools with every text cleaned; see `cleaner`."""

    def make() -> tuple[tuple[Tool[..., Any], ...], tuple[Note, ...]]:
        new_notes: list[Note] = []
        clean = cleaner(markers, new_notes, template)
        return tuple(cleaned_tool(tool, clean) for tool in tools), tuple(new_notes)

    def size(entry: tuple[tuple[Tool[..., Any], ...], tuple[Note, ...]]) -> int:
        return sum(len(str(tool)) for tool in entry[0])

    cleaned, new_notes = _tools.get(tools, (markers, template), make, size)
    notes += new_notes
    return cleaned


def cleaned_tool(tool: Tool[..., Any], clean: Clean) -> Tool[..., Any]:
    """The tool with its name, description and schema cleaned."""
    return replace(
        tool,
        name=clean(tool.name),
        description=clean(tool.description),
        parameters=cleaned_data(tool.parameters, clean),
        examples=tuple(cleaned_data(one, clean) for one in tool.examples),
    )


def cleaned_data(value: object, clean: Clean) -> Any:
    """JSON data with every text cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(k)): cleaned_data(v, clean) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [cleaned_data(v, clean) for v in cast("Sequence[Any]", value)]
    return value
