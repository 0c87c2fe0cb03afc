"""Writes the events that close a message or a thought: first those of its only part, then that of the item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..json_stream import Payload


def message_done(value: Payload, at: Payload, logprobs: Sequence[Payload]) -> Iterator[tuple[str, Payload]]:
    """Yield the types and fields of the events. `value` is the whole item, `at` its id and index."""
    part, place = value["content"][0], {**at, "content_index": 0}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": logprobs}
    yield "response.content_part.done", {**place, "part": part}


def thought_done(value: Payload, at: Payload) -> Iterator[tuple[str, Payload]]:
    """Yield the types and fields of the events, of the summary if the item has one."""
    if value["summary"]:
        part, place = value["summary"][0], {**at, "summary_index": 0}
        yield "response.reasoning_summary_text.done", {**place, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**place, "part": part}
    else:
        part, place = value["content"][0], {**at, "content_index": 0}
        yield "response.reasoning_text.done", {**place, "text": part["text"]}
        yield "response.content_part.done", {**place, "part": part}
