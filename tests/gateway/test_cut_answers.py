"""A reply that its server cut inside a call: every API says so, and no client sees the beginning of the call as an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from listening import listening
from toolspeak.events import Finished, TextDelta
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.types import Usage

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WRAPPED = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
HI = [{"role": "user", "content": "Weather in Rome?"}]
APIS: dict[str, tuple[dict[str, Any], str]] = {
    "/v1/chat/completions": ({"messages": HI, "tools": WRAPPED}, '"finish_reason":"length"'),
    "/v1/messages": (
        {"messages": HI, "tools": [{"name": "weather", "input_schema": SCHEMA}], "max_tokens": 9},
        '"stop_reason":"max_tokens"',
    ),
    "/v1/responses": (
        {"input": "Weather?", "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}]},
        '"status":"incomplete"',
    ),
    "/api/chat": ({"messages": HI, "tools": WRAPPED}, '"done_reason":"length"'),
}
HALVES = ("<tool_call>\n", '<tool_call>\n{"name": "wea', '<tool_call>\n{"name": "weather", "argum',
          '<tool_call>\n{"name": "weather", "arguments": {"ci')  # fmt: skip


class Server:
    """A model's server that leaves calls in the text, and cuts each reply."""

    def __init__(self) -> None:
        self.text = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"{}")
        if request.method == "GET":
            return web.json_response({"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "object": "model"}]})
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        about = {"id": "c", "created": 1, "model": "m", "usage": usage}
        if not body.get("stream"):
            message = {"role": "assistant", "content": self.text}
            choice = {"index": 0, "message": message, "finish_reason": "length"}
            return web.json_response({**about, "object": "chat.completion", "choices": [choice]})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for delta, finish in (*(({"content": letter}, None) for letter in self.text), ({}, "length")):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            row = {**about, "object": "chat.completion.chunk", "choices": [choice]}
            await response.write(f"data: {json.dumps(row)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response


async def answers(url: str, model: str) -> AsyncIterator[tuple[str, bool, str]]:
    """Yield the path, whether it was a stream, and the answer, of each API."""
    async with aiohttp.ClientSession() as http:
        for path, (body, _) in APIS.items():
            for stream in (False, True):
                async with http.post(url + path, json={**body, "model": model, "stream": stream}) as response:
                    assert response.status == 200, await response.text()
                    yield path, stream, await response.text()


@pytest.mark.parametrize("half", HALVES)
def test_no_api_shows_the_beginning_of_a_call(serve_models: Callable[..., Any], half: str) -> None:
    """Neither of a model that is asked in a dialect, nor of a server that leaves calls in the text, in a known dialect or not."""

    async def go() -> None:
        server = Server()
        server.text = f"I look.\n{half}"
        events = [*(TextDelta(letter) for letter in server.text), Finished("length", Usage(9, 9))]
        spoken = Speaker(Scripted([events], repeat=True), "hermes")
        async with listening(server.handle) as upstream:
            native = ModelSettings("native", (f"{upstream}/v1#Qwen/Qwen3-8B",), mode="native")
            unknown = ModelSettings("unknown", (f"{upstream}/v1#my-model",), mode="native")
            async with serve_models(spoken=spoken, native=native, unknown=unknown) as running:
                for model in ("spoken", "native", "unknown"):
                    async for path, stream, text in answers(running.url, model):
                        place = (model, path, stream, text)
                        assert "I look." in text if not stream else True, place
                        assert APIS[path][1] in text.replace('": ', '":'), place
                        assert not [word for word in ("tool_call>", "argum", "wea") if word in answer_of(text)], place

    asyncio.run(go())


def answer_of(text: str) -> str:
    """The texts in an answer, joined. Of a whole one and of a stream, without what repeats the request or explains notes."""
    rows = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line[:6] in ("data: ", '{"id":', '{"mode')
            and "[DONE]" not in line]  # fmt: skip
    return "".join(words for row in rows for words in _texts(row))


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [words for one in value for words in _texts(one)]
    if not isinstance(value, dict):
        return []
    own = [one for name, one in value.items() if name in ("content", "text", "delta") and isinstance(one, str)]
    return own + [words for name, one in value.items() if name not in ("tools", "toolspeak") for words in _texts(one)]
