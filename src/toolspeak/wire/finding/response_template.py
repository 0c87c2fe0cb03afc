"""Converts a tokenizer's `response_template`, HuggingFace's declaration of how to read a model's output, to a dialect.

It declares fields (content, thinking, tool_calls), the opener and closer of each, and their content. For anything that
no dialect can express an error names the key. The format is the one that transformers 5 documents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..dialect import (
    ARGS,
    CALL,
    ID,
    NAME,
    Arguments,
    Dialect,
    Header,
    Json,
    JsonCall,
    Keywords,
    Part,
    Slot,
    Tagged,
    Thinking,
)
from ..reading.lexicon import MARK
from .declared import THOUGHTS, Declared, as_object, as_text, cannot, declared_fields, declared_starts, one_literal
from .declared_patterns import GAP, Piece, pattern_pieces

SLOTS = {"name": NAME, "id": ID}


def _thinking(thought: Declared) -> Thinking:
    """The markers of thoughts. Those of a stripped field include line breaks on the inside."""
    where = thought.where
    one_literal([as_text(opener, f"{where}.open") for opener in thought.openers] or [""], f"{where}.open")
    opener, closer = thought.opener, one_literal(thought.closers, f"{where}.close")
    how = as_object(thought.declaration.get("content_args") or {}, f"{where}.content_args")
    return (
        Thinking(f"{opener.rstrip()}\n", f"\n{closer.lstrip()}") if how.get("strip", True) else Thinking(opener, closer)
    )


def from_response_template(config: Mapping[str, Any]) -> Dialect:
    """The dialect that a tokenizer's `response_template` declares.

    Raises TemplateError, which names the key, for anything that no dialect can express: fields other than text,
    thought and calls; contents that are neither JSON nor tags; openers that are more than literals around the name.
    """
    fields = declared_fields(config)
    calls, thought = fields.get("tool_calls"), next((fields[key] for key in THOUGHTS if key in fields), None)
    text = fields.get("content")
    if calls is None:
        raise cannot("fields", "expected a field tool_calls, there is none")
    anchors = declared_starts(config)
    control = tuple(dict.fromkeys(mark for anchor in anchors for mark in MARK.findall(anchor)))
    if any(GAP in opener for opener in calls.openers):
        if len(calls.openers) > 1:
            raise cannot(f"{calls.where}.open", "expected one head of a message")
        return _headed(calls, thought, text, anchors, control)
    thinking = _thinking(thought) if thought else None
    frame, stop = _around(text, calls)
    frame += tuple(anchor.strip() for anchor in anchors if MARK.match(anchor) and anchor.strip() not in frame)
    listed, parts, forms = _calls(calls)
    first, last = _edges(parts) if listed else ("", "")
    return Dialect(
        "declared",
        parts[bool(first) : len(parts) - bool(last)],
        open=first,
        close=last,
        items=("[", ", ", "]") if listed else None,
        forms=forms,
        thinking=thinking,
        frame=frame,
        stop=stop,
        control=control,
        origin="declared by its response template",
    )


def _edges(parts: Sequence[Part]) -> tuple[str, str]:
    """The literals around a list of calls: they belong to the section, not to each call."""
    first, last = parts[0], parts[-1]
    return first if isinstance(first, str) else "", last if isinstance(last, str) and len(parts) > 1 else ""


def _around(text: Declared | None, calls: Declared) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The markers around a text that are not part of it, and the ones that end the reply."""
    if text is None:
        return (), ()
    frame = dict.fromkeys(s.strip() for s in (*(as_text(o, f"{text.where}.open") for o in text.openers), *text.closers))
    more = [s.strip() for s in calls.closers[1:]]
    frame.update(dict.fromkeys(more))
    stop = dict.fromkeys((*(text.closers if not text.openers else ()), *more))
    return tuple(s for s in frame if s), tuple(s.strip() for s in stop)


# ---------------------------------------------------------------------------- the calls


def _calls(field: Declared) -> tuple[bool, tuple[Part, ...], tuple[tuple[Part, ...], ...]]:
    """Whether the content is a list of calls; the parts of one call; and other forms of it."""
    if not field.openers:
        raise cannot(f"{field.where}.open", "expected what opens a call")
    names = _slots(field)
    hole = _content(field, names)
    closer = field.closers[0] if field.closers else ""
    every = [_call(field, opener, names, hole, closer) for opener in field.openers]
    return bool(field.declaration.get("transform_each")), every[0], tuple(every[1:])


