"""LangChain: ChatOpenAI over chat completions and over responses, ChatAnthropic over messages."""

from __future__ import annotations

from typing import Any

from asking import KEY, MODEL, QUESTIONS, RUN, URL, clock, failed, main, told, weather
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

TOOLS = [tool(weather), tool(clock)]
MODELS: dict[str, Any] = {
    "chat": ChatOpenAI(base_url=f"{URL}/v1", api_key=KEY, model=MODEL, max_retries=0, timeout=60),
    "responses": ChatOpenAI(
        base_url=f"{URL}/v1", api_key=KEY, model=MODEL, max_retries=0, timeout=60, use_responses_api=True
    ),
    "messages": ChatAnthropic(base_url=URL, api_key=KEY, model=MODEL, max_retries=0, timeout=60, max_tokens=512),
}


def bound(way: str, name: str) -> Any:
    if name in ("plain", "stream", "error"):
        return MODELS[way]
    if name == "required":
        return MODELS[way].bind_tools(TOOLS, tool_choice="any")
    return MODELS[way].bind_tools(TOOLS, tool_choice="clock") if name == "named" else MODELS[way].bind_tools(TOOLS)


def of(message: Any, **more: Any) -> dict[str, Any]:
    return told(message.text, [(call["name"], call["args"]) for call in message.tool_calls], **more)


def play(way: str, name: str) -> dict[str, Any]:
    model = bound(way, name)
    asked: list[Any] = [HumanMessage(QUESTIONS[name])]
    try:
        if name.startswith("stream"):
            pieces, whole = 0, None
            for chunk in model.stream(asked):
                pieces += bool(chunk.text)
                whole = chunk if whole is None else whole + chunk
            return of(whole, pieces=pieces)
        message = model.invoke(asked)
    except Exception as error:  # noqa: BLE001 - each API raises its own SDK's
        return failed(error)
    if name == "loop":
        results = [
            ToolMessage(RUN[call["name"]](**call["args"]), tool_call_id=call["id"]) for call in message.tool_calls
        ]
        message = model.invoke([*asked, message, *results])
    return of(message, usage=bool(message.usage_metadata and message.usage_metadata["output_tokens"]))


if __name__ == "__main__":
    main({way: {name: (lambda way=way, name=name: play(way, name)) for name in QUESTIONS} for way in MODELS})
