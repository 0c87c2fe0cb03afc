"""Converts conversations in both directions: our messages into turns of content blocks, and turns into our messages.

What one form cannot express: several adjacent texts become one (with a blank line between them, without one in an
assistant's turn); the tool's name in a result is dropped, because the id of the call implies it; an empty text beside
other blocks is dropped. The result of a failed tool has `is_error` there, and is `{"error": …}` here (`tool_errors`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from ...errors import Refused
from ...schema import nonblocking_json
from ...types import Message
from ..field_schemas import cannot, refuse_blank
from ..json_stream import Payload, record, records
from ..named_servers import NamedServer, in_messages
from ..tool_errors import error_in, error_text
from .computer_toolsets import full_name, state_text
from .gateway_calls import split_at_results
from .tool_changes import ToolChanges

DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,", re.IGNORECASE)
NO_ID = re.compile(r"[^a-zA-Z0-9_-]")
"""Characters that Anthropic does not allow in the id of a call."""
SAYS_NOTHING = ("cache_control", "citations", "context", "caller", "transformations", "signature")
"""Fields of a block that are dropped and reported as ignored."""

# ------------------------------------------------------------------ written: what a server is sent


def write_system(messages: Sequence[Message]) -> tuple[Any, Sequence[Message]]:
    """Return the system prompt at the start of a conversation (None if there is none), and the other messages."""
    count = next((i for i, m in enumerate(messages) if m.get("role") not in ("system", "developer")), len(messages))
    contents = [message.get("content") for message in messages[:count]]
    if not contents:
        return None, messages
    if len(contents) == 1 and isinstance(contents[0], str):
        return contents[0], messages[count:]
    return [block for i, content in enumerate(contents) for block in _blocks(content, f"messages.{i}")], messages[
        count:
    ]


def write_messages(messages: Sequence[Message], *, thoughts: bool = False) -> list[Payload]:
    """Return the turns. The results of tools go into the user's turn that follows them."""
    out: list[Payload] = []
    results: list[Payload] = []
    for i, message in enumerate(messages):
        role, content, path = message.get("role", "user"), message.get("content"), f"messages.{i}.content"
        if role in ("tool", "function"):
            results.append(_result(message, path))
            continue
        if results:
            turn: Payload = {"role": "user", "content": results}
            out.append(turn)
            results = []
            if role == "user":
                turn["content"] += _blocks(content, path)
                continue
        if role == "assistant":
            out.append({"role": role, "content": _content_of(message, path, thoughts)})
        else:
            role = "system" if role == "developer" else role
            out.append({"role": role, "content": content if isinstance(content, str) else _blocks(content, path)})
    return [*out, {"role": "user", "content": results}] if results else out


def _content_of(message: Message, path: str, thoughts: bool) -> Any:
    content, calls = message.get("content"), records(message.get("tool_calls"))
    thought = message.get("reasoning_content") if thoughts else None
    if isinstance(content, str) and not calls and not thought:
        return content
    before: list[Payload] = [{"type": "thinking", "thinking": thought, "signature": ""}] if thought else []
    return [*before, *_blocks(content, path), *(_call(call) for call in calls)]


def _blocks(content: Any, path: str) -> list[Payload]:
    if isinstance(content, str) or content is None:
        return [{"type": "text", "text": content}] if content else []
    return [_block(part, f"{path}.{i}") for i, part in enumerate(records(content)) if part.get("text") != ""]


def _block(part: Payload, path: str) -> Payload:
    match part.get("type"):
        case "text" | "input_text" | "output_text" | "refusal":
            return {"type": "text", "text": str(part.get("text") or part.get("refusal") or "")}
        case "image_url":
            return {"type": "image", "source": _source(str(record(part.get("image_url")).get("url", "")), path)}
        case kind:
            raise cannot(path, f"the model's server takes text and images, not a part of the type {str(kind)[:50]!r}")


