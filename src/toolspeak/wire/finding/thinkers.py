"""Models that always think, and whose template begins the thought in the prompt: their replies begin inside it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from ...errors import TemplateError
from ..dialect import Dialect
from ..prompt.jinja import render_template
from ..reading.lexicon import THINK, program

SWITCH = re.compile(r"\bif\b").search
DAY = datetime(2000, 1, 1)
"""For templates that write a date into the prompt: which it is does not matter here."""


def with_thoughts(d: Dialect, template: str | None, name: str) -> Dialect:
    """The dialect, its thinking marked as `always` where the template begins a thought whatever is asked for, or,
    without a template, where a model so named (in small letters, with hyphens) is known for it."""
    if d.thinking is None or d.thinking.always:
        return d
    always = _begins(template, d) if template else any(part in name for part in d.thinkers)
    return replace(d, thinking=replace(d.thinking, always=True)) if always else d


@lru_cache(64)
def _begins(template: str, d: Dialect) -> bool:
    if SWITCH(template.rpartition("add_generation_prompt")[2].partition("%}")[2]):
        return False  # what it adds depends on something: the model may answer without thinking
    hi = [{"role": "user", "content": "Hi"}]
    try:
        prompts = [
            render_template(template, hi, None, variables=variables, now=DAY)
            for variables in ({}, {"enable_thinking": False})
        ]
    except TemplateError:
        return False
    return all(program(d, True).begins(prompt) == THINK for prompt in prompts)
