"""Semantic Kernel: a chat service that runs functions by itself, over chat, whole and streamed."""

from __future__ import annotations

from typing import Annotated, Any

import openai
from semantic_kernel import Kernel
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function
from steps import KEY, TASK, URL, clock, main, weather


class Plugin:
    @kernel_function(description="The weather in a city.")
    def weather(self, city: Annotated[str, "The city"]) -> str:
        return weather(city)

    @kernel_function(description="The time in a city.")
    def clock(self, city: Annotated[str, "The city"]) -> str:
        return clock(city)


async def play(model: str, *, stream: bool) -> str:
    client = openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY)
    service = OpenAIChatCompletion(ai_model_id=model, async_client=client)
    kernel = Kernel()
    kernel.add_plugin(Plugin(), plugin_name="tools")
    settings: Any = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
    history = ChatHistory()
    history.add_user_message(TASK.replace("[[", "[[tools-"))
    if not stream:
        return str(await service.get_chat_message_content(history, settings, kernel=kernel))
    pieces = [piece async for piece in service.get_streaming_chat_message_content(history, settings, kernel=kernel)]
    return "".join(str(piece) for piece in pieces if piece)


if __name__ == "__main__":
    main({"chat": lambda model: play(model, stream=False), "chat-stream": lambda model: play(model, stream=True)})
