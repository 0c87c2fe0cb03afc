"""The OpenAI Agents SDK, over responses and chat, whole and streamed."""

from __future__ import annotations

import openai
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from steps import KEY, TASK, URL, clock, main, weather

set_tracing_disabled(True)
KINDS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


async def play(model: str, way: str, *, stream: bool) -> str:
    client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY)
    agent = Agent(name="a", model=KINDS[way](model, client), tools=[function_tool(weather), function_tool(clock)])
    if not stream:
        return (await Runner.run(agent, TASK)).final_output
    result = Runner.run_streamed(agent, TASK)
    async for _ in result.stream_events():
        pass
    return result.final_output


if __name__ == "__main__":
    main({
        f"{way}{'-stream' if stream else ''}": lambda model, way=way, stream=stream: play(model, way, stream=stream)
        for way in KINDS for stream in (False, True)
    })  # fmt: skip
