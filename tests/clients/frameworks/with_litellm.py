"""litellm, as a library: its own loop over chat and messages, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import litellm
from steps import KEY, TASK, URL, clock, main, weather

RUN = {"weather": weather, "clock": clock}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The {name} in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    for name in RUN
]


def play(model: str, way: str, *, stream: bool) -> str:
    base = f"{URL}/v1" if way == "openai" else URL
    messages: list[Any] = [{"role": "user", "content": TASK}]
    while True:
        came: Any = litellm.completion(
            f"{way}/{model}", messages, tools=TOOLS, api_base=base, api_key=KEY, stream=stream, max_tokens=500
        )
        if stream:
            came = litellm.stream_chunk_builder(list(came), messages=messages)
        message = came.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump())
        for call in message.tool_calls:
            result = RUN[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    main({
        f"{name}{'-stream' if stream else ''}": lambda model, way=way, stream=stream: play(model, way, stream=stream)
        for name, way in (("chat", "openai"), ("messages", "anthropic")) for stream in (False, True)
    })  # fmt: skip
