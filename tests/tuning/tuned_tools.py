"""The tools that models are tuned to."""

from __future__ import annotations

from typing import Literal

import toolspeak as ts

FILE = '''
from typing import Literal


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Get the current weather in a city."""
    raise RuntimeError("no tool is run")


def add(a: float, b: float) -> float:
    """Add two numbers."""
    raise RuntimeError("no tool is run")
'''


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Get the current weather in a city."""
    raise RuntimeError("no tool is run")


def add(a: float, b: float) -> float:
    """Add two numbers."""
    raise RuntimeError("no tool is run")


TOOLS = tuple(ts.Toolbox(weather, add))