def _source(url: str, path: str) -> Payload:
    if head := DATA_URL.match(url):
        return {"type": "base64", "media_type": head[1], "data": url[head.end() :]}
    if url.startswith("data:"):
        raise cannot(path, "expected an image as base64, or the address of one")
    return {"type": "url", "url": url}


def _call(call: Payload) -> Payload:
    function = record(call.get("function"))
    arguments: Any = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        # An earlier call with invalid JSON is still part of the conversation.
        with suppress(ValueError, RecursionError):
            arguments = nonblocking_json.loads(arguments)
    input_object = cast("Payload", arguments) if isinstance(arguments, dict) else {"arguments": arguments}
    return {"type": "tool_use", "id": _id(call.get("id")), "name": function.get("name", ""), "input": input_object}


def _result(message: Message, path: str) -> Payload:
    content = message.get("content")
    block: Payload = {"type": "tool_result", "tool_use_id": _id(message.get("tool_call_id"))}
    if isinstance(content, str) and (error := error_in(content)) is not None:
        return {**block, "content": error, "is_error": True}
    return {**block, "content": (content or "") if isinstance(content, str | None) else _blocks(content, path)}


def _id(value: Any) -> str:
    return NO_ID.sub("_", str(value or "call"))


# ------------------------------------------------------------------ read: what clients send


