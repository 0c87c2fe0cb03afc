"""What a server sends without end is bounded also where no event comes of it, and its odd values are read as none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import pytest

import endless
from toolspeak.api import anthropic, call_deltas, json_stream, openai_chat, openai_responses, sse_parser
from toolspeak.errors import ServerFailed
from toolspeak.events import Finished, TextDelta
from toolspeak.schema.nonblocking_json import VALUES
from toolspeak.wire.reading import reply_size_limits
from toolspeak.wire.reading.reply_size_limits import ReplyBounds

BOUND = 100_000
READERS: dict[str, Callable[[], Any]] = {
    "chat": openai_chat.ReplyReader,
    "messages": anthropic.ReplyReader,
    "responses": openai_responses.ReplyReader,
}


def _feed_all(reader: Any, pieces: Iterator[bytes], bound: int) -> bool:
    """Feeds pieces until the reader refuses one, or has taken `bound` bytes of them. Returns False when the limits of a reply
    end it."""
    bounds, taken = ReplyBounds(), 0
    while taken < bound:
        piece = next(pieces)
        taken += len(piece)
        if not all(bounds.takes(event) for event in reader.feed(piece)):
            return False
    return True


def _read_to_the_end(reader: Any, pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        reader.feed(piece)
    reader.close()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse_parser, "LONGEST", BOUND)
    monkeypatch.setattr(json_stream, "LONGEST", BOUND)
    monkeypatch.setattr(call_deltas, "LONGEST", 3 * BOUND)  # of which each call takes some
    monkeypatch.setattr(reply_size_limits, "CHARACTERS", BOUND)
    monkeypatch.setattr(reply_size_limits, "LIKELIHOODS", BOUND)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", endless.REFUSED)
def test_what_no_event_comes_of_is_bounded(kind: str) -> None:
    with pytest.raises(ServerFailed, match=r"did not end|without an end"):
        assert _feed_all(READERS[endless.REFUSED[kind][0]](), endless.pieces(kind), 10 * BOUND)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", endless.ENDED)
def test_what_comes_as_events_is_ended(kind: str) -> None:
    assert not _feed_all(READERS[endless.ENDED[kind][0]](), endless.pieces(kind), 50 * BOUND)


@pytest.mark.usefixtures("small")
def test_what_comes_between_the_parts_of_a_reply_is_no_end() -> None:
    """Keep-alives of a slow server may be many in all."""
    reader = openai_chat.ReplyReader()
    quiet = b": keep-alive\n\n" * (BOUND // 20)
    for _ in range(5):
        assert reader.feed(quiet) == []
        assert reader.feed(endless.sent({"choices": [{"index": 0, "delta": {"content": "a"}}]})) == [TextDelta("a")]


def test_lines_of_an_event_are_bounded_where_they_are_empty() -> None:
    with pytest.raises(ServerFailed, match="without an end"):
        _feed_all(openai_chat.ReplyReader(), repeat(b"data:\n" * 1_000), 32_000_000)


@pytest.mark.parametrize("whole", [True, False])
def test_a_part_of_a_reply_has_no_more_values_than_may_be_parsed(whole: bool) -> None:
    """A value takes far more memory than its text: a server could fill hundreds of megabytes with one part."""
    text = b'{"choices": [' + b"{}," * VALUES + b"{}]}"
    reader = openai_chat.ReplyReader()
    sent_pieces = iter((text,) if whole else (b"data: ", text, b"\n\n"))
    with pytest.raises(ServerFailed, match="more than 800,000 values"):
        _read_to_the_end(reader, sent_pieces)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("lines", [False, True])
def test_the_last_part_of_a_stream_is_not_parsed_with_too_many_values(lines: bool, cut: bool) -> None:
    """Whether it broke off was found by parsing it in one step: 8 million values stopped everything for 0.3 s."""
    payloads = json_stream.Payloads(lines=lines)
    begin = b"" if lines else b"data: "
    payloads.feed(begin + b'{"a": 1}\n\n' + begin + b'{"b": [' + b"1," * VALUES + (b"1" if cut else b"1]}"))
    with pytest.raises(ServerFailed, match="more than 800,000 values"):
        payloads.close()


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
    events = [event for payload in sent for event in reader.feed(endless.sent(payload))]
    assert events[-1] == Finished("tool_calls")


@pytest.mark.parametrize("count_", [10**400, 2**63, True, -1, 1.5, "7"])
def test_a_count_of_tokens_that_cannot_be_is_none(count_: Any) -> None:
    reader = openai_chat.ReplyReader()
    choice = {"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}
    reader.feed(endless.sent({"choices": [choice], "usage": {"prompt_tokens": count_, "completion_tokens": 2}}))
    finished = reader.feed(b"data: [DONE]\n\n")[-1]
    assert isinstance(finished, Finished)
    assert (finished.usage.prompt_tokens, finished.usage.completion_tokens) == (0, 2)
