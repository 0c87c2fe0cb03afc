"""The log probabilities that a server sends: what the API has is read, and nothing beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from toolspeak.api import completions, openai_chat, openai_responses
from toolspeak.api.token_logprobs import LEAST, LONGEST_TOKEN, MOST_ALTERNATIVES, read_token_logprobs
from toolspeak.events import Logprobs

TOKEN = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"token": "b", "logprob": -1.5, "bytes": [98]}]}
WRONG: list[Any] = [None, True, "x", {}, [], [[]], {"x": [1]}, 10**400, float("nan"), "x" * 100_000, [[]] * 1000]


def test_what_the_api_has_is_read() -> None:
    assert read_token_logprobs([TOKEN, {"token": "c", "logprob": -1}]) == [
        TOKEN,
        {"token": "c", "logprob": -1, "top_logprobs": []},
    ]


def test_nothing_else_is_read() -> None:
    beside = {"id": 1, "y": [[]] * 1000, "bytes": None}
    assert read_token_logprobs([{**TOKEN, **beside, "top_logprobs": [{"token": "b", **beside}, 1, "x"]}]) == [
        {"token": "a", "logprob": -0.5, "bytes": None, "top_logprobs": [{"token": "b", "bytes": None}]}
    ]


@pytest.mark.parametrize("field", ["token", "logprob", "bytes", "top_logprobs"])
def test_no_wrong_value_is_read(field: str) -> None:
    for wrong in WRONG:
        for row in read_token_logprobs([{**TOKEN, field: wrong}]):
            assert len(json.dumps(row, allow_nan=False)) < 500
            assert isinstance(row["token"], str)
            assert isinstance(row.get("logprob", 0), float | int)
    for wrong in WRONG:
        assert read_token_logprobs(wrong) == []


def test_what_is_impossible_is_a_number_of_json() -> None:
    (row,) = read_token_logprobs([{**TOKEN, "logprob": float("-inf")}])
    assert row["logprob"] == LEAST


def test_a_token_has_a_size() -> None:
    many = [{"token": "b"}] * 10 * MOST_ALTERNATIVES
    (row,) = read_token_logprobs([{**TOKEN, "top_logprobs": many}, {"token": "x" * (LONGEST_TOKEN + 1)}])
    assert len(row["top_logprobs"]) == MOST_ALTERNATIVES
    assert read_token_logprobs([{**TOKEN, "bytes": [1] * (LONGEST_TOKEN + 1)}])[0]["bytes"] is None


def _chat(rows: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": "a"}, "logprobs": {"content": rows}}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def _completion(rows: Any) -> bytes:
    choice = {"index": 0, "text": "a", "logprobs": {"tokens": ["a"], "content": rows}}
    lists = {"tokens": [row.get("token") for row in rows], "token_logprobs": [row.get("logprob") for row in rows]}
    return b"data: " + json.dumps({"choices": [{**choice, "logprobs": lists}]}).encode() + b"\n\n"


def _response(rows: Any) -> bytes:
    event = {"type": "response.output_text.delta", "delta": "a", "item_id": "i", "output_index": 0, "logprobs": rows}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("api", "sent"), [(openai_chat, _chat), (completions, _completion), (openai_responses, _response)]
)
def test_every_api_reads_them_so(api: Any, sent: Callable[[Any], bytes]) -> None:
    wrong = [{**TOKEN, "y": [[]] * 100}, {"token": "x" * 100_000, "logprob": -1.0}, {"token": 1, "logprob": -1.0}]
    events = [event for event in api.ReplyReader().feed(sent(wrong)) if isinstance(event, Logprobs)]
    assert [[row["token"] for row in event.tokens] for event in events] == [["a"]]
    assert "y" not in events[0].tokens[0]
