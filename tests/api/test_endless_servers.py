"""What a server sends without end is bounded also where no event comes of it, and its odd values are read as none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain, count, repeat
from typing import Any

import pytest

from toolspeak.api import anthropic, call_deltas, openai_chat, openai_responses, sse
from toolspeak.errors import ServerFailed
from toolspeak.events import Finished
from toolspeak.wire.reading.reply_bounds import ReplyBounds

BOUND = 100_000
BIG = "x" * 1_000
READERS: dict[str, Callable[[], Any]] = {
    "chat": openai_chat.ReplyReader,
    "messages": anthropic.ReplyReader,
    "responses": openai_responses.ReplyReader,
}


def _sent(payload: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def _call(index: int, name: str | None = None, arguments: str = "", **more: Any) -> dict[str, Any]:
    call = {"index": index, "function": {"name": name, "arguments": arguments}, **more}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def _noted(detail: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "toolspeak": {"notes": [{"rule": "r", "detail": detail}]}}]}


def _block(index: int) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"t{index}", "name": "f", "input": {}}
    return {"type": "content_block_start", "index": index, "content_block": block}


def _item(index: int) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"i{index}", "call_id": f"c{index}", "name": "f"}
    return {"type": "response.output_item.added", "output_index": index, "item": item}


OPEN = (_call(0, "f", '{"a": "'), _call(1, "f", '{"a": "'))
ENDLESS: dict[str, tuple[str, tuple[dict[str, Any], ...], Callable[[int], dict[str, Any]]]] = {
    "arguments of a call that waits for another": ("chat", OPEN, lambda i: _call(1, arguments=BIG)),
    "arguments of a call without a name": ("chat", (), lambda i: _call(0, arguments='{"a": "' + BIG)),
    "a name": ("chat", (), lambda i: _call(0, f"{i}")),
    "calls that do not begin": ("chat", (), lambda i: _call(i, "f")),
    "arguments behind the end": (
        "chat",
        (_call(0, "f", '{"a": 1}'), OPEN[1]),
        lambda i: _call(0, arguments=BIG),
    ),
    "notes": ("chat", (), lambda i: _noted(BIG)),
    "blocks that do not begin": ("messages", (), _block),
    "items that do not begin": ("responses", (), _item),
    "arguments without their item": (
        "responses",
        (),
        lambda i: {"type": "response.function_call_arguments.delta", "item_id": "i", "delta": '{"a": "' + BIG},
    ),
    "ids of items": ("responses", (), lambda i: {"type": "response.x.added", "item_id": f"{i}", "output_index": i}),
}


def _feed_all(reader: Any, pieces: Iterator[bytes], bound: int) -> None:
    """Feeds pieces until the reader refuses one, or has taken `bound` bytes of them."""
    bounds, sent = ReplyBounds(), 0
    while sent < bound:
        piece = next(pieces)
        sent += len(piece)
        assert all(bounds.takes(event) for event in reader.feed(piece))


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_no_event_comes_of_is_bounded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    api, first, forever = ENDLESS[kind]
    monkeypatch.setattr(call_deltas, "LONGEST", BOUND)
    with pytest.raises(ServerFailed, match="did not end"):
        _feed_all(READERS[api](), map(_sent, chain(first, map(forever, count()))), 5 * BOUND)


def test_lines_of_an_event_are_bounded_where_they_are_empty() -> None:
    with pytest.raises(ServerFailed, match="without an end"):
        _feed_all(openai_chat.ReplyReader(), repeat(b"data:\n" * 1_000), 2 * sse.LONGEST)


@pytest.mark.parametrize("index", [[1], {}, "0", None, 1.5])
def test_a_block_whose_place_is_none_is_read(index: Any) -> None:
    reader = anthropic.ReplyReader()
    block = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    sent = (
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": index},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )
    events = [event for payload in sent for event in reader.feed(_sent(payload))]
    assert events[-1] == Finished("tool_calls")


@pytest.mark.parametrize("count_", [10**400, 2**63, True, -1, 1.5, "7"])
def test_a_count_of_tokens_that_cannot_be_is_none(count_: Any) -> None:
    reader = openai_chat.ReplyReader()
    choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
    reader.feed(_sent({"choices": [choice], "usage": {"prompt_tokens": count_, "completion_tokens": 2}}))
    finished = reader.feed(b"data: [DONE]\n\n")[-1]
    assert isinstance(finished, Finished)
    assert (finished.usage.prompt_tokens, finished.usage.completion_tokens) == (0, 2)
