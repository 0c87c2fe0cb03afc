"""pydantic-ai: an agent that runs the tools itself, over chat completions, responses and messages."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
from asking import KEY, MODEL, QUESTIONS, RUN, URL, failed, main, told
from pydantic_ai import Agent, ToolOutput
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

_openai = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=60)
_anthropic = anthropic.AsyncAnthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=60)
MODELS: dict[str, Any] = {
    "chat": OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=_openai)),
    "responses": OpenAIResponsesModel(MODEL, provider=OpenAIProvider(openai_client=_openai)),
    "messages": AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=_anthropic)),
}


def agent(way: str, name: str) -> Any:
    if name == "required":  # a typed answer is asked for as a call that must come
        return Agent(MODELS[way], output_type=ToolOutput(RUN["weather"], name="weather"))
    if name == "named":
        return Agent(MODELS[way], output_type=ToolOutput(RUN["clock"], name="clock"))
    tools = [] if name in ("plain", "stream", "error") else [RUN["weather"], RUN["clock"]]
    return Agent(MODELS[way], tools=tools)


def of(result: Any, output: str, **more: Any) -> dict[str, Any]:
    parts = [part for message in result.all_messages() if isinstance(message, ModelResponse) for part in message.parts]
    calls = [(part.tool_name, part.args_as_dict()) for part in parts if isinstance(part, ToolCallPart)]
    first = "".join(part.content for part in parts if isinstance(part, TextPart))
    return told(first, calls, output=output, **more)


async def play(way: str, name: str) -> dict[str, Any]:
    try:
        if name.startswith("stream"):
            pieces = 0
            async with agent(way, name).run_stream(QUESTIONS[name]) as result:
                async for _ in result.stream_text(delta=True, debounce_by=None):
                    pieces += 1
                return of(result, await result.get_output(), pieces=pieces)
        result = await agent(way, name).run(QUESTIONS[name])
    except Exception as error:  # noqa: BLE001 - told, and judged by who reads it
        return failed(error)
    return of(result, result.output)


if __name__ == "__main__":
    main({way: {name: (lambda way=way, name=name: play(way, name)) for name in QUESTIONS} for way in MODELS})
