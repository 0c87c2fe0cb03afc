"""The OpenAI Agents SDK: a run that calls the tools itself, over responses (its own choice) and chat completions."""

from __future__ import annotations

from typing import Any

import openai
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from asking import KEY, MODEL, QUESTIONS, URL, clock, failed, main, told, weather

set_tracing_disabled(True)
_client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=60)
MODELS: dict[str, Any] = {
    "chat": OpenAIChatCompletionsModel(MODEL, _client),
    "responses": OpenAIResponsesModel(MODEL, _client),
}
TOOLS = [function_tool(weather), function_tool(clock)]


def agent(way: str, name: str) -> Any:
    choice = {"required": "required", "named": "clock"}.get(name)
    tools = [] if name in ("plain", "stream", "error") else TOOLS
    return Agent(name="a", model=MODELS[way], tools=tools, model_settings=ModelSettings(tool_choice=choice))


def of(result: Any, **more: Any) -> dict[str, Any]:
    calls = [
        (item.raw_item.name, item.raw_item.arguments) for item in result.new_items if item.type == "tool_call_item"
    ]
    texts = [
        part.text for item in result.new_items if item.type == "message_output_item" for part in item.raw_item.content
    ]
    return told("".join(texts), calls, output=result.final_output, **more)


async def play(way: str, name: str) -> dict[str, Any]:
    try:
        if name.startswith("stream"):
            pieces = 0
            result = Runner.run_streamed(agent(way, name), QUESTIONS[name])
            async for event in result.stream_events():
                pieces += event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
            return of(result, pieces=pieces)
        result = await Runner.run(agent(way, name), QUESTIONS[name])
    except openai.APIError as error:
        return failed(error)
    return of(result)


if __name__ == "__main__":
    main({way: {name: (lambda way=way, name=name: play(way, name)) for name in QUESTIONS} for way in MODELS})
