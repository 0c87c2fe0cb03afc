"""Measures the likelihood of a text after a prompt, on servers that continue prompts: writes the requests, and reads
the log probabilities from their responses.

There are two ways. llama.cpp reports nothing about the prompt, but it reports for each generated token how likely it
was before any constraint; so it is made to generate exactly the tokens of the text (`weigh`). Other servers echo the
prompt with the log probability of each of its tokens (`write_echo`, `read_echo`).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import Any, Literal, cast

from ...errors import ServerFailed
from ..json_stream import Payload, record, records

Kind = Literal["whole", "head", "tail"]
Token = tuple[int, Kind]
"""A token's id, and whether its text is whole characters, the head or the rest of one: a Chinese character may take
three tokens."""
LIKELIEST = 200
"""The most alternatives to a substitute token that are requested. The meant token is usually among them."""
FORCE = 1e6
"""The logit bias that rules out all other tokens."""
SURE = 20.0
"""Nats by which the substitute token is made more likely than the meant one."""


def write_tokens(text: str) -> Payload:
    """Return the body for llama.cpp's `/tokenize`."""
    return {"content": text, "add_special": True, "with_pieces": True}


def read_tokens(answer: Payload) -> tuple[Token, ...]:
    """Return the tokens in the response of `/tokenize`. Raises ServerFailed if it has none."""
    rows = records(answer.get("tokens"))
    if not all(isinstance(row.get("id"), int) for row in rows):
        raise ServerFailed("the server does not return the tokens of a text")
    return tuple((row["id"], _kind(row.get("piece"))) for row in rows)


def _kind(piece: object) -> Kind:
    """Return the kind of a token by its text, which is sent as bytes if it is not whole characters."""
    if not isinstance(piece, list):
        return "whole"
    return "tail" if all(0x80 <= byte < 0xC0 for byte in cast("list[int]", piece)) else "head"


def beginning(before: Sequence[object], whole: Sequence[object]) -> int:
    """Return how many tokens a prompt shares with the prompt and a text: the last ones may merge with the text."""
    pairs = enumerate(zip(before, whole, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(before), len(whole)))


def weigh(before: Sequence[Token], whole: Sequence[Token], spare: int) -> Generator[Payload, Payload, float]:
    """Return log P(text | prompt), from the tokens of the prompt and of prompt and text together. A generator: it
    yields bodies for llama.cpp's `/v1/completions` and is sent the responses.

    A grammar can force tokens by id, but only those of whole characters; others are forced one by one with a logit
    bias. `spare` is the id of any token of whole characters. Raises ServerFailed if a response reports other tokens.
    """
    ids = [number for number, _ in whole]
    start = beginning(before, whole)
    total = 0.0
    ends = [i for i, (a, b) in enumerate(pairwise(whole[start:]), start + 1) if a[1] != "whole" or b[1] != "whole"]
    for first, last in pairwise([start, *ends, len(ids)]):
        if first == last:
            continue
        kind, text = whole[first][1], ids[first:last]
        if kind == "head":
            total += yield from _as_alternative(ids[:first], ids[first], spare)
        else:
            total += _summed(_rows((yield (_forced if kind == "whole" else _biased)(ids[:first], text))), text)
    return total


def _body(prompt: list[int], count: int) -> Payload:
    return {"prompt": prompt, "max_tokens": count, "temperature": 0, "n_probs": 1, "cache_prompt": True}


def _forced(prompt: list[int], ids: list[int]) -> Payload:
    return _body(prompt, len(ids)) | {"grammar": "root ::= " + " ".join(f"<[{number}]>" for number in ids)}


def _biased(prompt: list[int], ids: list[int]) -> Payload:
    return _body(prompt, 1) | {"logit_bias": [[ids[0], FORCE]]}


def _as_alternative(prompt: list[int], number: int, spare: int) -> Generator[Payload, Payload, float]:
    """Return log P of a token that begins a multi-byte character.

    Its text is incomplete, so the server reports nothing about it if it is generated. The function forces the token
    `spare` in its place, and reads the likelihood of `number` in the list of likely alternatives.
    """
    rows = _rows((yield _biased(prompt, [spare]) | {"n_probs": LIKELIEST}))
    standing = _summed(rows, [spare])
    for row in records(rows[0].get("top_logprobs")):
        if row.get("id") == number:
            return float(row["logprob"])
    # It is not listed: a bias leaves only these two tokens, and the server reports how they share the probability.
    ahead = SURE - standing
    bias = [[spare, FORCE / 1000 + ahead], [number, FORCE / 1000]]
    shared = {"temperature": 1, "n_probs": 2, "post_sampling_probs": True, "samplers": ["temperature"]}
    rows = _rows((yield _body(prompt, 1) | shared | {"logit_bias": bias, "seed": 0}))
    shares: dict[int, Any] = {row["id"]: row.get("prob") for row in records(record(rows[0]).get("top_probs"))}
    share = shares.get(number)
    if not isinstance(share, float) or share <= 0:  # too small for a float
        return standing - ahead - 4 * SURE
    return standing + ahead + math.log(share / float(shares.get(spare) or 1))


def _summed(rows: list[Payload], ids: list[int]) -> float:
    """Return the sum of the log probabilities of these tokens."""
    generated = [row for row in rows if row.get("token") or row.get("id") in ids][: len(ids)]
    if [row.get("id") for row in generated] != ids:
        raise ServerFailed("the server reports the likelihoods of other tokens than those requested")
    return float(sum(row["logprob"] for row in generated))


def _rows(answer: Payload) -> list[Payload]:
    """Return the row of each token in a response."""
    choices = records(answer.get("choices"))
    rows = records(record(choices[0].get("logprobs")).get("content")) if choices else []
    if not rows or not all(isinstance(row.get("logprob"), float | int) for row in rows if "logprob" in row):
        raise ServerFailed("the server does not report likelihoods")
    return rows


# ------------------------------------------------------------------ servers that echo the prompt


def write_echo(prompt: str, texts: Sequence[str], model: str) -> Payload:
    """Return the body for a `/v1/completions` that echoes prompts: the prompt alone, and with each of the texts."""
    prompts = [prompt, *(prompt + text for text in texts)]
    return {"model": model, "prompt": prompts, "max_tokens": 0, "echo": True, "logprobs": 1, "temperature": 0}


def read_echo(answer: Payload, count: int) -> list[float]:
    """Return log P(text | prompt) for each of `count` texts. Raises ServerFailed if the response lacks them."""
    choices = sorted(records(answer.get("choices")), key=lambda row: int(row.get("index") or 0))
    if len(choices) != count + 1:
        raise ServerFailed(f"expected {count + 1} prompts to be repeated, got {len(choices)}")
    echoed = [_echoed(choice) for choice in choices]
    before, _ = echoed[0]
    scores: list[float] = []
    for tokens, logprobs in echoed[1:]:
        start = beginning(before, tokens)
        scores.append(math.fsum(value for value in logprobs[start:] if value is not None))
    return scores


def _echoed(choice: Payload) -> tuple[list[str], list[float | None]]:
    """Return the tokens of an echoed prompt with their log probabilities; the first token has none."""
    logprobs = record(choice.get("logprobs"))
    tokens = cast("list[str]", logprobs.get("tokens") or [])
    values = cast("list[float | None]", logprobs.get("token_logprobs") or [])
    if not tokens or len(tokens) != len(values) or any(value is None for value in values[1:]):
        raise ServerFailed("the server repeats a prompt without its likelihoods")
    return tokens, values
