"""Haystack: an agent over chat, whole and streamed."""

from __future__ import annotations

from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret
from steps import KEY, TASK, URL, clock, main, weather


def play(model: str, *, stream: bool) -> str:
    made: Any = OpenAIChatGenerator(
        api_key=Secret.from_token(KEY), model=model, api_base_url=f"{URL}/v1",
        streaming_callback=(lambda _: None) if stream else None,
    )  # fmt: skip
    agent = Agent(chat_generator=made, tools=[create_tool_from_function(one) for one in (weather, clock)])
    return agent.run(messages=[ChatMessage.from_user(TASK)])["last_message"].text


if __name__ == "__main__":
    main({"chat": lambda model: play(model, stream=False), "chat-stream": lambda model: play(model, stream=True)})
