"""What every framework is made to do by its own means: a task of two steps, by two tools that it runs itself.

The scripts beside this file run in environments of their own and import nothing else of this project. A script is given the
gateway's address and the names of models, and prints one JSON object: for each "<way>.<model>" the last text, and the calls
that were run.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

URL, MODELS = sys.argv[1], sys.argv[2].split(",")
KEY = "sk-client-canary"
TASK = "What is the weather in Xiamen, and then what time is it there? [[weather city=Xiamen]] [[clock city=Xiamen]]"
os.environ |= {
    "OPENAI_API_KEY": KEY,
    "OPENAI_BASE_URL": f"{URL}/v1",
    "ANTHROPIC_API_KEY": KEY,
    "ANTHROPIC_BASE_URL": URL,
}

ran: list[str] = []


def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: The city
    """
    ran.append(f"weather {city}")
    return f"sunny in {city}"


def clock(city: str) -> str:
    """The time in a city.

    Args:
        city: The city
    """
    ran.append(f"clock {city}")
    return f"noon in {city}: canary-7f3a"


def main(ways: dict[str, Callable[[str], Any]]) -> None:
    """Plays every way with every model, and prints what came of it. A way is given the model's name and gives the text."""
    came: dict[str, Any] = {}
    with asyncio.Runner() as runner:
        for model in MODELS:
            for way, play in ways.items():
                ran.clear()
                try:
                    text = play(model)
                    text = runner.run(text) if inspect.iscoroutine(text) else text
                    came[f"{way}.{model}"] = {"text": str(text), "ran": list(ran)}
                except Exception:  # noqa: BLE001 - told, and judged by who reads it
                    came[f"{way}.{model}"] = {"failed": traceback.format_exc()[-3000:], "ran": list(ran)}
    print("\n" + json.dumps(came), flush=True)
    os._exit(0)  # some leave threads behind
