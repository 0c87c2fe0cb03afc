"""The openai SDK: chat completions whole, streamed, by the streaming helper and async; responses whole and streamed."""

from __future__ import annotations

from typing import Any

import openai
from asking import FUNCTIONS, KEY, MODEL, QUESTIONS, RUN, URL, failed, main, told

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=60)
eager = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=60)
TOOLS: Any = [{"type": "function", "function": function} for function in FUNCTIONS]
FLAT: Any = [{"type": "function", **function} for function in FUNCTIONS]
NAMED: Any = {"type": "function", "function": {"name": "clock"}}


def body(name: str) -> dict[str, Any]:
    made: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": QUESTIONS[name]}]}
    if name not in ("plain", "stream", "error"):
        made["tools"] = TOOLS
    if name in ("required", "named"):
        made["tool_choice"] = "required" if name == "required" else NAMED
    return made


def of(completion: Any, **more: Any) -> dict[str, Any]:
    choice = completion.choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    return told(choice.message.content, calls, finish=choice.finish_reason, **more)


def answered(name: str, message: Any, calls: Any) -> list[Any]:
    """The conversation with each call's result in it."""
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": RUN[call.function.name](**eval_json(call))}
        for call in calls
    ]
    return [*body(name)["messages"], message, *results]


def eval_json(call: Any) -> dict[str, Any]:
    import json

    return json.loads(call.function.arguments)


def chat(name: str) -> dict[str, Any]:
    try:
        completion = client.chat.completions.create(**body(name))
    except openai.APIStatusError as error:
        return failed(error)
    if name == "loop":
        message = completion.choices[0].message
        again = answered(name, message, message.tool_calls)
        completion = client.chat.completions.create(**{**body(name), "messages": again})
    return of(completion, usage=bool(completion.usage and completion.usage.completion_tokens))


def streamed(name: str) -> dict[str, Any]:
    """By hand, as many programs do: pieces put together by their index."""
    text, calls, finish, pieces, usage = "", {}, None, 0, None
    try:
        chunks = client.chat.completions.create(**body(name), stream=True, stream_options={"include_usage": True})
        for chunk in chunks:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
                pieces += bool(choice.delta.content)
                text += choice.delta.content or ""
                for delta in choice.delta.tool_calls or ():
                    call = calls.setdefault(delta.index, ["", "", ""])
                    call[0] += delta.id or ""
                    call[1] += delta.function.name or ""
                    call[2] += delta.function.arguments or ""
    except openai.APIError as error:
        return failed(error)
    ids = {call[0] for call in calls.values()}
    same = len(ids) == len(calls)
    return told(text, [call[1:] for call in calls.values()], finish=finish, pieces=pieces, ids=same, usage=bool(usage))


def helper(name: str) -> dict[str, Any]:
    pieces = 0
    try:
        with client.chat.completions.stream(**body(name)) as stream:
            for event in stream:
                pieces += event.type == "content.delta"
            completion = stream.get_final_completion()
    except openai.APIError as error:
        return failed(error)
    return of(completion, pieces=pieces)


async def eagerly(name: str) -> dict[str, Any]:
    try:
        completion = await eager.chat.completions.create(**body(name))
    except openai.APIStatusError as error:
        return failed(error)
    if name == "loop":
        message = completion.choices[0].message
        again = answered(name, message, message.tool_calls)
        completion = await eager.chat.completions.create(**{**body(name), "messages": again})
    return of(completion)


# ------------------------------------------------------------------ responses


def asked(name: str) -> dict[str, Any]:
    made: dict[str, Any] = {"model": MODEL, "input": [{"role": "user", "content": QUESTIONS[name]}], "store": False}
    if name not in ("plain", "stream", "error"):
        made["tools"] = FLAT
    if name in ("required", "named"):
        made["tool_choice"] = "required" if name == "required" else {"type": "function", "name": "clock"}
    return made


def out(response: Any, **more: Any) -> dict[str, Any]:
    calls = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
    return told(response.output_text, calls, status=response.status, **more)


def results(response: Any) -> list[Any]:
    import json

    rows: list[Any] = []
    for item in response.output:
        rows.append(item.model_dump(exclude_none=True))
        if item.type == "function_call":
            said = RUN[item.name](**json.loads(item.arguments))
            rows.append({"type": "function_call_output", "call_id": item.call_id, "output": said})
    return rows


def responses(name: str) -> dict[str, Any]:
    try:
        response = client.responses.create(**asked(name))
    except openai.APIStatusError as error:
        return failed(error)
    if name == "loop":
        again = {**asked(name), "input": [*asked(name)["input"], *results(response)]}
        response = client.responses.create(**again)
    return out(response)


def responses_streamed(name: str) -> dict[str, Any]:
    pieces, kinds = 0, []
    try:
        with client.responses.stream(**asked(name)) as stream:
            for event in stream:
                pieces += event.type == "response.output_text.delta"
                kinds.append(event.type)
            response = stream.get_final_response()
    except (openai.APIError, RuntimeError) as error:
        return failed(error)
    return out(response, pieces=pieces, last=kinds[-1])


WAYS = {
    "chat": chat,
    "chat-stream": streamed,
    "chat-helper": helper,
    "chat-async": eagerly,
    "responses": responses,
    "responses-stream": responses_streamed,
}
LEFT = {
    "chat": ("stream", "stream_call"),
    "chat-async": ("stream", "stream_call"),
    "responses": ("stream", "stream_call"),
    "chat-stream": ("plain", "call", "loop"),
    "chat-helper": ("plain", "call", "loop"),
    "responses-stream": ("plain", "call", "loop"),
}

if __name__ == "__main__":
    main({
        way: {name: (lambda play=play, name=name: play(name)) for name in QUESTIONS if name not in LEFT[way]}
        for way, play in WAYS.items()
    })  # fmt: skip
