"""AutoGen: an assistant that runs its tools, over chat and messages, whole and streamed."""

from __future__ import annotations

from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.anthropic import AnthropicChatCompletionClient
from autogen_ext.models.openai import OpenAIChatCompletionClient
from steps import KEY, TASK, URL, clock, main, weather

INFO: Any = {
    "vision": False, "function_calling": True, "json_output": True, "family": "unknown", "structured_output": False,
    "multiple_system_messages": True,
}  # fmt: skip


def agent(model: str, way: str, *, stream: bool) -> Any:
    made: Any = (
        OpenAIChatCompletionClient(model=model, base_url=f"{URL}/v1", api_key=KEY, model_info=INFO)
        if way == "chat"
        else AnthropicChatCompletionClient(model=model, base_url=URL, api_key=KEY, model_info=INFO)
    )
    return AssistantAgent(
        "assistant", made, tools=[weather, clock], max_tool_iterations=4, model_client_stream=stream
    )  # fmt: skip


async def play(model: str, way: str, *, stream: bool) -> str:
    last = None
    async for event in agent(model, way, stream=stream).run_stream(task=TASK):
        last = event
    return last.messages[-1].content


if __name__ == "__main__":
    main({
        "chat": lambda model: play(model, "chat", stream=False),
        "chat-stream": lambda model: play(model, "chat", stream=True),
        "messages": lambda model: play(model, "messages", stream=False),
        "messages-stream": lambda model: play(model, "messages", stream=True),
    })  # fmt: skip
