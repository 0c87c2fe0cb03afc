"""instructor: a value of a type, by a call that is demanded (TOOLS), by several (PARALLEL), by a schema (JSON_SCHEMA)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import instructor
import openai
from asking import KEY, MODEL, QUESTIONS, URL, failed, main, told
from pydantic import BaseModel

_client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=60)


class weather(BaseModel):
    """The weather in a city."""

    city: str


class clock(BaseModel):
    """The time in a city."""

    city: str


class Person(BaseModel):
    name: str
    age: int


def asked(question: str) -> Any:
    return [{"role": "user", "content": question}]


def play(name: str) -> dict[str, Any]:
    tools = instructor.from_openai(_client, mode=instructor.Mode.TOOLS)
    common: dict[str, Any] = {"model": MODEL, "max_retries": 0}
    try:
        if name == "parallel":
            several = instructor.from_openai(_client, mode=instructor.Mode.PARALLEL_TOOLS)
            found = several.chat.completions.create(
                messages=asked(QUESTIONS[name]), response_model=Iterable[weather | clock], **common
            )
            return told("", [(type(one).__name__, one.model_dump()) for one in found])
        if name == "schema":
            held = instructor.from_openai(_client, mode=instructor.Mode.JSON_SCHEMA)
            one = held.chat.completions.create(messages=asked("Alice is 31. [person]"), response_model=Person, **common)
            return told("", [("Person", one.model_dump())])
        if name == "stream_call":
            *_, last = pieces = list(
                tools.chat.completions.create_partial(
                    messages=asked("What is the weather in Xiamen? [partial]"), response_model=weather, model=MODEL
                )
            )
            return told("", [("weather", last.model_dump())], pieces=len(pieces))
        kind = clock if name == "named" else weather
        value, raw = tools.chat.completions.create_with_completion(
            messages=asked(QUESTIONS[name]), response_model=kind, **common
        )
        return told(raw.choices[0].message.content, [(type(value).__name__, value.model_dump())])
    except Exception as error:  # noqa: BLE001 - told, and judged by who reads it
        return failed(error)


NAMES = ("call", "stream_call", "parallel", "text_call", "required", "named", "error", "schema")
"""Plain words and results are no part of what it does."""

if __name__ == "__main__":
    main({"chat": {name: (lambda name=name: play(name)) for name in NAMES}})
