"""Ollama's own chat API (`POST /api/chat`): JSON lines, calls whole, arguments as objects.

The client's direction: a `Request` into the JSON to send, and the reply's bytes into events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ..events import Event, TextDelta, ThoughtDelta
from ..types import Finish, Message, Request, Usage
from .body import cannot
from .openai_chat import write_tool
from .payloads import Payload, record, records
from .reading import Reading, count

FINISH: dict[str, Finish] = {"stop": "stop", "length": "length", "limit": "length"}


SAMPLING = {
    "top_p": "top_p", "top_k": "top_k", "min_p": "min_p", "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty", "repetition_penalty": "repeat_penalty",
}  # fmt: skip
"""The settings of `Request.sampling` that there is an option for, by its name."""


def write_request(request: Request, model: str) -> Payload:
    """The JSON body of a streamed request.

    The API has no word for a choice of tools: with `none` no tools are sent, with a name that one alone.
    """
    body: Payload = {"model": model, "messages": write_messages(request.messages), "stream": True}
    any_tool = request.choice in ("auto", "required")
    if tools := [tool for tool in request.tools or () if any_tool or tool.name == request.choice]:
        body["tools"] = [write_tool(tool) for tool in tools]
    if request.schema is not None:
        body["format"] = dict(request.schema)
    sampling = {"num_predict": request.max_tokens, "temperature": request.temperature, "seed": request.seed}
    options: Payload = {key: value for key, value in sampling.items() if value is not None}
    options |= {SAMPLING[name]: value for name, value in request.sampling.items() if name in SAMPLING}
    if request.thinking is not None:
        body["think"] = request.thinking
    if request.stop:
        options["stop"] = list(request.stop)
    if options:
        body["options"] = options
    return body


def write_messages(messages: Sequence[Message]) -> list[Payload]:
    """Messages in Ollama's form: arguments as objects, results by the tool's name, images apart from the text."""
    names: dict[str, str] = {}
    out: list[Payload] = []
    for message in messages:
        calls = records(message.get("tool_calls"))
        names |= {str(call.get("id")): str(record(call.get("function")).get("name", "")) for call in calls}
        out.append(_message(message, calls, names))
    return out


def _message(message: Message, calls: list[Payload], names: Mapping[str, str]) -> Payload:
    role = message.get("role", "user")
    text, images = _content(message.get("content"))
    out: Payload = {"role": "system" if role == "developer" else role, "content": text}
    if images:
        out["images"] = images
    if thought := message.get("reasoning_content"):
        out["thinking"] = thought
    if calls:
        out["tool_calls"] = [{"function": _function(record(call.get("function")))} for call in calls]
    if role == "tool":
        out["tool_name"] = message.get("name") or names.get(message.get("tool_call_id", ""), "")
    return out


def _content(content: Any) -> tuple[str, list[str]]:
    """The text of a content and its images, which Ollama takes as bare base64. Raises Refused for any other part."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else "", []
    texts: list[str] = []
    images: list[str] = []
    for part in records(cast("list[Any]", content)):
        if isinstance(text := part.get("text"), str):
            texts.append(text)
        elif part.get("type") == "image_url":
            images.append(_image(str(record(part.get("image_url")).get("url", ""))))
        else:
            raise cannot("messages", f"Ollama takes text and images, not a part of the type {part.get('type')!r:.60}")
    return "".join(texts), images


def _image(url: str) -> str:
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return data
    raise cannot("messages", "Ollama takes an image as base64 in a data: URL; one at an address is not fetched for it")


def _function(function: Payload) -> Payload:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):  # an earlier call that was no JSON is still part of what was said
            arguments = {"arguments": arguments}
    return {"name": function.get("name", ""), "arguments": arguments or {}}


class ReplyReader(Reading):
    """Events from the bytes of a reply. It is over with `"done": true`."""

    missing = 'no "done": true'

    def __init__(self, ids: Callable[[], str] | None = None) -> None:
        super().__init__(ids, lines=True)

    def _payload(self, payload: Payload) -> list[Event]:
        events = self._words(record(payload.get("message")))
        return events + self._end(payload) if payload.get("done") else events

    def _words(self, message: Payload) -> list[Event]:
        events: list[Event] = []
        if isinstance(thought := message.get("thinking"), str) and thought:
            events.append(ThoughtDelta(thought))
        if isinstance(text := message.get("content"), str) and text:
            self._text.append(text)
            events.append(TextDelta(text))
        if events:
            events = self._calls.settle() + events
        for call in records(message.get("tool_calls")):
            function = record(call.get("function"))
            events += self._calls.add(
                key=call.get("id"), name=function.get("name"), arguments=function.get("arguments"), fresh=True
            )
        return events

    def _end(self, payload: Payload) -> list[Event]:
        usage = Usage(count(payload.get("prompt_eval_count")), count(payload.get("eval_count")))
        return self._finished(str(payload.get("done_reason") or "stop"), FINISH, usage)


def read_models(payload: Payload) -> list[str]:
    """The names of the models there are (`GET /api/tags`)."""
    names = [model.get("name") or model.get("model") for model in records(payload.get("models"))]
    return [name for name in names if isinstance(name, str)]
