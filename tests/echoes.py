"""A server that repeats prompts with the likelihood of each token, of a language of its own."""

import re
from itertools import pairwise
from typing import Any


def tokens(text: str) -> list[str]:
    return re.findall(r" ?\w+|.", text, re.DOTALL)


def likelihood(before: str, token: str) -> float:
    return -0.3 if (before, token) == (" is", " Paris") else -1.0 - 0.1 * len(before) - 0.7 * len(token)


def echoed(body: dict[str, Any], how: str = "right") -> dict[str, Any]:
    """The answer to a body that asks for prompts to be repeated; `how` says what is wrong with it."""
    wanted = {"echo": True, "logprobs": 1, "max_tokens": 0, "temperature": 0}
    assert {name: body.get(name) for name in wanted} == wanted
    assert body["model"]
    rows = [_row(i, prompt, how) for i, prompt in enumerate(body["prompt"])]
    return {"object": "text_completion", "choices": rows[::-1]}  # the order is not promised


def _row(index: int, prompt: str, how: str) -> dict[str, Any]:
    if how == "deaf":
        return {"index": index, "text": "", "logprobs": None, "finish_reason": "length"}
    parts = tokens(prompt)
    told: list[float | None] = [None, *(likelihood(a, b) for a, b in pairwise(parts))]
    if how == "blank":
        told = [None] * len(told)
    elif how == "held":
        told = [None, *(0.0 for _ in told[1:])]
    elif how == "scaled":  # by the length: the parts do not make the whole
        told = [None, *(value and value * len(told) for value in told[1:])]
    # SGLang tells no offsets
    logprobs = {"tokens": parts, "token_logprobs": told, "top_logprobs": None, "text_offset": [-1] * len(parts)}
    return {"index": index, "text": prompt, "logprobs": logprobs, "finish_reason": "length"}