def _call(
    field: Declared, opener: Sequence[Piece], names: Mapping[str, str], hole: JsonCall | Arguments, closer: str
) -> tuple[Part, ...]:
    """The opener, content and closer of one call, with the name if the opener has it."""
    parts: list[Part] = []
    for piece in opener:
        if isinstance(piece, str):
            parts.append(piece)
            continue
        slot = next((s for s, key in names.items() if key == piece.name), None)
        if slot not in SLOTS:
            raise cannot(f"{field.where}.open_pattern", f"the group {piece.name!r} is neither a call's name nor its id")
        parts.append(SLOTS[slot])
    if not isinstance(hole, JsonCall) and NAME not in parts:
        raise cannot(f"{field.where}.open_pattern", "nothing in it is the tool's name")
    ends = "\n".join((*_unclosed(opener, closer), *([closer] if closer else [])))
    return (*parts, hole, ends) if ends else (*parts, hole)


def _unclosed(opener: Sequence[Piece], closer: str) -> list[str]:
    """Closing tags for those that the opener opens and the closer does not close: a reader of tags would skip them."""
    text = "".join(piece for piece in opener if isinstance(piece, str))
    tags = re.findall(r"<([A-Za-z][\w:.-]*)(?=[=\s])", text)
    return [f"</{tag}>" for tag in reversed(tags) if f"</{tag}>" not in closer]


def _slots(field: Declared) -> dict[str, str]:
    """The sources of a call's name, arguments and id: a group, the content, or a key of it."""
    where, whole = f"{field.where}.transform", "{content}"
    transform = field.declaration.get("transform", whole)
    outer = {"function": whole} if transform == whole else as_object(transform, where)
    inner = outer.get("function", outer)
    rows = {"name": "{content.name}", "arguments": "{content.arguments}"} if inner == whole else as_object(inner, where)
    if unknown := sorted({*map(str, outer), *map(str, rows)} - {"type", "function", "id", "name", "arguments"}):
        raise cannot(f"{where}.{unknown[0]}", "expected a call's id, name and arguments, and nothing more")
    rows = {**rows, **{key: outer[key] for key in ("id",) if key in outer}}
    slots = {key: _placeholder(value, where) for key, value in rows.items() if key in (*SLOTS, "arguments")}
    if not {"name", "arguments"} <= set(slots):
        raise cannot(where, "expected a function with a name and arguments")
    return slots


def _placeholder(value: object, where: str) -> str:
    match = re.fullmatch(r"\{([\w.]+)\}", value) if isinstance(value, str) else None
    if not match:
        raise cannot(where, f"expected placeholders like {{content}}, got {value!r}")
    return match[1]


def _content(field: Declared, names: Mapping[str, str]) -> JsonCall | Arguments:
    """The hole for the field's content."""
    kind = field.declaration.get("content", "text")
    options = as_object(field.declaration.get("content_args") or {}, f"{field.where}.content_args")
    outside = names["arguments"] == "content"
    if kind == "xml-inline" and outside:
        return _tagged(field, options)
    if kind != "json":
        raise cannot(f"{field.where}.content", f"expected json, or xml-inline as the arguments, got {kind!r}")
    loose = bool(options.get("unquoted_keys") or options.get("string_delims"))
    if outside:
        return _loose(field, options) if loose else Json()
    if loose:
        raise cannot(f"{field.where}.content_args", "a whole call in JSON needs its usual quotes")
    keys = {slot: path.rpartition(".")[2] for slot, path in names.items() if path.count(".") < 2}
    if not {"name", "arguments"} <= set(keys):
        raise cannot(f"{field.where}.transform", "expected keys of the content, no deeper ones")
    rows: list[tuple[str | Slot, Slot]] = [(keys["id"], ID)] if "id" in keys else []
    also = (("function", CALL),) if names["name"] == "content.name" else ()
    return JsonCall((*rows, (keys["name"], NAME), (keys["arguments"], ARGS)), also)


