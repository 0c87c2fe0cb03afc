"""Recognizes models that always think, and whose prompt opens the thought: their replies begin inside it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from ...errors import TemplateError
from ..dialect import Dialect
from ..prompt.jinja import render_template
from ..prompt.thinking_switch import thinking_variables
from ..reading.lexicon import THINK, program
from .model_names import plain

SWITCH = re.compile(r"\bif\b").search
DAY = datetime(2000, 1, 1)
"""A date for templates that write one; its value does not matter."""


def with_thoughts(d: Dialect, template: str | None, name: str) -> Dialect:
    """The dialect with thinking `always`, if the template opens a thought in any case; without a template, if models
    of this plain name do. A preview may be of another kind: QwQ's has no thoughts."""
    if d.thinking is None or d.thinking.always or (not template and "preview" in name):
        return d
    always = _begins(template, d) if template else any(plain(part) in name for part in d.thinkers)
    return replace(d, thinking=replace(d.thinking, always=True)) if always else d


def first_closer(d: Dialect | None) -> str:
    """The closer of the thought that a reply begins with, if the model always thinks; "" for any other model."""
    thinking = d.thinking if d else None
    return thinking.close.strip() if thinking and thinking.always else ""


@lru_cache(64)
def _begins(template: str, d: Dialect) -> bool:
    if SWITCH(template.rpartition("add_generation_prompt")[2].partition("%}")[2]):
        return False  # the opener depends on a setting, so the model may also answer without thinking
    hi = [{"role": "user", "content": "Hi"}]
    try:
        prompts = [
            render_template(template, hi, None, variables=variables, now=DAY)
            for variables in ({}, thinking_variables(template, False))
        ]
    except TemplateError:
        return False
    return all(program(d, True).begins(prompt) == THINK for prompt in prompts)
