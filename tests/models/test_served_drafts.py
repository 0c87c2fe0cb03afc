"""Calls that a server read in a thought which it left in the text: drafts, so the model is asked again."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

import toolspeak as ts
from listening import listening
from replies import frames
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta, ThoughtDelta
from toolspeak.models.drafted_calls import DraftedCalls
from toolspeak.wire.reading.collect import collect

CALL = (CallStart("delete", "c1"), ArgumentsDelta("{}"), CallEnd())
Parts = tuple[str | None, ...]
"""The texts of a reply; None is a call."""
DRAFTS: dict[str, Parts] = {
    "in words": ("I could: ", None, "\nHmm, no.\n</think>\n\nShall I?"),
    "an opener": ("<think>\nI could: ", None, "\nHmm, no.\n</think>\n\nShall I?"),
    "no words before it": (None, "Hmm, no.</think>Shall I?"),
    "right before the closer": ("I could: ", None, "</think>\n\nShall I?"),
    "nothing after the thought": ("I could: ", None, "\nHmm, no </thinking>"),
    "a long thought": ("I could: ", None, "Hm.\n" * 999 + "</reasoning>\nShall I?"),
    "two drafts": ("I could: ", None, "or ", None, "Hmm, no.\n</think>\n\nShall I?"),
}
CALLS: dict[str, Parts] = {
    "behind the thought": ("Hm.\n</think>\n\n", None),
    "behind the thought, and a closer too many": ("Hm.</think>\n\n", None, "I wait.\n</think>\nFor it."),
    "at the end of the thought": ("I call it: ", None, "\n</think>\n"),
    "before a sentence": (None, "The mark </think> ends a thought, and so does `</think>`."),
    "before a sentence and more": (None, "The mark </think> ends a thought, " + "and so on, " * 99),
    "before a pair in a line": (None, "The marks are <think>Hm.</think>\nThat is all."),
}


def read(parts: Parts, size: int) -> ts.Reply:
    """The reply, whose texts come in pieces of this size."""
    drafts, out = DraftedCalls(), list[Event]()
    for part in parts:
        text = part or ""
        events = [TextDelta(text[i : i + size]) for i in range(0, len(text), size)] if part else CALL
        out += [one for event in events for one in (*drafts.feed(event), event)]
    return collect([*out, *drafts.feed(Finished("stop")), Finished("stop")])


@pytest.mark.parametrize("size", [1, 3, 5000])
def test_drafts_and_calls(size: int) -> None:
    for what, parts in DRAFTS.items():
        reply = read(parts, size)
        assert not any(call.whole for call in reply.calls), what
        assert [note.rule for note in reply.notes] == ["drafted-call"], what
    for what, parts in CALLS.items():
        reply = read(parts, size)
        assert [call.whole for call in reply.calls] == [True], what
        assert reply.notes == (), what
    behind = read(("I could: ", None, "\nYes.\n</think>\n\n", None), size)
    assert [call.whole for call in behind.calls] == [False, True]


def test_a_server_that_separates_thoughts_leaves_none() -> None:
    drafts = DraftedCalls()
    events = (ThoughtDelta("Hm."), *CALL, TextDelta("So.\n</think>\nThat is all."), Finished("stop"))
    assert [note for event in events for note in drafts.feed(event)] == []


def delete() -> str:
    """Delete all."""
    raise AssertionError


@pytest.mark.parametrize("name", ["qwen3-8b", "qwen3-4b-thinking-2507", "mine"])
def test_the_model_is_asked_again(name: str) -> None:
    async def chat(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/chat/completions"):
            return web.json_response({"error": "no such page"}, status=404)
        again = "so it was a draft" in json.dumps((await request.json())["messages"])
        call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "delete", "arguments": "{}"}}
        draft = (
            {"content": "I could: "},
            {"tool_calls": [call]},
            {"content": "Hmm, no.\n</think>\n\n"},
            {"content": "?"},
        )
        deltas = ({"content": "Shall I?"},) if again else draft
        rows = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop" if again else "tool_calls"}]}
        return web.Response(body=frames(*rows, end, "[DONE]"), content_type="text/event-stream")

    async def main() -> None:
        async with listening(chat) as url:
            reply = await ts.arun("Go", tools=[delete], model=f"{url}/v1#{name}")
            assert "Shall I?" in (reply.text, reply.thought)
            assert "drafted-call" in [note.rule for step in reply.steps for note in step.reply.notes]

    asyncio.run(main())
