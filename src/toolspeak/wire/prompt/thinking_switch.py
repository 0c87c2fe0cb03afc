"""Finds the variable of a chat template that switches the model's thinking: its name and values differ by template.

Two short conversations are rendered with each name that the template has, one with thinking and one without. The first
name whose prompts differ is the switch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from ...errors import TemplateError
from .jinja import render_template

SWITCHES: tuple[tuple[str, Any, Any], ...] = (
    ("enable_thinking", True, False),
    ("thinking", True, False),
    ("reasoning", True, False),
    ("enable_reasoning", True, False),
    ("thinking_mode", "enabled", "disabled"),
    ("thinking_option", "on", "off"),
    ("reasoning_effort", "high", "none"),
    ("reasoning_effort", "high", "no_think"),
    ("reasoning_effort", "high", "minimal"),
    ("thinking_budget", -1, 0),
)
"""Each switch: its name, and its values with and without thinking. A word counts only if the template has it."""
CONVERSATION = [{"role": "user", "content": "Hi"}]
DAY = datetime(2000, 1, 1)
"""A date for templates that write one; its value does not matter."""


def thinking_variables(template: str, thinking: bool | None) -> dict[str, Any]:
    """The variables that switch thinking on or off in this template: `enable_thinking`, and its own if it has
    another; none for the template's default."""
    if thinking is None:
        return {}
    switch = _switch(template)
    return {"enable_thinking": thinking} | ({switch[0]: switch[1 if thinking else 2]} if switch else {})


@lru_cache(64)
def _switch(template: str) -> tuple[str, Any, Any] | None:
    for switch in SWITCHES:
        name, on, off = switch
        words = (name, *filter(lambda value: isinstance(value, str), (on, off)))
        if not all(re.search(rf"\b{word}\b", template) for word in words):
            continue
        prompts = {_prompt(template, {name: value}) for value in (on, off)}
        if len(prompts - {""}) == 2:
            return switch
    return None


def _prompt(template: str, variables: Mapping[str, Any]) -> str:
    try:
        return render_template(template, CONVERSATION, None, variables=variables, now=DAY)
    except TemplateError:
        return ""
