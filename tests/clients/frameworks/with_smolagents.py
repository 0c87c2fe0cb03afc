"""smolagents: an agent of tool calls, over chat, whole and streamed."""

from __future__ import annotations

from smolagents import OpenAIModel, ToolCallingAgent, tool
from steps import KEY, TASK, URL, clock, main, weather

FINAL = " [[final_answer answer=canary-7f3a]]"
"""Its runs end by a call of its own."""


def play(model: str, *, stream: bool) -> str:
    made = OpenAIModel(model, api_base=f"{URL}/v1", api_key=KEY)
    agent = ToolCallingAgent([tool(weather), tool(clock)], made, stream_outputs=stream, max_steps=4, verbosity_level=0)
    return str(agent.run(TASK + FINAL))


if __name__ == "__main__":
    main({"chat": lambda model: play(model, stream=False), "chat-stream": lambda model: play(model, stream=True)})
