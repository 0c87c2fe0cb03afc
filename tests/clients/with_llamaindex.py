"""LlamaIndex: OpenAILike, as a model that calls functions."""

from __future__ import annotations

from typing import Any

from asking import KEY, MODEL, QUESTIONS, RUN, URL, clock, failed, main, told, weather
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

TOOLS = [FunctionTool.from_defaults(weather), FunctionTool.from_defaults(clock)]
model = OpenAILike(
    api_base=f"{URL}/v1", api_key=KEY, model=MODEL, is_chat_model=True, is_function_calling_model=True, max_retries=0,
    timeout=60, context_window=8192,
)  # fmt: skip


def of(response: Any, **more: Any) -> dict[str, Any]:
    calls = model.get_tool_calls_from_response(response, error_on_no_tool_call=False)
    return told(response.message.content, [(call.tool_name, call.tool_kwargs) for call in calls], **more)


def chat(name: str) -> dict[str, Any]:
    asked = [ChatMessage(role="user", content=QUESTIONS[name])]
    given: dict[str, Any] = {"allow_parallel_tool_calls": True}
    if name == "required":
        given["tool_required"] = True
    if name == "named":
        given["tool_choice"] = {"type": "function", "function": {"name": "clock"}}
    try:
        if name == "stream":
            *_, last = pieces = list(model.stream_chat(asked))
            return told(last.message.content, pieces=sum(bool(piece.delta) for piece in pieces))
        if name == "stream_call":
            *_, last = pieces = list(model.stream_chat_with_tools(TOOLS, chat_history=asked))
            return of(last, pieces=len(pieces))
        if name in ("plain", "error"):
            return told(model.chat(asked).message.content)
        response = model.chat_with_tools(TOOLS, chat_history=asked, **given)
    except Exception as error:  # noqa: BLE001 - told, and judged by who reads it
        return failed(error)
    if name == "loop":
        calls = model.get_tool_calls_from_response(response)
        results = [
            ChatMessage(
                role="tool",
                content=RUN[call.tool_name](**call.tool_kwargs),
                additional_kwargs={"tool_call_id": call.tool_id},
            )
            for call in calls
        ]
        response = model.chat_with_tools(TOOLS, chat_history=[*asked, response.message, *results])
    return of(response)


if __name__ == "__main__":
    main({"chat": {name: (lambda name=name: chat(name)) for name in QUESTIONS}})
