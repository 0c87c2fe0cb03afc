"""The items of a conversation in the Responses API, both directions: items into messages and back.

An assistant's turn is several items there (reasoning, a message, one per call) and one message here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

from ...errors import Refused, UsageError
from ...schema import nonblocking_json
from ...schema.validators import judge
from ...types import Message
from ..field_schemas import cannot, refuse_blank
from ..json_stream import Payload, record, records
from .client_tools import ANSWERED, CALLED, answered, called_arguments
from .compaction_item import COMPACTED, NOT_OURS, SEALED, SUMMARIZE, SUMMARIZED, TRIGGER, opened_summary
from .gateway_calls import hosted_call, opened_run
from .tools import TOOLS, Loaded, full_name, tool_names

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
RESULTS = ("function_call_output", "custom_tool_call_output")
HOSTED = (
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_list_tools", "mcp_call",
    "mcp_approval_request", "mcp_approval_response", "program", "program_output", "configuration_update",
)  # fmt: skip
"""Items of a provider and of its hosted tools. They are read if they contain a result."""


def read_input(value: Any, first: Sequence[Message] = ()) -> tuple[list[Message], tuple[str, ...], list[Loaded]]:
    """Return the messages of an `input` (a string or a list of items) after the `first` ones, the names of ignored
    items, and the tools that it loads. Raises Refused."""
    if isinstance(value, str):
        return [*first, {"role": "user", "content": value}], (), []
    reading = _ItemReader(first)
    items = records(value)
    for at, item in enumerate(items, 1):
        reading.add(item, f"input.{at - 1}", last=at == len(items))
    return reading.messages, tuple(sorted(reading.ignored)), reading.loaded


def asks_to_compact(value: Any) -> bool:
    """Whether an `input` ends with a request to compact the conversation."""
    return not isinstance(value, str) and any(item.get("type") == TRIGGER for item in records(value)[-1:])


class _ItemReader:
    """Reads items into messages one by one. The items of one assistant's turn become one message.

    An item of an unknown type, left by another server or a newer client, is dropped and reported as ignored, and so is
    its output. The last item must be known, because the reply answers it.
    """

    def __init__(self, first: Sequence[Message]) -> None:
        self.messages: list[Message] = [*first]
        self.ignored: set[str] = set()
        self.loaded: list[Loaded] = []
        self._open: Message | None = None
        self._called: set[str] = set()
        self._unknown: set[str] = set()  # the ids of calls of an unknown type
        self._ids: dict[str, str] = {}  # ids of calls by the ids of their items
        self._unread: dict[str, str] = {}  # names for `ignored` by the ids of items that are not read

    def add(self, item: Payload, at: str, *, last: bool) -> None:
        kind = item.get("type") or ("message" if "role" in item else "")
        if str(item.get("call_id", "")) in self._unknown:
            self.ignored.add(f"{at}.{kind[:100]}")
        elif read := self._KINDS.get(kind):
            read(self, item, at)
        elif kind == "item_reference":
            raise cannot(at, "references to items are not supported here: send the item itself")
        elif kind == TRIGGER:
            self._compact(at, last)
        elif last or not kind:
            message = f"items of the type {str(kind)[:100]!r} are not supported" if kind else "an item needs a type"
            raise cannot(f"{at}.type", message)
        else:
            self._unknown |= {str(item["call_id"])} if item.get("call_id") else set()
            self.ignored.add(f"{at}.{kind[:100]}")

    def _hosted(self, item: Payload, at: str) -> None:
        if item["type"] == "mcp_list_tools":  # the request itself lists the tools
            return
        if (call := hosted_call(item)) is None:
            self._unread[str(item.get("id"))] = f"{at}.{item['type']}"
            self.ignored.add(f"{at}.{item['type']}")
            return
        self._add_run(str(item.get("id") or at), *call, at)

    def _add_run(self, key: str, name: str, arguments: str, result: str, at: str) -> None:
        """Add a call that was run here or at another provider, and its result."""
        self._add_call({"call_id": key, "id": key}, name, arguments)
        self._add_result(key, result, at)

    def _message(self, item: Payload, at: str) -> None:
        role = item.get("role")
        if role not in ("user", "assistant", "system", "developer"):
            raise _wrong(f"{at}.role", "user, assistant, system or developer", role)
        if role != "assistant":
            self._open = None
            self.messages.append({"role": role, "content": self._content(item.get("content"), f"{at}.content")})
            return
        turn = self._turn("content", "tool_calls")
        turn["content"] = _words(self._content(item.get("content"), f"{at}.content"))
        if isinstance(phase := item.get("phase"), str):
            turn["phase"] = phase

    def _agent_message(self, item: Payload, at: str) -> None:
        """What one agent of the client's says to another."""
        self._open = None
        message = _words(self._content(item.get("content"), f"{at}.content"))
        text = f"Message from {item.get('author')} to {item.get('recipient')}:\n{message}"
        self.messages.append({"role": "user", "content": text})

    def _compact(self, at: str, last: bool) -> None:
        """Ask the model for a summary of all messages so far."""
        if not last:
            raise Refused(f"{at}: {TRIGGER} must be the last item", code="invalid_value", param=at)
        self.messages.append({"role": "user", "content": SUMMARIZE})

    def _compaction(self, item: Payload, at: str) -> None:
        """Add the summary of an item from an earlier compaction. Raises Refused for another server's summary."""
        if not item.get(SEALED):
            self.ignored.add(f"{at}.{item['type']}")
            return
        if (summary := opened_summary(item[SEALED])) is None:
            raise cannot(f"{at}.{SEALED}", NOT_OURS)
        self._open = None
        self.messages.append({"role": "user", "content": SUMMARIZED + summary})

    def _content(self, value: Any, at: str) -> str | list[dict[str, Any]]:
        """A content without the parts that its provider alone can read, which are named as ignored."""
        parts = cast("list[Any]", value) if isinstance(value, list) else []
        readable = [part for part in parts if record(part).get("type") != SEALED]
        if len(readable) == len(parts):
            return _content(value, at)
        self.ignored.add(f"{at}.{SEALED}")
        return _content(readable, at)

    def _reasoning(self, item: Payload, at: str) -> None:
        content = [part for part in records(item.get("content")) if part.get("type") == "reasoning_text"]
        texts = [part.get("text") for part in content or records(item.get("summary"))]
        thought = "\n\n".join(text for text in texts if isinstance(text, str))
        if thought:
            self._turn("content", "tool_calls", "reasoning_content")["reasoning_content"] = thought
        elif run := opened_run(item.get(SEALED)):
            if run[0] not in self._called:
                self.ignored.discard(self._unread.get(run[0], ""))
                self._add_run(*run, at)
        elif item.get(SEALED):
            self.ignored.add(f"input.{SEALED}")

    def _call(self, item: Payload, at: str) -> None:
        field = CALLS[item["type"]]
        for name in ("call_id", "name", field):
            if not isinstance(item.get(name), str):
                raise _wrong(f"{at}.{name}", "a text", item.get(name))
        refuse_blank(item["name"], f"{at}.name")
        text = item[field] if field == "arguments" else nonblocking_json.dumps({"input": item[field]})
        self._add_call(item, full_name(item.get("namespace"), item["name"]), text)

    def _client_call(self, item: Payload, at: str) -> None:
        if not isinstance(item.get("call_id"), str):
            raise _wrong(f"{at}.call_id", "a text", item.get("call_id"))
        self._add_call(item, *called_arguments(item))

    def _search(self, item: Payload, at: str) -> None:
        if item.get("execution") == "client":
            self._client_call(item, at)

    def _searched(self, item: Payload, at: str) -> None:
        if item.get("execution") == "client":
            names = tool_names(item.get("tools"))
            text = f"These tools can be called now: {', '.join(names)}" if names else "No tool was found."
            self._add_result(item.get("call_id"), text, at)
        self._load(item, at)

    def _load(self, item: Payload, at: str) -> None:
        rows = item.get("tools")
        if not judge(TOOLS).is_valid(rows):
            raise _wrong(f"{at}.tools", "tools, each with a type and what it says", rows)
        self.loaded.append(Loaded(f"{at}.tools", max(0, len(self.messages) - 1), records(rows)))

    def _add_call(self, item: Payload, name: str, arguments: str) -> None:
        key = str(item["call_id"])
        turn = self._turn()
        turn.setdefault("content", None)
        calls = turn.setdefault("tool_calls", [])
        calls.append({"id": key, "type": "function", "function": {"name": name, "arguments": arguments}})
        self._called.add(key)
        self._ids[str(item.get("id"))] = key

    def _result(self, item: Payload, at: str) -> None:
        self._add_result(item.get("call_id"), self._content(item.get("output"), f"{at}.output"), at)

    def _client_result(self, item: Payload, at: str) -> None:
        if (content := answered(item)) is None:
            raise _wrong(f"{at}.output", f"the output of a {item['type'].removesuffix('_output')}", item.get("output"))
        # The oldest of these types refers to its call by `id`, which may be the id of the call's item.
        key = item.get("call_id") or item.get("id")
        self._add_result(self._ids.get(key, key) if isinstance(key, str) else key, content, at)

    def _add_result(self, key: Any, content: Any, at: str) -> None:
        if not isinstance(key, str):
            raise _wrong(f"{at}.call_id", "a text", key)
        if key not in self._called:
            message = f"{at}.call_id: no call before it has the id {key[:100]!r}; send the call with its output"
            raise Refused(message, code="invalid_value", param=f"{at}.call_id")
        self._open = None
        self.messages.append({"role": "tool", "tool_call_id": key, "content": content})

    def _turn(self, *parts: str) -> Message:
        """Return the assistant's message that is being read, or a new one if it already has a part of this kind."""
        if self._open is None or any(name in self._open for name in parts):
            self._open = {"role": "assistant"}
            self.messages.append(self._open)
        return self._open

    _KINDS: ClassVar[Mapping[str, Callable[[Any, Payload, str], None]]] = {
        "message": _message,
        "reasoning": _reasoning,
        **dict.fromkeys(CALLS, _call),
        **dict.fromkeys(RESULTS, _result),
        **dict.fromkeys(CALLED, _client_call),
        **dict.fromkeys(ANSWERED, _client_result),
        **dict.fromkeys(HOSTED, _hosted),
        "tool_search_call": _search,
        "tool_search_output": _searched,
        "additional_tools": _load,
        "agent_message": _agent_message,
        **dict.fromkeys(COMPACTED, _compaction),
    }
    """How items are read, by their types. Bound methods in a reader would hold it, and its messages, until a garbage collection."""


