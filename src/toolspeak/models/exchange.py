"""Exchanges with a model as JSON lines: the request in canonical form, and the events of the reply.

A request is described by messages, tools and settings, not by the prompt that is made from it. Unset fields are left
out, and ids of calls are numbered in order. Consecutive deltas become one list of texts, so that a line is readable but
still yields exactly the same events. Secrets are removed from both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, cast

from .. import errors
from ..errors import ModelError, ToolspeakError
from ..events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finished,
    Logprobs,
    Noted,
    TextDelta,
    ThoughtDelta,
)
from ..schema.phrases import beginning, short
from ..tool_results import jsonable
from ..types import Message, Note, Request, Tool, Usage
from .redaction import Redaction

VERSION = 1
"""The version of the format. It is increased when an older toolspeak could not read it."""
BEGINS = b'{"version"'
"""The start of each line."""
Form = dict[str, Any]
"""A request in its canonical form, as JSON data."""
PLAIN = Redaction()


@dataclass(slots=True)
class Exchange:
    """A model request and its outcome: the `events` of the reply, or the `tokens` that were counted.

    `model` has the model's name, capabilities and context at that time. `now` is the time of the request. `error` is
    the error that ended the reply, None for success. `cut`: the consumer stopped before the end. `line` is its line in
    the file, from 1; 0 if it is not from a file.
    """

    model: Mapping[str, Any]
    now: datetime
    request: Form
    events: list[Event] = field(default_factory=list[Event])
    error: ToolspeakError | None = None
    cut: bool = False
    counted: bool = False
    tokens: int | None = None
    line: int = 0

    @property
    def key(self) -> str:
        """The text that distinguishes it from exchanges of other requests."""
        return key_of(self.request, counted=self.counted)


def key_of(request: Form, *, counted: bool = False) -> str:
    """Return the text that identifies a request: for counting its tokens, or for an answer."""
    return f"{'count' if counted else 'reply'} {json.dumps(request, sort_keys=True)}"


# ------------------------------------------------------------------ the request


def canonical(request: Request, redaction: Redaction = PLAIN) -> Form:
    """Return the request as JSON data, the same for equal requests. Whether the reply is streamed (`whole`) does not
    count."""
    form: Form = {}
    for each in fields(Request):
        value = getattr(request, each.name)
        open_ = value == getattr(USUAL, each.name) or value in ((), [], {})
        if not open_ and each.name != "whole":
            form[each.name] = _WRITTEN.get(each.name, jsonable)(value)
    return redaction.data(form)


USUAL = Request()


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    ids: dict[str, str] = {}

    def numbered(name: str) -> str:
        return ids.setdefault(name, f"call_{len(ids) + 1}")

    rows: list[dict[str, Any]] = []
    for message in messages:
        row = {name: jsonable(value) for name, value in message.items() if value is not None}
        if calls := row.get("tool_calls"):
            row["tool_calls"] = [{**call, "id": numbered(str(call.get("id", "")))} for call in calls]
        if "tool_call_id" in row:
            row["tool_call_id"] = numbered(row["tool_call_id"])
        rows.append(row)
    return rows


def _tools(tools: Sequence[Tool[..., Any]]) -> list[dict[str, Any]]:
    rows = [{"name": one.name, "description": one.description, "parameters": jsonable(one.parameters)} for one in tools]
    return [row | ({"strict": True} if one.strict else {}) for row, one in zip(rows, tools, strict=True)]


_WRITTEN = {"messages": _messages, "tools": _tools, "hidden": _tools, "ranked": list[str]}
"""The conversion of fields that are not JSON data. Of ranked tools only the order counts."""


# ------------------------------------------------------------------ the events

_TEXTS: dict[str, type[TextDelta | ThoughtDelta | ArgumentsDelta]] = {
    "text": TextDelta,
    "thought": ThoughtDelta,
    "arguments": ArgumentsDelta,
}
_NAMES = {kind: name for name, kind in _TEXTS.items()}


def write_events(events: Iterable[Event], redaction: Redaction = PLAIN) -> list[dict[str, Any]]:
    """Return the events as JSON data; consecutive deltas of one kind are one row."""
    rows: list[dict[str, Any]] = []
    for event in events:
        if not isinstance(event, TextDelta | ThoughtDelta | ArgumentsDelta):
            rows.append(_row(event))
            continue
        name = _NAMES[type(event)]
        if not rows or name not in rows[-1]:
            rows.append({name: []})
        rows[-1][name].append(event.json if isinstance(event, ArgumentsDelta) else event.text)
    for row in rows:
        for name in row.keys() & _TEXTS.keys():
            whole = "".join(row[name])
            clean = redaction.text(whole)  # a secret may be split across deltas
            row[name] = row[name] if clean == whole else [clean]
    return rows


def _row(event: Event) -> dict[str, Any]:
    match event:
        case CallStart(name=name, id=id_):
            return {"call": name, "id": id_}
        case CallEnd(whole=whole, id=id_):
            return {"end": "whole" if whole else "cut", **({} if id_ is None else {"id": id_})}
        case Logprobs(tokens=tokens):
            return {"logprobs": tokens}
        case Noted(note=note):
            return {"note": asdict(note)}
        case Finished(finish=finish, usage=usage):
            return {"finish": finish, "usage": {name: n for name, n in asdict(usage).items() if n}}
        case _:
            raise AssertionError(f"a model's reply has no {type(event).__name__}")


def read_events(rows: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    """Yield the events in rows. Raises ValueError, KeyError or TypeError for invalid rows."""
    for row in rows:
        if name := next(iter(row.keys() & _TEXTS.keys()), ""):
            yield from map(_TEXTS[name], row[name])
        else:
            yield _event(row)


def _event(row: Mapping[str, Any]) -> Event:
    match row:
        case {"call": name, "id": id_}:
            return CallStart(name, id_)
        case {"end": end}:
            return CallEnd(end == "whole", row.get("id"))
        case {"logprobs": tokens}:
            return Logprobs(tokens)
        case {"note": note}:
            return Noted(Note(**note))
        case {"finish": finish}:
            return Finished(finish, Usage(**row.get("usage", {})))
        case _:
            raise ValueError(f"no event: {beginning(str(dict(row)), 80)}")


# ------------------------------------------------------------------ errors


def write_error(error: ToolspeakError, redaction: Redaction = PLAIN) -> dict[str, Any]:
    """Return an error as JSON data: its class, its message and its fields."""
    more = {name: value for name, value in vars(error).items() if isinstance(value, str | int | float) and value}
    return redaction.data({"type": type(error).__name__, "message": str(error), **more})


def read_error(row: Mapping[str, Any]) -> ToolspeakError:
    """Return the error in such data; a ModelError for an unknown class."""
    values = dict(row)
    kind: Any = getattr(errors, values.pop("type", ""), None)
    if not (isinstance(kind, type) and issubclass(kind, ToolspeakError)):
        kind = ModelError
    error = cast("ToolspeakError", kind(values.pop("message", "")))
    for name, value in values.items():
        setattr(error, name, value)
    return error


# ------------------------------------------------------------------ lines


def write_line(exchange: Exchange, redaction: Redaction = PLAIN) -> bytes:
    """Return the exchange as a line of JSON."""
    row: dict[str, Any] = {
        "version": VERSION,
        "now": exchange.now.isoformat(),
        "model": dict(exchange.model),
        "request": exchange.request,
    }
    if exchange.counted:
        row["tokens"] = exchange.tokens
    else:
        row["events"] = write_events(exchange.events, redaction)
    if exchange.cut:
        row["cut"] = True
    if exchange.error is not None:
        row["error"] = write_error(exchange.error, redaction)
    # a lone surrogate has no UTF-8 form: escaped it is still JSON
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def read_line(line: bytes, number: int = 0) -> Exchange:
    """Return the exchange in a line with that number. Raises ValueError, KeyError or TypeError for an invalid line."""
    try:
        row: Any = json.loads(line.decode())  # `json` would guess another encoding from the first bytes
    except UnicodeDecodeError as error:
        raise ValueError(f"expected JSON in UTF-8: byte 0x{line[error.start]:02x} at offset {error.start}") from None
    except ValueError as error:
        raise ValueError(f"expected JSON: {error}") from None
    if not isinstance(row, dict) or "version" not in row:
        raise ValueError("expected an object with version, model, request and events")
    row = cast("dict[str, Any]", row)
    if row["version"] != VERSION:
        raise ValueError(f"expected version {VERSION}, received {row['version']!r:.20}: made by a newer toolspeak?")
    return Exchange(
        model=dict(row["model"]),
        now=datetime.fromisoformat(row["now"]),
        request=_request(row["request"]),
        events=list(read_events(row.get("events", ()))),
        error=read_error(row["error"]) if "error" in row else None,
        cut=bool(row.get("cut")),
        counted="tokens" in row,
        tokens=row.get("tokens"),
        line=number,
    )


def _request(form: Any) -> Form:
    """Return a recorded request. Raises ValueError, with the place, for an invalid one."""
    _expect(form, dict, "request")
    for name in ("messages", "tools", "hidden"):
        for at, row in enumerate(_expect(form.get(name, []), list, f"request.{name}")):
            _expect(row, dict, f"request.{name}[{at}]")
            for more, kind in _PARTS.items():
                _expect(row.get(more, kind()), kind, f"request.{name}[{at}].{more}")
            for call in row.get("tool_calls", ()):
                _expect(call, dict, f"request.{name}[{at}].tool_calls")
                _expect(call.get("function", {}), dict, f"request.{name}[{at}].tool_calls.function")
    return cast("Form", form)


_PARTS: dict[str, type[list[Any] | dict[str, Any]]] = {"tool_calls": list, "parameters": dict}
"""The types of the fields of messages and tools."""
_KINDS = {dict: "an object", list: "an array"}


def _expect(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{where}: expected {_KINDS[kind]}, received {short(value, 40)}")
    return value
