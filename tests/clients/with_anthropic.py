"""The anthropic SDK: messages whole, streamed by its helper, and async; tokens counted."""

from __future__ import annotations

from typing import Any

import anthropic
from asking import FUNCTIONS, KEY, MODEL, QUESTIONS, RUN, URL, failed, main, told

client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=60)
eager = anthropic.AsyncAnthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=60)
TOOLS: Any = [
    {"name": one["name"], "description": one["description"], "input_schema": one["parameters"]} for one in FUNCTIONS
]


def body(name: str) -> dict[str, Any]:
    asked = [{"role": "user", "content": QUESTIONS[name]}]
    made: dict[str, Any] = {"model": MODEL, "max_tokens": 512, "messages": asked}
    if name not in ("plain", "stream", "error"):
        made["tools"] = TOOLS
    if name in ("required", "named"):
        made["tool_choice"] = {"type": "any"} if name == "required" else {"type": "tool", "name": "clock"}
    return made


def of(message: Any, **more: Any) -> dict[str, Any]:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    return told(text, calls, finish=message.stop_reason, usage=message.usage.output_tokens > 0, **more)


def again(name: str, message: Any) -> dict[str, Any]:
    """The request with the answer and its calls' results in it."""
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": RUN[block.name](**block.input)}
        for block in message.content
        if block.type == "tool_use"
    ]
    turns = [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    return {**body(name), "messages": [*body(name)["messages"], *turns]}


def messages(name: str) -> dict[str, Any]:
    try:
        message = client.messages.create(**body(name))
    except anthropic.APIStatusError as error:
        return failed(error)
    if name == "loop":
        message = client.messages.create(**again(name, message))
    counted = client.messages.count_tokens(**{k: v for k, v in body(name).items() if k != "max_tokens"})
    return of(message, counted=counted.input_tokens > 0)


def streamed(name: str) -> dict[str, Any]:
    pieces, kinds = 0, []
    try:
        with client.messages.stream(**body(name)) as stream:
            for event in stream:
                pieces += event.type == "text"
                kinds.append(event.type)
            message = stream.get_final_message()
    except anthropic.APIError as error:
        return failed(error)
    return of(message, pieces=pieces, first=kinds[0], last=kinds[-1])


async def eagerly(name: str) -> dict[str, Any]:
    try:
        message = await eager.messages.create(**body(name))
    except anthropic.APIStatusError as error:
        return failed(error)
    if name == "loop":
        message = await eager.messages.create(**again(name, message))
    return of(message)


WAYS = {"messages": messages, "messages-stream": streamed, "messages-async": eagerly}
LEFT = {
    "messages": ("stream", "stream_call"),
    "messages-async": ("stream", "stream_call"),
    "messages-stream": ("plain", "call", "loop"),
}

if __name__ == "__main__":
    main({
        way: {name: (lambda play=play, name=name: play(name)) for name in QUESTIONS if name not in LEFT[way]}
        for way, play in WAYS.items()
    })  # fmt: skip