def _words(content: str | list[dict[str, Any]]) -> str:
    """Return an assistant's content as one text."""
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)


def _content(value: Any, at: str) -> str | list[dict[str, Any]]:
    """Return a content for a message: a string if it is only text, else a list of OpenAI's content parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise _wrong(at, "a text or a list of parts", value)
    parts = [_part(part, f"{at}.{i}") for i, part in enumerate(cast("list[Any]", value))]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(value: Any, at: str) -> dict[str, Any]:
    part = record(value)
    match part.get("type"):
        case "input_text" | "output_text" | "text" | "summary_text" if isinstance(part.get("text"), str):
            return {"type": "text", "text": part["text"]}
        case "refusal" if isinstance(part.get("refusal"), str):
            return {"type": "text", "text": part["refusal"]}
        case "input_image" if isinstance(part.get("image_url"), str):
            detail = {"detail": part["detail"]} if part.get("detail") else {}
            return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
        case "input_file" if isinstance(part.get("file_data"), str):
            return {"type": "file", "file": {key: part[key] for key in ("filename", "file_data") if part.get(key)}}
        case "input_audio" if isinstance(part.get("input_audio"), dict):
            return {"type": "input_audio", "input_audio": part["input_audio"]}
        case "input_image" | "input_file":
            raise cannot(at, "no files are kept or fetched here: send image_url or file_data")
        case kind:
            raise _wrong(at, "input_text, input_image, input_file, input_audio or output_text with what it holds", kind)


def _wrong(at: str, expected: str, came: Any) -> Refused:
    received = nonblocking_json.first_characters(came, 100) if came is not None else "nothing"
    return Refused(f"{at}: expected {expected}, got {received}", code="invalid_value", param=at)


# ------------------------------------------------------------------ written


def write_input(messages: Sequence[Message], *, thoughts: bool = False) -> list[Payload]:
    """Return messages as items. `thoughts`: send the reasoning of earlier turns. Raises UsageError for messages that
    have no item."""
    items: list[Payload] = []
    for at, message in enumerate(messages):
        items += _written(message, at, thoughts)
    return items


def _written(message: Message, at: int, thoughts: bool) -> list[Payload]:
    role, content = message.get("role", "user"), message.get("content")
    if role == "tool":
        output = _write_content(content, "input_text")
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id", ""), "output": output}]
    if role not in ("user", "assistant", "system", "developer"):
        raise UsageError(f"the Responses API has no message with the role {role!r}")
    calls = records(message.get("tool_calls"))
    items: list[Payload] = []
    if thoughts and (thought := message.get("reasoning_content")):
        text = {"type": "reasoning_text", "text": thought}
        items.append({"type": "reasoning", "id": f"rs_{at}", "summary": [], "content": [text]})
    if content or not calls:
        kind = "output_text" if role == "assistant" else "input_text"
        phase = {"phase": named} if (named := message.get("phase")) else {}
        items.append({"type": "message", "role": role, **phase, "content": _write_content(content, kind)})
    return items + [_write_call(call) for call in calls]


def _write_call(call: Payload) -> Payload:
    function = record(call.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = nonblocking_json.dumps({} if arguments is None else arguments)
    named = {"call_id": call.get("id", ""), "name": function.get("name", "")}
    return {"type": "function_call", **named, "arguments": arguments}


def _write_content(content: Any, kind: str) -> Any:
    if isinstance(content, list):
        return [_write_part(part, kind) for part in records(cast("Any", content))]
    return content or ""


def _write_part(part: Payload, kind: str) -> Payload:
    match part:
        case {"type": "text", "text": text}:
            return {"type": kind, "text": text}
        case {"type": "image_url", "image_url": {"url": url, **image}}:
            return {"type": "input_image", "detail": image.get("detail", "auto"), "image_url": url}
        case {"type": "file", "file": {**file}}:
            return {"type": "input_file", **file}
        case {"type": "input_audio", "input_audio": sound}:
            return {"type": "input_audio", "input_audio": sound}
        case {"type": "text" | "image_url" | "file" | "input_audio" as other}:
            raise UsageError(f"a part of the type {other!r} needs the field {other}")
        case _:
            raise UsageError(f"the Responses API has no part of the type {part.get('type')!r}")


# ------------------------------------------------------------------ stored


def is_reference(item: Payload) -> bool:
    """Whether an item of an input only refers to a stored item."""
    if "id" not in item:
        return False
    return item.get("type", "item_reference" if len(item) == 1 else "message") == "item_reference"


def stored_items(value: Any, stamp: str) -> list[Payload]:
    """Return an `input` as the items that a store keeps and shows: each with an id, messages with parts, references
    unchanged."""
    items = [{"role": "user", "content": value}] if isinstance(value, str) else records(value)
    return [_stored(item, f"{stamp}_{at}") for at, item in enumerate(items)]


PREFIXES = {
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "function_call_output": "fco",
    "custom_tool_call_output": "cto",
    **{item: tool.prefix for item, tool in CALLED.items()},
    **{output: f"{tool.prefix}o" for output, tool in ANSWERED.items()},
}


def _stored(item: Payload, key: str) -> Payload:
    if is_reference(item):
        return {"type": "item_reference", "id": str(item["id"])[:200]}
    kind = item.get("type") or "message"
    out = {"id": f"{PREFIXES.get(kind, 'msg')}_in_{key}", "status": "completed", **item, "type": kind}
    if kind == "message" and isinstance(item.get("content"), str):
        answered: Payload = {"type": "output_text", "text": item["content"], "annotations": []}
        part: Payload = {"type": "input_text", "text": item["content"]}
        out["content"] = [answered if item.get("role") == "assistant" else part]
    if kind == "reasoning":
        out.setdefault("summary", [])
    return out
