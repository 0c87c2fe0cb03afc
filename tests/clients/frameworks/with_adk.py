"""Google's ADK: an agent behind its LiteLLM model, over chat, whole and streamed."""

from __future__ import annotations

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from steps import KEY, TASK, URL, clock, main, weather


async def play(model: str, way: str, *, stream: bool) -> str:
    base = f"{URL}/v1" if way == "openai" else URL
    llm = LiteLlm(model=f"{way}/{model}", api_base=base, api_key=KEY)
    agent = Agent(name="helper", model=llm, instruction="Answer.", tools=[weather, clock])
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    asked = types.Content(role="user", parts=[types.Part(text=TASK)])
    config = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
    text = ""
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=asked, run_config=config):
        if event.is_final_response() and event.content:
            text = "".join(part.text or "" for part in event.content.parts)
    return text


if __name__ == "__main__":
    main({
        "chat": lambda model: play(model, "openai", stream=False),
        "chat-stream": lambda model: play(model, "openai", stream=True),
        "messages": lambda model: play(model, "anthropic", stream=False),
    })  # fmt: skip
