"""What an answer cost where nobody told, and prompts that are too long, in the shape of each API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from toolspeak.api.upstream_errors import failure
from toolspeak.errors import BadRequest, PromptTooLong
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.models.scripted import Scripted
from toolspeak.types import Usage

LONG = "word " * 400
SCHEMA = {"type": "object", "properties": {}}
CHAT = ("/v1/chat/completions", {"messages": [{"role": "user", "content": LONG}]})
MESSAGES = ("/v1/messages", {"max_tokens": 100, "messages": [{"role": "user", "content": LONG}]})
RESPONSES = ("/v1/responses", {"input": LONG, "store": False})
TOOLS: dict[str, Any] = {
    "/v1/chat/completions": {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
    "/v1/messages": {"name": "look", "input_schema": SCHEMA},
    "/v1/responses": {"type": "function", "name": "look", "parameters": SCHEMA},
}


def asked(serve_models: Callable[..., Any], path: str, reply: Any, **body: Any) -> tuple[int, Any]:
    """The status, and the answer: of a stream the data of its events."""

    async def go() -> tuple[int, Any]:
        model = Scripted([reply], repeat=True, capabilities=["tools"])
        async with serve_models(m=model) as running, aiohttp.ClientSession() as session:
            async with session.post(running.url + path, json={"model": "m", **body}) as answer:
                text = await answer.text()
        if not body.get("stream") or answer.status != 200:
            return answer.status, json.loads(text)
        rows = [line[6:] for line in text.splitlines() if line.startswith("data: ") and line != "data: [DONE]"]
        return answer.status, list(map(json.loads, rows))

    return asyncio.run(go())


def usages(told: Any) -> list[dict[str, Any]]:
    """Every usage in an answer that is not empty."""
    rows = told if isinstance(told, list) else [told]
    found = [row.get("usage") or (row.get("response") or {}).get("usage") for row in rows]
    return [usage for usage in found if usage]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("tools", [False, True])
@pytest.mark.parametrize(("path", "body"), [CHAT, MESSAGES, RESPONSES])
def test_what_nobody_told_is_estimated_and_says_so(
    serve_models: Callable[..., Any], path: str, body: Any, tools: bool, stream: bool
) -> None:
    more = {"tools": [TOOLS[path]]} if tools else {}
    more |= {"stream_options": {"include_usage": True}} if stream and path == CHAT[0] else {}
    reply: list[Event] = [TextDelta("yes " * 100), Finished()]
    status, told = asked(serve_models, path, reply, **body, **more, stream=stream)
    assert status == 200
    usage = usages(told)[-1]
    assert usage["toolspeak"] == {"estimated": True}
    spent = (
        usage.get("prompt_tokens", usage.get("input_tokens")),
        usage.get("completion_tokens", usage.get("output_tokens")),
    )
    assert 500 <= spent[0] <= 600
    assert spent[1] == 100


@pytest.mark.parametrize(("path", "body"), [CHAT, MESSAGES, RESPONSES])
def test_what_the_model_tells_stands(serve_models: Callable[..., Any], path: str, body: Any) -> None:
    call: list[Event] = [CallStart("look", "c"), ArgumentsDelta("{}"), CallEnd()]
    reply = [*call, Finished("tool_calls", Usage(7, 3))]
    _, told = asked(serve_models, path, reply, **body, tools=[TOOLS[path]])
    (usage,) = usages(told)
    assert "toolspeak" not in usage
    assert 7 in usage.values()
    assert 3 in usage.values()


# ------------------------------------------------------------------ prompts that are too long


@pytest.mark.parametrize(
    ("status", "body", "tokens", "limit"),
    [
        (400, {"error": {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
                         "(4000 in the messages, 1000 in the completion).", "code": "context_length_exceeded"}}, 5000, 4096),
        (400, {"error": {"code": 400, "message": "the request exceeds the available context size, try increasing it",
                         "type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}}, 5000, 4096),
        (400, {"type": "error", "error": {"type": "invalid_request_error",
                                          "message": "prompt is too long: 5000 tokens > 4096 maximum"}}, 5000, 4096),
        (400, {"message": "The input (5000 tokens) is longer than the model's context length (4096 tokens)."}, 5000, 4096),
        (400, {"error": {"message": "The input token count (1,200,000) exceeds the maximum number of tokens allowed "
                         "(1048576)."}}, 1_200_000, 1_048_576),
        (422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"}, 5000, 4096),
        (500, {"error": "request (5000 tokens) exceeds the available context size (4096 tokens)"}, 5000, 4096),
        (400, {"error": {"message": "Your input exceeds the context window of this model.",
                         "code": "context_length_exceeded"}}, None, None),
    ],
)  # fmt: skip
def test_servers_say_in_many_ways_that_a_prompt_is_too_long(
    status: int, body: Any, tokens: int | None, limit: int | None
) -> None:
    error = failure(status, body)
    assert isinstance(error, PromptTooLong)
    assert (error.tokens, error.limit) == (tokens, limit)


@pytest.mark.parametrize(
    "said", ["max_tokens must be at least 1", "the schema of `context` is no object", "model not loaded"]
)
def test_other_refusals_are_not_about_the_length(said: str) -> None:
    assert not isinstance(failure(400, {"error": {"message": said}}), PromptTooLong)


TOO_LONG = PromptTooLong("the server refused it", tokens=5000, limit=4096)


@pytest.mark.parametrize("stream", [False, True])
def test_chat_tells_the_tokens_and_the_limit(serve_models: Callable[..., Any], stream: bool) -> None:
    status, told = asked(serve_models, CHAT[0], TOO_LONG, **CHAT[1], stream=stream)
    error = (told[0] if isinstance(told, list) else told)["error"]
    assert status == 400 or stream
    assert error["code"] == "context_length_exceeded"
    assert error["type"] == "invalid_request_error"
    assert "maximum context length is 4096 tokens" in error["message"]
    assert "5000 tokens" in error["message"]


def test_messages_begins_as_its_clients_know_it(serve_models: Callable[..., Any]) -> None:
    status, told = asked(serve_models, MESSAGES[0], TOO_LONG, **MESSAGES[1])
    assert status == 400
    assert told["error"] == {
        "type": "invalid_request_error", "message": "prompt is too long: 5000 tokens > 4096 maximum"
    }  # fmt: skip


def test_responses_names_it(serve_models: Callable[..., Any]) -> None:
    status, told = asked(serve_models, RESPONSES[0], TOO_LONG, **RESPONSES[1])
    assert status == 400
    assert told["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("tools", [False, True])
def test_a_reply_cut_before_it_began_is_no_empty_message(serve_models: Callable[..., Any], tools: bool) -> None:
    more = {"tools": [TOOLS[CHAT[0]]]} if tools else {}
    reply = [Finished("length", Usage(4096, 0))]
    status, told = asked(serve_models, CHAT[0], reply, **CHAT[1], **more)
    assert status == 400
    assert told["error"]["code"] == "context_length_exceeded"
    assert "4096" in told["error"]["message"]
    status, told = asked(serve_models, CHAT[0], reply, **CHAT[1], **more, max_tokens=1)
    assert status == 200


def test_a_refusal_is_never_without_words(serve_models: Callable[..., Any]) -> None:
    status, told = asked(serve_models, CHAT[0], BadRequest("no image can be read"), **CHAT[1])
    assert status == 400
    assert told["error"]["message"] == "no image can be read"