class ContentReader:
    """Reads messages from turns.

    `ignored` collects the names of fields without effect; `hosted` the types of tools that a provider runs; `changes`
    the changes of the tools; `servers` the MCP servers that the client names. `effort` is the last one that a turn set.
    `knows_servers`: the request or a turn names an MCP server.
    """

    def __init__(self) -> None:
        self.ignored: set[str] = set()
        self.hosted: list[tuple[str, str]] = []
        self.changes = ToolChanges()
        self.effort: str | None = None
        self.servers: tuple[NamedServer, ...] = ()
        self.knows_servers = False
        self._called: set[str] = set()
        self._at = 0
        self._new = True

    def system(self, system: Any) -> list[Message]:
        """Return the message for the field `system`."""
        if not system:
            return []
        content = system if isinstance(system, str) else self._content(records(system), "system")
        return [{"role": "system", "content": content}]

    def name_servers(self, servers: Any, tools: list[Payload]) -> None:
        """Note the MCP servers that a request names, and its toolsets of them."""
        self.servers = in_messages(servers, tools)
        for one in self.servers:
            self.knows_servers = True
            self.ignored.update(one.where)

    def turns(self, turns: list[Payload], first: Sequence[Message]) -> list[Message]:
        """Return the messages of the turns, after the `first` ones."""
        messages = [*first]
        last = {role: i for i, turn in enumerate(turns) if (role := turn["role"])}
        for i, turn in enumerate(turns):
            self._new = i > last.get("assistant", -1)
            self.effort = record(turn.get("output_config")).get("effort") or self.effort
            rows = self.turn(turn, f"messages.{i}.content", len(messages))
            last_user = last.get("user", -1) if turn.get("clear_at") == "next_user_message" else -1
            messages += rows if i > last_user else []
        return messages

    def turn(self, turn: Payload, path: str, at: int = 0) -> list[Message]:
        """Return the messages of one turn, the first at index `at`. Each tool result is a message of its own."""
        role, content = turn["role"], turn.get("content")
        self._at = at
        if isinstance(content, str):
            return [{"role": role, "content": content}]
        if role == "system" and content is None:  # it sets the effort
            return []
        blocks = _blocks_in(content, path)
        return self._assistant_turn(blocks, path) if role == "assistant" else self._client_turn(role, blocks, path)

    def _assistant_turn(self, blocks: list[Payload], path: str) -> list[Message]:
        self.knows_servers |= any(block["type"] == "mcp_tool_use" for block in blocks)
        rows: list[Message] = []
        for spoken, results in split_at_results(blocks):
            rows += [self._assistant(spoken, path), *results]
        return rows

    def _client_turn(self, role: str, blocks: list[Payload], path: str) -> list[Message]:
        """The messages of a turn that the client has written."""
        results: list[Message] = []
        rest: list[Payload] = []
        for i, block in enumerate(blocks):
            if role == "user" and block["type"] == "tool_result":
                results.append(self._result(block, f"{path}.{i}"))
                self._at += 1
            else:
                rest += self._parts(block, f"{path}.{i}")
        return [*results, {"role": role, "content": _flat(rest)}] if rest or not results else results

    def _assistant(self, blocks: list[Payload], path: str) -> Message:
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[Payload] = []
        for i, block in enumerate(blocks):
            match block["type"]:
                case "thinking":
                    self._note(block)
                    thoughts.append(need(block, "thinking", f"{path}.{i}"))
                case "redacted_thinking" | "server_tool_use" | "mcp_tool_use" | "mcp_tool_listing" as kind:
                    self.ignored.add(kind)
                case kind if kind.endswith("_tool_result"):
                    self._hosted(block)
                case "tool_use":
                    self._note(block)
                    calls.append(_read_call(block, f"{path}.{i}"))
                    self._called.add(calls[-1]["id"])
                case _:
                    texts += [_only_text(part, f"{path}.{i}") for part in self._parts(block, f"{path}.{i}")]
        return _assistant_message("".join(texts), "".join(thoughts), calls)

    def _hosted(self, block: Payload) -> None:
        """Ignore a provider's tool result without its call, but note the tools that it found."""
        if block["type"] != "tool_search_tool_result":
            self.ignored.add(block["type"])
        for reference in records(record(block.get("content")).get("tool_references")):
            self.changes.refer(str(reference.get("tool_name")), self._at)

    def _result(self, block: Payload, path: str) -> Message:
        self._note(block)
        key = need(block, "tool_use_id", path)
        if key not in self._called:
            where = f"{path}.tool_use_id"
            message = f"no tool_use block before it has the id {key[:100]!r}; send the whole conversation, the call too"
            raise Refused(f"{where}: {message}", code="invalid_value", param=where)
        content = block.get("content") or ""
        if not isinstance(content, str):
            content = self._content(_blocks_in(content, f"{path}.content"), f"{path}.content")
        if block.get("is_error") is True:
            content = _as_error(content)
        return {"role": "tool", "tool_call_id": key, "content": content}

    def _content(self, blocks: list[Payload], path: str) -> Any:
        return _flat(self._content_parts(blocks, path))

    def _content_parts(self, blocks: list[Payload], path: str) -> list[Payload]:
        return [part for i, block in enumerate(blocks) for part in self._parts(block, f"{path}.{i}")]

    def _parts(self, block: Payload, path: str) -> list[Payload]:
        """Return the content parts of a block. A block of an unknown type is dropped and reported as ignored, except in
        new turns, where it raises Refused: clients recognize "Input tag" in the message, and stop sending such blocks.
        """
        self._note(block)
        match block["type"]:
            case "text":
                return [_text(need(block, "text", path))]
            case "image":
                return [{"type": "image_url", "image_url": {"url": _url(record(block.get("source")), path)}}]
            case "document":
                return self._document(block, path)
            case "tool_reference" | "tool_addition" | "tool_removal":
                return self._change(block, path)
            case "compaction":
                summary = [_text(text)] if isinstance(text := block.get("content"), str) else []
                return summary + self._content_parts(records(block.get("tool_changes")), f"{path}.tool_changes")
            case "browser_state":
                return [_text(state_text(block))]
            case "search_result":
                head = "\n".join(need(block, name, path) for name in ("title", "source"))
                return [_text(head), *self._inner(block.get("content"), f"{path}.content")]
            case kind:
                return self._unknown(kind[:50], path)

    def _change(self, block: Payload, path: str) -> list[Payload]:
        """What the model is told of a block that changes which tools can be called."""
        if block["type"] == "tool_reference":
            text = self.changes.refer(need(block, "tool_name", path), self._at)
        elif block["type"] == "tool_addition":
            text = self.changes.add(block, path, self._at)
        else:
            text = self.changes.remove(block)
        if not text:
            self.ignored.add(block["type"])
        return [_text(text)] if text else []

    def _unknown(self, kind: str, path: str) -> list[Payload]:
        if self._new:
            message = f"a block of the type {kind!r} cannot be passed on to the model here"
            raise cannot(path, f"Input tag {kind!r}: {message}")
        self.ignored.add(kind)
        return []

    def _document(self, block: Payload, path: str) -> list[Payload]:
        source = record(block.get("source"))
        titled = [_text(title)] if isinstance(title := block.get("title"), str) and title else []
        match source.get("type"):
            case "text":
                return [*titled, _text(need(source, "data", f"{path}.source"))]
            case "content":
                return [*titled, *self._inner(source.get("content"), f"{path}.source.content")]
            case kind:
                raise cannot(
                    f"{path}.source",
                    f"a document can be passed on as text only, not from a source of the type {str(kind)[:50]!r}",
                )

    def _inner(self, content: Any, path: str) -> list[Payload]:
        if isinstance(content, str):
            return [_text(content)]
        blocks = _blocks_in(content, path)
        for i, block in enumerate(blocks):  # one level: the API has no deeper nesting
            if block.get("type") not in ("text", "image"):
                raise cannot(f"{path}.{i}", "expected a text or an image")
        return [part for i, block in enumerate(blocks) for part in self._parts(block, f"{path}.{i}")]

    def _note(self, block: Payload) -> None:
        self.ignored.update(name for name in SAYS_NOTHING if block.get(name) is not None)


