"""What every client is made to do, by its own means: the tools, the questions, and how it tells what came.

The scripts beside this file run in environments of their own and import nothing else of this project. A script is given
the gateway's address and the model's name, and prints one JSON object: what came of each "<way>.<scenario>".
The word in brackets tells the scripted model what to play; any other is asked without it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

URL = sys.argv[1] if len(sys.argv) > 1 else ""
MODEL = sys.argv[2] if len(sys.argv) > 2 else ""
KEY = "sk-client-canary"

SCRIPT = {
    "plain": "Say hello. [plain]",
    "stream": "Say hello. [plain]",
    "call": "What is the weather in Xiamen? [call]",
    "stream_call": "What is the weather in Xiamen? [call]",
    "parallel": "What is the weather in Xiamen and in Paris? [parallel]",
    "text_call": "What is the weather in Xiamen? [text_call]",
    "loop": "What is the weather in Xiamen? [call]",
    "required": "What is the weather in Xiamen? [required]",
    "named": "What time is it in Xiamen? [named]",
    "error": "Say hello. [error]",
}

QUESTIONS = {name: asked if MODEL == "scripted" else asked.partition(" [")[0] for name, asked in SCRIPT.items()}
"""A real model is not to wonder what the brackets mean."""

WEATHER = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The city"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
CLOCK = {
    "name": "clock",
    "description": "The time in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The city"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
FUNCTIONS = [WEATHER, CLOCK]


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def clock(city: str) -> str:
    """The time in a city."""
    return f"noon in {city}"


RUN: dict[str, Callable[[str], str]] = {"weather": weather, "clock": clock}


def told(text: str | None = "", calls: Any = (), **more: Any) -> dict[str, Any]:
    """What came of a scenario: the text, and (name, arguments as a dict or its JSON) of each call."""
    rows = [[name, json.loads(given) if isinstance(given, str) else dict(given)] for name, given in calls]
    return {"text": text or "", "calls": rows, **more}


def failed(error: Exception) -> dict[str, Any]:
    """What a client says of an error that it met."""
    status = getattr(error, "status_code", None)
    return {"error": type(error).__name__, "status": status, "said": str(error)[:1000]}


def main(ways: dict[str, dict[str, Callable[[], Any]]]) -> None:
    """Plays every scenario of every way, or those that are named, and prints what came of them."""
    only = sys.argv[3].split(",") if len(sys.argv) > 3 else None
    came: dict[str, Any] = {}
    with asyncio.Runner() as runner:
        for way, scenarios in ways.items():
            for name, play in scenarios.items():
                if only and name not in only:
                    continue
                try:
                    made = play()
                    came[f"{way}.{name}"] = runner.run(made) if inspect.iscoroutine(made) else made
                except Exception as error:  # noqa: BLE001 - told, and judged by who reads it
                    came[f"{way}.{name}"] = {"failed": traceback.format_exc()[-3000:], **failed(error)}
    print(json.dumps(came))
