"""Compaction in the Responses API: a summary by the model, in an item that replaces the conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from test_responses import CALL, WEATHER, hermes, sdk

from toolspeak.api.base64_text import seal
from toolspeak.api.openai_responses.compaction_item import SUMMARIZE, SUMMARIZED
from toolspeak.events import Finished, TextDelta, ThoughtDelta
from toolspeak.gateway.config.settings import StoreSettings
from toolspeak.models.scripted import Scripted

SUMMARY = "It is sunny in Xiamen. Paris is next."
TRIGGER = {"type": "compaction_trigger"}
HISTORY: list[Any] = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": "The weather in Xiamen and Paris?"},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Xiamen"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
]


def served(
    serve_models: Callable[..., Any], model: Any, work: Callable[[openai.AsyncOpenAI], Any], **settings: Any
) -> Any:
    async def go() -> Any:
        async with serve_models(m=model, settings=settings) as running, sdk(running.url) as client:
            try:
                return await work(client)
            finally:
                if running.gateway.store:
                    running.gateway.store.close()

    return asyncio.run(go())


def texts(model: Any, at: int) -> list[str]:
    return [str(message["content"]) for message in model.model.requests[at].messages]


def test_a_conversation_goes_on_from_its_compaction(serve_models: Callable[..., Any]) -> None:
    model = hermes(f"<think>short</think>{SUMMARY}", CALL.replace("Xiamen", "Paris"))

    async def work(client: openai.AsyncOpenAI) -> Any:
        body: dict[str, Any] = {"model": "m", "tools": [WEATHER], "tool_choice": "required", "store": False}
        stream = await client.responses.create(**body, input=[*HISTORY, TRIGGER], stream=True)
        events = [event async for event in stream]
        [item] = events[-1].response.output
        kept = [HISTORY[0], HISTORY[1], item.to_dict()]
        return events, item, await client.responses.create(**body, input=kept)

    events, item, reply = served(serve_models, model, work)
    kinds = [event.type for event in events]
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-2:] == ["response.output_item.done", "response.completed"]
    assert set(kinds[3:-2]) == {"response.compaction.compacting"}
    assert SUMMARY not in "".join(event.to_json() for event in events)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert item.type == "compaction"
    assert texts(model, 0)[-1].endswith(SUMMARIZE)
    assert any(SUMMARIZED + SUMMARY in text for text in texts(model, 1))
    assert "sunny\n" not in json.dumps(texts(model, 1))
    assert [call.arguments for call in reply.output if call.type == "function_call"] == ['{"city": "Paris"}']


def test_the_endpoint_for_it_gives_the_input_of_the_next_request(serve_models: Callable[..., Any]) -> None:
    model = hermes(SUMMARY, "Paris, then.")

    async def work(client: openai.AsyncOpenAI) -> Any:
        made = await client.responses.compact(model="m", input=HISTORY, instructions="You are a forecaster.")
        items = [item.to_dict(warnings=False) for item in made.output]
        return (
            made,
            items,
            await client.responses.create(model="m", input=[*items, {"role": "user", "content": "Go on."}]),
        )

    made, items, reply = served(serve_models, model, work)
    assert made.object == "response.compaction"
    assert made.usage.output_tokens
    assert [item["type"] for item in items] == ["message", "compaction"]
    assert items[0]["content"][0]["text"] == "The weather in Xiamen and Paris?"
    assert "You are a forecaster." in texts(model, 0)[0]
    assert reply.output_text == "Paris, then."
    assert SUMMARIZED + SUMMARY in " ".join(texts(model, 1))


def test_a_stored_conversation_is_compacted(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    model = hermes("Sunny.", SUMMARY)

    async def work(client: openai.AsyncOpenAI) -> Any:
        first = await client.responses.create(model="m", input="The weather in Xiamen?")
        made = await client.responses.compact(model="m", previous_response_id=first.id)
        with pytest.raises(openai.NotFoundError):  # it is no response to continue from
            await client.responses.retrieve(made.id)
        return made

    made = served(serve_models, model, work, store=StoreSettings(str(tmp_path / "kept.sqlite"), responses=True))
    assert [item.type for item in made.output] == ["message", "compaction"]
    assert texts(model, 1)[-3:-1] == ["The weather in Xiamen?", "Sunny."]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ([ThoughtDelta("hm"), TextDelta(" \n"), Finished("stop")], "wrote no summary"),
        ([Finished("stop")], "wrote no summary"),
        ([TextDelta("It is"), Finished("length")], "cut at its length limit"),
    ],
)
def test_without_a_whole_summary_no_conversation_is_lost(
    serve_models: Callable[..., Any], reply: Any, words: str
) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.InternalServerError, match=words):
            await client.responses.compact(model="m", input=HISTORY[:2])
        body = {"model": "m", "input": [*HISTORY[:2], TRIGGER], "stream": True}
        answer = await client._client.post("/responses", json=body)
        assert words in answer.text
        assert "response.output_item.done" not in answer.text
        assert "response.completed" not in answer.text

    served(serve_models, Scripted([reply] * 2), work)


@pytest.mark.parametrize("text", ["gAAAAABo", seal(b'{"item": "x"}'), seal(b"summary:\xff"), "toolspeak:?"])
def test_a_summary_of_another_server_is_refused(serve_models: Callable[..., Any], text: str) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        item: Any = {"type": "compaction", "id": "cmp_1", "encrypted_content": text}
        with pytest.raises(openai.BadRequestError, match="made by another server") as caught:
            await client.responses.create(model="m", input=[HISTORY[1], item, {"role": "user", "content": "Go on."}])
        assert caught.value.param == "input.1.encrypted_content"

    served(serve_models, hermes("x"), work)


def test_what_cannot_be_compacted_is_refused(serve_models: Callable[..., Any]) -> None:
    async def work(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.BadRequestError, match=r"input\.1: compaction_trigger must be the last item"):
            await client.responses.create(model="m", input=[HISTORY[1], TRIGGER, HISTORY[1]])  # type: ignore[list-item]
        for empty in ([], "", None):
            with pytest.raises(openai.BadRequestError, match="input"):
                await client.responses.compact(model="m", input=empty)

    served(serve_models, hermes("x"), work)