def _loose(field: Declared, options: Mapping[str, Any]) -> Keywords:
    """JSON with unquoted keys, or with other quotes around strings."""
    quotes: list[str] = []
    for delimiters in cast("Sequence[object]", options.get("string_delims") or [['"', '"']]):
        pair = cast("list[object]", delimiters) if isinstance(delimiters, list) else []
        if len(pair) != 2 or pair[0] != pair[1] or not isinstance(pair[0], str) or not pair[0]:
            raise cannot(f"{field.where}.content_args.string_delims", "expected pairs of equal quotes")
        quotes.append(pair[0])
    return Keywords(
        "{",
        "}",
        ":",
        tuple(quotes),
        escapes=quotes[0] == '"',
        bare=bool(options.get("unquoted_keys")),
        constants=("true", "false", "null"),
    )


def _tagged(field: Declared, options: Mapping[str, Any]) -> Tagged:
    """Arguments in tags, from the pattern of one of them."""
    where = f"{field.where}.content_args"
    parser = as_object(options.get("value_parser") or {}, f"{where}.value_parser")
    if options.get("merge_duplicates"):
        raise cannot(f"{where}.merge_duplicates", "a parameter that comes twice is no list")
    if parser.get("name", "text") not in ("text", "json"):
        raise cannot(f"{where}.value_parser", "expected text or json: a tool's schema tells the type")
    return _tag_pattern(options.get("tag_pattern"), where)


def _pieces(pattern: object, where: str) -> tuple[Piece, ...]:
    if not isinstance(pattern, str):
        raise cannot(where, "expected a regular expression")
    try:
        return pattern_pieces(pattern)
    except ValueError as e:
        raise cannot(where, f"{e}, in {pattern!r}") from e


def _tag_pattern(pattern: object, where: str) -> Tagged:
    """The tags in the pattern of one parameter."""
    pieces = _pieces(pattern, f"{where}.tag_pattern")
    holes = [(i, piece.name) for i, piece in enumerate(pieces) if not isinstance(piece, str)]
    if [name for _, name in holes] != ["key", "value"] or GAP in pieces:
        raise cannot(f"{where}.tag_pattern", "expected literals around a key and its value")
    (i, _), (j, _) = holes
    opener, mid, close = (as_text(pieces[a:b], where) for a, b in ((0, i), (i + 1, j), (j + 1, len(pieces))))
    if not (opener.strip() and mid.strip() and close.strip()):
        raise cannot(f"{where}.tag_pattern", "expected a literal before the key, before the value and behind it")
    return Tagged(opener, mid, close)


# ---------------------------------------------------------------------- messages with heads


def _head(field: Declared, mark: str, stop: str) -> str:
    """The head of a message between its marks."""
    head = field.opener.removeprefix(mark).removesuffix(stop)
    if mark + head + stop != field.opener:
        raise cannot(f"{field.where}.open", f"expected a head between {mark} and {stop}")
    return head


def _headed(
    calls: Declared, thought: Declared | None, text: Declared | None, anchors: tuple[str, ...], control: tuple[str, ...]
) -> Dialect:
    """A dialect whose messages have a head that says what they are; it may contain more than the name."""
    where = f"{calls.where}.open_pattern"
    pieces, names = calls.openers[0], _slots(calls)
    named = [i for i, piece in enumerate(pieces) if not isinstance(piece, str)]
    before, stop = "".join(p for p in pieces[: named[0]] if isinstance(p, str)) if named else "", pieces[-1]
    if len(named) != 1 or pieces[named[0] + 1 :] != (GAP, stop) or not isinstance(stop, str) or not anchors:
        raise cannot(where, "expected a head: a mark, the name, anything, a mark; and a start_anchor")
    mark = MARK.match(before)
    if not mark or names["arguments"] != "content":
        raise cannot(where, "expected a head that begins with a mark, and arguments that are the content")
    routes: list[tuple[str, Any]] = [(before[mark.end() :], "call")]
    routes += [(_head(field, mark[0], stop), kind) for field, kind in ((thought, "thought"), (text, "text")) if field]
    ends = tuple(dict.fromkeys(c for f in (calls, thought, text) if f for c in f.closers))
    heads = {kind: mark[0] + head for head, kind in routes}
    header = Header(
        anchors[0],
        stop,
        tuple(routes),
        ends,
        (mark[0],),
        (before, NAME),
        heads.get("thought", ""),
        heads.get("text", ""),
        calls.closers[0] if calls.closers else "",
    )
    hole = cast("Arguments", _content(calls, names))
    return Dialect(
        "declared",
        (hole,),
        between=header.end,
        thinking=None,
        header=header,
        stop=calls.closers,
        control=control,
        origin="declared by its response template",
    )
