"""OpenAI's chat completions (`POST /v1/chat/completions`), as OpenAI and the many servers like it speak it.

Here the client's direction: a `Request` into the JSON to send, and the reply's bytes into events. The reader
takes what servers in the field really send: calls without ids or indexes, names repeated in every piece,
arguments as an object, reasoning under either of its names, a whole JSON reply where a stream was asked for,
an error in the middle of the stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, cast

from ..errors import ServerFailed, StreamCut
from ..events import Event, Finished, Noted, TextDelta, ThoughtDelta
from ..types import Finish, Message, Note, Request, Tool, Usage
from .call_deltas import CallStream
from .failure import excerpt
from .payloads import Payload, Payloads, record, records

FINISH: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}


LOOSE = frozenset({
    "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
    "propertyNames", "prefixItems", "contains", "uniqueItems", "unevaluatedProperties", "definitions",
})  # fmt: skip
"""Words of a schema that OpenAI's `strict` does not know."""


def write_request(
    request: Request,
    model: str,
    *,
    usage: bool = True,
    thoughts: bool = False,
    max_tokens_field: str = "max_tokens",
) -> Payload:
    """The JSON body of a streamed request.

    `usage`: ask for the tokens spent, which a few servers refuse to be asked. `thoughts`: send back the
    reasoning of earlier turns, which a few servers want and others refuse.
    """
    body: Payload = {"model": model, "messages": write_messages(request.messages, thoughts=thoughts), "stream": True}
    if usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [write_tool(tool) for tool in request.tools]
        if request.choice != "auto":
            body["tool_choice"] = write_choice(request.choice)
        if not request.parallel:
            body["parallel_tool_calls"] = False
    if request.schema is not None:
        form = {"name": "reply", "schema": dict(request.schema), "strict": is_strict(request.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    sampling = {max_tokens_field: request.max_tokens, "temperature": request.temperature, "seed": request.seed}
    body |= {key: value for key, value in sampling.items() if value is not None}
    if request.stop:
        body["stop"] = list(request.stop)
    return body


def write_messages(messages: Sequence[Message], *, thoughts: bool = False) -> list[Payload]:
    """Messages as the API takes them: they are in its form, but for reasoning and arguments left as objects."""
    return [_message(message, thoughts) for message in messages]


def write_tool(tool: Tool[..., Any]) -> Payload:
    """A tool as `tools` takes it: `{"type": "function", "function": {...}}`."""
    function: Payload = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    if not tool.description:
        del function["description"]
    return {"type": "function", "function": function}


def write_choice(choice: str) -> Any:
    """`tool_choice`: auto, none and required as they are, anything else is the name of a tool."""
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def is_strict(schema: Any) -> bool:
    """Whether OpenAI holds its sampling to a schema: it refuses `strict` for any other.

    Every object closed, every property required, no combination but anyOf. Servers of one's own hold to
    any schema, whatever `strict` says.
    """
    if isinstance(schema, list):
        return all(is_strict(item) for item in cast("list[Any]", schema))
    node = record(schema)
    if not LOOSE.isdisjoint(node):
        return False
    if "object" in node.get("type", ()) or "properties" in node:
        names = record(node.get("properties"))
        if node.get("additionalProperties") is not False or set(names) != set(node.get("required", ())):
            return False
    named = (*record(node.get("properties")).values(), *record(node.get("$defs")).values())
    return all(is_strict(inner) for inner in (*named, *(node[key] for key in ("items", "anyOf") if key in node)))


class ReplyReader:
    """Events from the bytes of a reply, cut anywhere: `feed` each piece, then `close`.

    `ids` makes the id of a call that came without one. `text` is the text so far, `received` grows with
    every payload. `close` raises StreamCut where the reply broke off: there was neither `[DONE]` nor a
    `finish_reason`. Both raise what the server reports as an error.
    """

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        self._payloads = Payloads()
        self._calls = CallStream(ids)
        self._text: list[str] = []
        self._finish: str | None = None
        self._usage = Usage()
        self._over = False

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def received(self) -> int:
        return self._payloads.received

    def feed(self, chunk: bytes) -> list[Event]:
        if self._over:
            return []
        events = self._events(self._payloads.feed(chunk))
        return events + self._end() if self._payloads.done else events

    def close(self) -> list[Event]:
        if self._over:
            return []
        events = self._events(self._payloads.close())
        if self._payloads.done or self._payloads.whole:
            return events + self._end()
        if self._finish is None:
            raise StreamCut("the server ended the reply in the middle: no finish_reason and no [DONE]", text=self.text)
        return [*events, Noted(Note("no-done", "the stream ended without [DONE]")), *self._end()]

    def _events(self, payloads: list[Payload]) -> list[Event]:
        events: list[Event] = []
        for payload in payloads:
            if "choices" not in payload and "usage" not in payload and self._payloads.whole:
                raise ServerFailed(
                    f"expected a chat completion, got: {excerpt(json.dumps(payload, ensure_ascii=False))}"
                )
            if usage := record(payload.get("usage")):
                self._usage = read_usage(usage)
            for choice in records(payload.get("choices"))[:1]:
                if choice.get("index") in (None, 0):
                    events += self._choice(choice)
        return events

    def _choice(self, choice: Payload) -> list[Event]:
        delta = record(choice.get("delta")) or record(choice.get("message"))
        events = self._words(delta)
        for place, call in enumerate(records(delta.get("tool_calls"))):
            function = record(call.get("function"))
            events += self._calls.add(
                index=call.get("index"),
                key=call.get("id"),
                name=function.get("name"),
                arguments=function.get("arguments"),
                fresh=place > 0,
            )
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            if reason == "error":
                raise ServerFailed("the server reports that the reply failed (finish_reason: error)")
            self._finish = reason
        return events

    def _words(self, delta: Payload) -> list[Event]:
        events: list[Event] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            events.append(ThoughtDelta(thought))
        events += read_content(delta.get("content") or delta.get("refusal"))
        for event in events:
            if isinstance(event, TextDelta):
                self._text.append(event.text)
        return self._calls.settle() + events if events else events

    def _end(self) -> list[Event]:
        self._over = True
        reason = self._finish or "stop"
        finish = FINISH.get(reason, "stop")
        events = self._calls.end(cut=finish in ("length", "content_filter"))
        if reason not in FINISH:
            events.append(Noted(Note("unknown-finish", reason)))
        if finish in ("stop", "tool_calls"):  # servers disagree on the word when there are calls
            finish = "tool_calls" if self._calls.count else "stop"
        return [*events, Finished(finish, self._usage)]


def read_content(content: Any) -> list[Event]:
    """Text and thoughts of a `content`: a text, or a list of parts."""
    if isinstance(content, str):
        return [TextDelta(content)] if content else []
    events: list[Event] = []
    for part in records(content):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            texts = [inner] if isinstance(inner, str) else [item.get("text") for item in records(inner)]
            events += [ThoughtDelta(text) for text in texts if isinstance(text, str) and text]
        else:
            events += read_content(part.get("text") or part.get("refusal"))
    return events


def read_models(payload: Payload) -> list[str]:
    """The names of the models there are (`GET /v1/models`)."""
    names = [model.get("id") for model in records(payload.get("data"))]
    return [name for name in names if isinstance(name, str)]


def read_usage(usage: Payload) -> Usage:
    """The tokens spent, from a `usage`; 0 for what it does not tell."""
    return Usage(
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(record(usage.get("prompt_tokens_details")).get("cached_tokens")),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _message(message: Message, thoughts: bool) -> Payload:
    out: Payload = dict(cast("Payload", message))
    if not thoughts:
        out.pop("reasoning_content", None)
    if calls := records(out.get("tool_calls")):
        out["tool_calls"] = [_call(call) for call in calls]
    return out


def _call(call: Payload) -> Payload:
    function = record(call.get("function"))
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        return call
    text = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    return {**call, "function": {**function, "arguments": text}}
