"""magentic: a prompt chain, over chat."""

from typing import Any

from magentic import OpenaiChatModel, StreamedStr, prompt_chain
from steps import KEY, TASK, URL, clock, main, weather


def made(model: str) -> Any:
    return OpenaiChatModel(model, api_key=KEY, base_url=f"{URL}/v1")


def whole(model: str) -> str:
    @prompt_chain(TASK, functions=[weather, clock], model=made(model))
    def ask() -> str: ...

    return ask()


def streamed(model: str) -> str:
    @prompt_chain(TASK, functions=[weather, clock], model=made(model))
    def ask() -> StreamedStr: ...

    return "".join(ask())


if __name__ == "__main__":
    main({"chat": whole, "chat-stream": streamed})
