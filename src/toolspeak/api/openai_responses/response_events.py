"""A response under construction: its items, and the events of a stream for each step.

Every item has events in order: added, its parts, done. The last event contains all items once more, with the same ids.
Thoughts are written as reasoning text, or as its summary if the request asks for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import Refused
from ...events import (
    ArgumentsDelta,
    CallEnd,
    CallResult,
    CallStart,
    Event,
    Finished,
    Logprobs,
    Noted,
    TextDelta,
    ThoughtDelta,
)
from ...types import Finish, Note, ToolResult, Usage
from ...wire.reading.collect import add_usage
from ..custom_tools import custom_input
from ..incoming import HOSTED, IncomingRequest, Stamp
from ..json_stream import Payload, dumped, record
from ..openai_chat.writer import write_error, write_estimated, write_notes
from ..token_logprobs import LOGPROB
from .client_tools import CALLED, CLIENT_TOOLS
from .compaction_item import SEALED, check_summary, sealed_summary
from .gateway_calls import ITEMS, MCP, HostedItem, begun_events, listing, listing_events, sealed_events, sealed_run
from .logprobs import write_logprob
from .text_events import message_done, thought_done

REASONS: dict[Finish, str] = {
    "length": "max_output_tokens",
    "limit": "max_output_tokens",
    "content_filter": "content_filter",
}
"""Why a response is incomplete, by finish reason. Any other finish reason means complete."""
ENDING: frozenset[type[Any]] = frozenset((CallStart, CallEnd, CallResult))
"""The events that end the open item, whatever its kind."""


@dataclass(slots=True)
class _Item:
    """The open item: its content so far with its size in characters, and the constant start of its deltas. For a call
    that is run here, also its item type and its result."""

    kind: str
    value: Payload
    pieces: list[str] = field(default_factory=list[str])
    size: int = 0
    logprobs: list[Payload] = field(default_factory=list[Payload])
    head: str = ""
    hosted: HostedItem | None = None
    result: ToolResult | None = None

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Building:
    """A response under construction: its items, and the events for each step. Ids come from the stamp."""

    def __init__(self, incoming: IncomingRequest, stamp: Stamp) -> None:
        self._stamp = stamp
        self._echo = {**DEFAULTS, **incoming.echo}
        self._echoed = dumped(self._echo)
        self._names = incoming.names
        self._server_of = incoming.server_of
        self._listings, self._sealed = incoming.listings, incoming.sealed
        self._summary = bool(record(incoming.echo.get("reasoning")).get("summary"))
        self._thoughts = incoming.thoughts
        self._compacts = incoming.compacts
        self._says = "compaction" if incoming.compacts else "message"
        self._kinds: dict[type[Any], str] = {
            TextDelta: self._says,
            ThoughtDelta: "reasoning",
            ArgumentsDelta: "function_call",
        }
        self._size = 0
        self._sequence = -1
        self._open: _Item | None = None
        self._logprobs: list[Payload] = []
        self._notes: list[Note] = []
        self._finish: Finish = "stop"
        self._usage: Usage | None = None
        self._error: Payload | None = None
        self._items: dict[str, Payload] = {}
        """By id: if `fail` comes while a thread closes an item, both put it here."""

    @property
    def status(self) -> str:
        """The status of a response that the model ended."""
        return "incomplete" if self._finish in REASONS else "completed"

    def begin(self) -> str:
        return self._tell_response("response.created", "in_progress") + self._tell_response(
            "response.in_progress", "in_progress"
        )

    def list_tools(self) -> str:
        """Return the items with the tools of the client's MCP servers that the client does not know yet."""
        items = (listing(f"mcpl_{self._stamp.id}_{at}", *one) for at, one in enumerate(self._listings.items()))
        return "".join(self._tell_whole(item, listing_events) for item in items)

    def _tell_whole(self, item: Payload, events: Callable[[Payload, int], Iterable[tuple[str, Payload]]]) -> str:
        self._items[item["id"]] = item
        return self._tell_all(events(item, len(self._items) - 1))

    def due(self, event: Event | None) -> int:
        """Return about how many characters `feed` of an event has to write besides the event, or `end` and `fail` for
        None: an item is repeated when it ends, and all of them at the end."""
        waiting, item, kind = LOGPROB * len(self._logprobs), self._open, type(event)
        if event is None:
            return waiting + self._size
        if item is None or (self._kinds.get(kind, item.kind) == item.kind and kind not in ENDING):
            return waiting
        return waiting + item.size

    def feed(self, event: Event) -> str:
        match event:
            case TextDelta(text):
                return self._more(self._says, text)
            case ThoughtDelta(text):
                return self._more("reasoning", text) if self._thoughts else ""
            case CallStart(name, id):
                return self._close("completed") + self._call(name, id)
            case ArgumentsDelta(piece):
                return self._more("function_call", piece)
            case CallEnd() | CallResult():
                return self._end_call(event)
            case Logprobs(tokens):
                self._logprobs += [write_logprob(token) for token in tokens]
            case Noted(note):
                self._notes.append(note)
            case Finished(finish, usage):
                self._finish = finish
                self._usage = add_usage(self._usage or Usage(), usage)
            case _:
                pass
        return ""

    def _end_call(self, event: CallEnd | CallResult) -> str:
        """End a call. A call that is run here ends with its result."""
        item = self._open
        if item is None:
            return ""
        if isinstance(event, CallResult):
            item.result = event.result
            closed = self._close("completed" if event.result.error is None else "failed")
            return closed + (self._seal(event.result, item) if self._sealed else "")
        if item.hosted:
            return self._tell_all(begun_events(item.hosted, self._value(item, "in_progress"), self._at(item)))
        return self._close("completed" if event.whole else "incomplete")

    def _seal(self, result: ToolResult, item: _Item) -> str:
        """Return the item that repeats a call and its result, for clients that drop the other one."""
        sealed = sealed_run(f"rs_{self._stamp.id}_{len(self._items)}", item.value["id"], item.text or "{}", result)
        return self._tell_whole(sealed, sealed_events)

    def end(self) -> str:
        """Return the last events of a response that the model ended. Raises Refused for a summary that is empty or cut."""
        if self._compacts:
            check_summary(self._open.text if self._open else "", cut=self._finish in REASONS)
        status, has_output = self.status, self._open is not None or len(self._items) > len(self._listings)
        opened = "" if has_output else self._begin_text("message")[1]  # an empty reply is an empty text
        return opened + self._close(status) + self._tell_response(f"response.{status}", status)

    def fail(self, error: Refused) -> str:
        """Return the last events of a response that failed. No open item is marked as done."""
        if item := self._open:
            self._items[item.value["id"]] = self._value(item, "incomplete")
            self._open = None
        body = write_error(error)["error"]
        words = {"code": body["code"], "message": body["message"], "param": body["param"]}
        code = (
            "context_length_exceeded"
            if error.code == "context_length_exceeded"
            else "rate_limit_exceeded"
            if error.status == 429
            else "server_error"
            if error.status >= 500
            else "invalid_prompt"
        )
        self._error = {"code": code, "message": str(error)}
        # OpenAI's clients raise on an event with an `error`; others read `response.failed`.
        return self._tell("error", **words, error=body) + self._tell_response("response.failed", "failed")

    def response(self, status: str) -> Payload:
        """Return the response so far."""
        return self._response(status) | self._echo

    def _response(self, status: str) -> Payload:
        """Return the response without the fields that repeat the request."""
        reason = REASONS.get(self._finish) if status == "incomplete" else None
        usage = write_usage(self._usage or Usage()) if status != "in_progress" else None
        response: Payload = {
            "id": f"resp_{self._stamp.id}",
            "object": "response",
            "created_at": self._stamp.created,
            "completed_at": None,
            "status": status,
            "error": self._error,
            "incomplete_details": {"reason": reason} if reason else None,
            "model": self._stamp.model,
            "output": list(self._items.values()),
            "usage": usage,
        }
        if self._notes:
            response["toolspeak"] = write_notes(self._notes)
        return response

    def _more(self, kind: str, text: str) -> str:
        """Add text, thought or arguments to the open item, or to a new one."""
        opened, item = "", self._open
        if item is None or item.kind != kind:
            closed = self._close("completed")
            item, opened = self._begin_text(kind)
            opened = closed + opened
        item.pieces.append(text)
        self._grow(item, len(text))
        if kind == "compaction":
            return opened + self._tell("response.compaction.compacting", **self._at(item))
        if not item.head:  # a custom tool's input is known only when its arguments are complete
            return opened
        logprobs = self._take_logprobs(item) if kind == "message" else ""
        self._sequence += 1
        return f'{opened}{item.head}{dumped(text)}{logprobs},"sequence_number":{self._sequence}}}\n\n'

    def _take_logprobs(self, item: _Item) -> str:
        tokens, self._logprobs = self._logprobs, []
        item.logprobs += tokens
        self._grow(item, size := LOGPROB * len(tokens))
        return f',"logprobs":{dumped(tokens, size)}'

    def _grow(self, item: _Item, size: int) -> None:
        item.size += size
        self._size += size

    def _begin_text(self, kind: str) -> tuple[_Item, str]:
        """Open a message or reasoning item, with its only part, or a compaction."""
        if kind == "compaction":
            item = _Item(kind, {"type": kind, SEALED: ""})
            return item, self._add(item, "cmp", "")
        if kind == "message":
            value: Payload = {"type": "message", "role": "assistant", "content": []}
            part: Payload = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            return self._begin_part(_Item(kind, value), "msg", "response.output_text", part)
        value = {"type": "reasoning", "summary": [], "content": []}
        if self._summary:
            part = {"type": "summary_text", "text": ""}
            return self._begin_part(_Item(kind, value), "rs", "response.reasoning_summary_text", part)
        part = {"type": "reasoning_text", "text": ""}
        return self._begin_part(_Item(kind, value), "rs", "response.reasoning_text", part)

    def _begin_part(self, item: _Item, prefix: str, delta: str, part: Payload) -> tuple[_Item, str]:
        summary = part["type"] == "summary_text"
        place = {"summary_index": 0} if summary else {"content_index": 0}
        kind = "response.reasoning_summary_part" if summary else "response.content_part"
        added = self._add(item, prefix, f"{delta}.delta", **place)
        return item, added + self._tell(f"{kind}.added", **self._at(item), **place, part=part)

    def _call(self, name: str, call_id: str) -> str:
        kind, fields = self._names.get(name, ("function", {"name": name}))
        named = {"call_id": call_id, **fields}
        if client := CLIENT_TOOLS.get(kind):
            # Sent only once its arguments are complete: clients reject such an item without them.
            self._begin_item(_Item("function_call", {"type": client.item, **named}), client.prefix)
            return ""
        if kind == HOSTED:
            server = self._server_of(name)
            hosted = MCP if server else ITEMS.get(name, MCP)
            label = {"name": name, "server_label": server or name} if hosted.kind == "mcp_call" else {}
            self._begin_item(_Item("function_call", {"type": hosted.kind, **label}, hosted=hosted), hosted.prefix)
            return ""
        if kind == "custom":
            item = _Item("function_call", {"type": "custom_tool_call", **named, "input": ""})
            return self._add(item, "ctc", "")
        item = _Item("function_call", {"type": "function_call", **named, "arguments": ""})
        return self._add(item, "fc", "response.function_call_arguments.delta")

    def _add(self, item: _Item, prefix: str, delta: str, **place: int) -> str:
        """Open an item. The start of its deltas is serialized only once."""
        self._begin_item(item, prefix)
        if delta:
            opening = dumped({"type": delta, **self._at(item), **place})[:-1]
            item.head = f'event: {delta}\ndata: {opening},"delta":'
        return self._tell("response.output_item.added", output_index=len(self._items), item=item.value)

    def _begin_item(self, item: _Item, prefix: str) -> None:
        item.value = {"id": f"{prefix}_{self._stamp.id}_{len(self._items)}", **item.value, "status": "in_progress"}
        self._open = item

    def _at(self, item: _Item) -> Payload:
        return {"item_id": item.value["id"], "output_index": len(self._items)}

    def _close(self, status: str) -> str:
        """Return the last events of the open item."""
        item = self._open
        if item is None:
            return ""
        value = self._value(item, status)
        at = self._at(item)
        match value["type"]:
            case "message":
                data = self._tell_all(message_done(value, at, item.logprobs))
            case "reasoning":
                data = self._tell_all(thought_done(value, at))
            case "custom_tool_call":
                data = self._tell("response.custom_tool_call_input.delta", **at, delta=value["input"])
                data += self._tell("response.custom_tool_call_input.done", **at, input=value["input"])
            case kind if item.hosted:
                word = item.hosted.last_word(item.result)
                data = self._tell(f"response.{kind}.{word}", **at) if word else ""
            case kind if kind in CALLED:
                begun = value | {"status": "in_progress"}
                data = self._tell("response.output_item.added", output_index=len(self._items), item=begun)
            case "compaction":
                data = ""
            case _:
                named = {"name": value["name"], "arguments": value["arguments"]}
                data = self._tell("response.function_call_arguments.done", **at, **named)
        data += self._tell("response.output_item.done", output_index=len(self._items), item=value)
        self._items[value["id"]] = value
        self._open = None
        return data

    def _value(self, item: _Item, status: str) -> Payload:
        """Return an item with its whole content."""
        value, text = item.value | {"status": status}, item.text
        match value["type"]:
            case "message":
                part = {"type": "output_text", "text": text, "annotations": [], "logprobs": item.logprobs}
                return value | {"content": [part]}
            case "reasoning" if self._summary:
                return value | {"summary": [{"type": "summary_text", "text": text}]}
            case "reasoning":
                return value | {"content": [{"type": "reasoning_text", "text": text}]}
            case "custom_tool_call":
                return value | {"input": custom_input(text)}
            case "compaction":
                return value | {SEALED: sealed_summary(text)}
            case kind if kind in CALLED:
                return value | CALLED[kind].fields(text)
            case _ if item.hosted:
                return value | item.hosted.fields(text or "{}", item.result)
            case _:
                return value | {"arguments": text or "{}"}

    def _tell_response(self, kind: str, status: str) -> str:
        """Return an event with the response. The part that repeats the request, with all tools, is serialized only
        once."""
        self._sequence += 1
        response = f"{dumped(self._response(status), self._size)[:-1]},{self._echoed[1:]}"
        return f'event: {kind}\ndata: {{"type":"{kind}","response":{response},"sequence_number":{self._sequence}}}\n\n'

    def _tell_all(self, rows: Iterable[tuple[str, Payload]]) -> str:
        return "".join(self._tell(kind, **fields) for kind, fields in rows)

    def _tell(self, kind: str, **fields: Any) -> str:
        self._sequence += 1
        return f"event: {kind}\ndata: {dumped({'type': kind, **fields, 'sequence_number': self._sequence}, self._size)}\n\n"


DEFAULTS: Mapping[str, Any] = {
    "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto",
    "tools": [], "top_p": 1.0, "store": False,
}  # fmt: skip
"""The required fields of a response, if the request is unknown."""


def write_usage(usage: Usage) -> Payload:
    """Return the tokens as `usage`."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        **write_estimated(usage),
    }