def need(block: Payload, name: str, path: str) -> str:
    """Return a string that a block must have. Raises Refused."""
    value = block.get(name)
    if not isinstance(value, str):
        kind = "nothing" if value is None else type(value).__name__
        raise Refused(f"{path}.{name}: expected a string, got {kind}", code="invalid_value", param=f"{path}.{name}")
    return value


def _blocks_in(content: Any, path: str) -> list[Payload]:
    """Return the blocks of a content that is not a string. Raises Refused for an object, which only a provider's tool
    has, and if it is missing."""
    if not isinstance(content, list):
        came = "nothing" if content is None else "an object"
        raise Refused(f"{path}: expected a text or a list of blocks, got {came}", code="invalid_value", param=path)
    return records(cast("list[Any]", content))


def _read_call(block: Payload, path: str) -> Payload:
    arguments = nonblocking_json.dumps(record(block.get("input")))
    own = need(block, "name", path)
    refuse_blank(own, f"{path}.name")
    name = full_name(block.get("toolset_name"), own)
    function = {"name": name, "arguments": arguments}
    return {"id": need(block, "id", path), "type": "function", "function": function}


def _url(source: Payload, path: str) -> str:
    match source.get("type"):
        case "base64":
            media, data = (need(source, name, f"{path}.source") for name in ("media_type", "data"))
            return f"data:{media};base64,{data}"
        case "url":
            return need(source, "url", f"{path}.source")
        case kind:
            message = f"expected an image as base64 or by its address, not a source of the type {str(kind)[:50]!r}"
            raise cannot(f"{path}.source", message)


def _text(text: str) -> Payload:
    return {"type": "text", "text": text}


def _only_text(part: Payload, path: str) -> str:
    if part["type"] != "text":
        raise cannot(path, "an image in an assistant's turn is not supported")
    return part["text"]


def _flat(parts: list[Payload]) -> Any:
    """Join texts into one, which many servers and all chat templates need. With an image, return the parts."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _as_error(content: Any) -> Any:
    if isinstance(content, str):
        return error_text(content)
    return [_text(error_text(part["text"])) if "text" in part else part for part in cast("list[Payload]", content)]


def _assistant_message(text: str, thought: str, calls: list[Payload]) -> Message:
    message: Message = {"role": "assistant", "content": text or (None if calls else "")}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    return message
