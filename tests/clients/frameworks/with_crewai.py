"""CrewAI: an agent with its native calls, over chat, whole and streamed."""

from __future__ import annotations

import os

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from steps import KEY, TASK, URL, clock, main, weather


def play(model: str, *, stream: bool) -> str:
    llm = LLM(model=f"openai/{model}", base_url=f"{URL}/v1", api_key=KEY, stream=stream)
    tools = [tool("weather")(weather), tool("clock")(clock)]
    agent = Agent(role="helper", goal="answer", backstory="You answer.", tools=tools, llm=llm, max_iter=5)
    task = Task(description=TASK, expected_output="an answer", agent=agent)
    return str(Crew(agents=[agent], tasks=[task]).kickoff())


if __name__ == "__main__":
    main({"chat": lambda model: play(model, stream=False), "chat-stream": lambda model: play(model, stream=True)})
