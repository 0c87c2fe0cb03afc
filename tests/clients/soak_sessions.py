"""Sessions as coding agents have them, for `soak.py`: many tools, long instructions, turn after turn, asked again on faults.

Each API is asked with the fields that agents send, in words of our own. A session makes the steps that its task names, with
the results in the conversation, and must end with what the last of them found. What fails on the way is asked again, as
agents do it; an answer that says that the request itself is wrong is one too many: the real API would have taken it.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

from upstream import TOKEN

TRIES = 12
"""How often an agent asks before it gives a turn up."""
PAUSE = 0.5
"""Seconds that it waits longer each time."""
STEPS = 5
SYSTEM = "You help in a project. Use the tools. " + "Keep to the style of the files that are there. " * 60
NAMES = [
    "run_command",
    "read_file",
    "write_file",
    "find_files",
    "search_text",
    "plan",
    "ask_person",
    "fetch_page",
    "note",
]
SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "What to do"},
        "timeout": {"type": "number", "exclusiveMinimum": 0},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "integer"}}}},
    },
    "required": ["command"],
    "additionalProperties": False,
}
Call = tuple[str, str, dict[str, Any]]
"""The id, the name and the arguments."""
Turn = tuple[str, list[Call]]
Post = Callable[[str, dict[str, Any]], Awaitable[tuple[int, bytes]]]


def said(name: str) -> str:
    return f"The tool {name} of the project. " + "It says what it did. " * 20


class Chat:
    """As agents ask that speak chat completions."""

    path = "/v1/chat/completions"

    def __init__(self, task: str) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]

    def body(self, model: str, *, stream: bool) -> dict[str, Any]:
        functions = [{"name": name, "description": said(name), "parameters": SCHEMA} for name in NAMES]
        more: dict[str, Any] = {"stream_options": {"include_usage": True}} if stream else {}
        tools = [{"type": "function", "function": one} for one in functions]
        return {"model": model, "messages": self.messages, "tools": tools, "tool_choice": "auto", "max_tokens": 4096, "stream": stream, **more}  # fmt: skip

    def read(self, raw: bytes, *, stream: bool) -> Turn:
        if not stream:
            message = json.loads(raw)["choices"][0]["message"]
            calls = message.get("tool_calls") or []
        else:
            deltas = [choice["delta"] for event in events(raw) for choice in event["choices"]]
            message = {"content": "".join(delta.get("content") or "" for delta in deltas)}
            by_index: dict[int, dict[str, Any]] = {}
            for piece in (piece for delta in deltas for piece in delta.get("tool_calls") or ()):
                call = by_index.setdefault(
                    piece["index"], {"id": piece.get("id"), "function": {"name": "", "arguments": ""}}
                )
                for part in ("name", "arguments"):
                    call["function"][part] += piece["function"].get(part) or ""
            calls = list(by_index.values())
        told = [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
        return message["content"] or "", told

    def add(self, turn: Turn, result: str) -> None:
        text, calls = turn
        rows = [{"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}} for key, name, given in calls]  # fmt: skip
        self.messages.append({"role": "assistant", "content": text or None, "tool_calls": rows})
        self.messages += [{"role": "tool", "tool_call_id": key, "content": result} for key, _, _ in calls]


class Messages:
    """As agents ask that speak Anthropic's Messages."""

    path = "/v1/messages"

    def __init__(self, task: str) -> None:
        self.messages: list[dict[str, Any]] = [
            {"role": "user", "content": [{"type": "text", "text": "<reminder>Be brief.</reminder>"}, {"type": "text", "text": task, "cache_control": {"type": "ephemeral"}}]}
        ]  # fmt: skip

    def body(self, model: str, *, stream: bool) -> dict[str, Any]:
        tools: list[dict[str, Any]] = [
            {"name": name, "description": said(name), "input_schema": SCHEMA} for name in NAMES
        ]
        tools[0] |= {"input_examples": [{"command": "ls"}], "eager_input_streaming": True}
        tools[-1] |= {"cache_control": {"type": "ephemeral"}}
        tools.append({"type": "web_search_20250305", "name": "web_search", "max_uses": 8})
        system = [
            {"type": "text", "text": "An agent."},
            {"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}},
        ]
        more = {
            "thinking": {"type": "adaptive"},
            "context_management": {"edits": []},
            "output_config": {"effort": "medium"},
        }
        return {"model": model, "max_tokens": 32_000, "system": system, "messages": self.messages, "tools": tools, "metadata": {"user_id": "u"}, "stream": stream, **more}  # fmt: skip

    def read(self, raw: bytes, *, stream: bool) -> Turn:
        if not stream:
            blocks = json.loads(raw)["content"]
        else:
            blocks = []
            for event in events(raw):
                if event["type"] == "content_block_start":
                    blocks.append({**event["content_block"], "json": ""})
                elif event["type"] == "content_block_delta":
                    delta = event["delta"]
                    blocks[-1]["text"] = blocks[-1].get("text", "") + delta.get("text", "")
                    blocks[-1]["json"] += delta.get("partial_json", "")
            for block in blocks:
                if block["type"] == "tool_use":
                    block["input"] = json.loads(block["json"] or "{}")
        calls = [(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
        return "".join(block.get("text", "") for block in blocks if block["type"] == "text"), calls

    def add(self, turn: Turn, result: str) -> None:
        text, calls = turn
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        blocks += [{"type": "tool_use", "id": key, "name": name, "input": given} for key, name, given in calls]
        results: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": key, "content": result} for key, _, _ in calls
        ]
        self.messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]


class Responses:
    """As agents ask that speak Responses."""

    path = "/v1/responses"

    def __init__(self, task: str) -> None:
        self.input: list[dict[str, Any]] = [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be careful."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": task}]},
        ]

    def body(self, model: str, *, stream: bool) -> dict[str, Any]:
        tools: list[dict[str, Any]] = [
            {"type": "function", "name": name, "description": said(name), "parameters": SCHEMA, "strict": False} for name in NAMES
        ]  # fmt: skip
        tools += [{"type": "web_search", "external_web_access": False}]
        more = {"include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "reasoning": {"effort": "medium"}}
        return {"model": model, "instructions": SYSTEM, "input": self.input, "tools": tools, "tool_choice": "auto", "parallel_tool_calls": False, "store": False, "stream": stream, **more}  # fmt: skip

    def read(self, raw: bytes, *, stream: bool) -> Turn:
        done = next(event["response"] for event in events(raw) if event["type"] == "response.completed") if stream else json.loads(raw)  # fmt: skip
        items = done["output"]
        text = "".join(part["text"] for item in items if item["type"] == "message" for part in item["content"])
        return text, [(item["call_id"], item["name"], json.loads(item["arguments"])) for item in items if item["type"] == "function_call"]  # fmt: skip

    def add(self, turn: Turn, result: str) -> None:
        for key, name, given in turn[1]:
            self.input += [
                {"type": "function_call", "call_id": key, "name": name, "arguments": json.dumps(given)},
                {"type": "function_call_output", "call_id": key, "output": result},
            ]


def events(raw: bytes) -> list[dict[str, Any]]:
    """The events of a stream. Raises KeyError where one of them is an error."""
    rows = [line[6:] for line in raw.decode().splitlines() if line.startswith("data: ") and line != "data: [DONE]"]
    found = [json.loads(row) for row in rows]
    for event in found:
        if event.get("error") or event.get("type") in ("error", "response.failed"):
            raise KeyError("error")
    return found


async def session(post: Post, model: str, chance: random.Random) -> str | None:
    """Plays one session; "" where it went as it should, None where the model's server was down for too long, else what went
    wrong."""
    steps = " ".join(f"[[run_command command=step+{i}]]" for i in range(STEPS))
    kind = chance.choice((Chat, Messages, Responses))
    conversation = kind(f"Do these, please. {steps}")
    stream = chance.random() < 0.7
    for number in range(STEPS + 1):
        turn = await _turn(post, conversation, model, stream=stream)
        if not isinstance(turn, tuple):
            return turn
        text, calls = turn
        if number == STEPS:
            return "" if not calls and TOKEN in text else f"{kind.__name__}: the session ended with {turn!r}"
        if [(name, given) for _, name, given in calls] != [("run_command", {"command": f"step {number}"})]:
            return f"{kind.__name__}: in the place of step {number}: {turn!r}"
        conversation.add(turn, f"done {number}: {TOKEN}")
    return ""


async def _turn(
    post: Post, conversation: Chat | Messages | Responses, model: str, *, stream: bool
) -> Turn | str | None:
    """One turn, asked again where it failed; a text for what must not be."""
    said = ""
    for number in range(TRIES):
        await asyncio.sleep(PAUSE * number)
        status, raw = await post(conversation.path, conversation.body(model, stream=stream))
        if status == 200:
            try:
                return conversation.read(raw, stream=stream)
            except (KeyError, StopIteration):  # the model's server failed in the middle
                said = f"a stream ended with {raw[-300:]!r}"
                continue
        said = f"{status}: {raw[:300]!r}"
        if status < 429 or (model == "good" and status not in (429, 503)):
            return f"{conversation.path}: a request that is right was answered with {said}"
    return f"{conversation.path}: no answer in {TRIES} tries, the last one: {said}" if model == "good" else None
