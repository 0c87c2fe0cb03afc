"""A server of a model that knows nothing of tools: it writes text, calls among it in a dialect, as it is told to.

    python upstream.py        prints its port

The model is told what to play by a word in brackets in the last question: see PLAYED. It plays badly on purpose: asked
for a call it chats (required), asked for one tool it calls another (named), and does better when it is asked again.

A question may also hold the calls to make, one after another: `[[NAME argument=value&...]]`. They are written in the
dialect that the model is named by, where the request offers the tool; the answer then repeats what the last result holds of
TOKEN. So programs with tools of their own are played to.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import uvicorn

import toolspeak as ts
from toolspeak.wire.prompt.calls import write_calls

SECRET = "upstream-canary-8f2c"
"""Stands in everything that the server says of itself: a client must never see it."""
TOKEN = "canary-7f3a"
"""What a tool of a program finds: an answer that holds it has been through all steps."""
TITLE = "A title"
STEP = re.compile(r"\[\[([\w-]+) (\S+?)\]\]")
"""A call to make: the arguments are written as in an address, which no program quotes or escapes."""
PIECE = 4


def call(name: str, **arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


XIAMEN = call("weather", city="Xiamen")
PLAYED = {
    "plain": ["Hello from a model."],
    "call": [XIAMEN],
    "parallel": [f"{XIAMEN}\n{call('weather', city='Paris')}"],
    "text_call": [f"Let me look.\n{XIAMEN}"],
    "required": ["I would rather talk about it.", XIAMEN],
    "named": [XIAMEN, call("clock", city="Xiamen")],
    "partial": [call("Partialweather", city="Xiamen")],
    "wrong": [call("weather", town="Xiamen"), XIAMEN],
    "unknown": [call("launch", target="moon")] * 9,
    "person": ['{"name": "Alice", "age": 31}'],
    "error": [],
    "edit": [f"Here it is.\n\nnotes.txt\n```\n{TOKEN}\n```\n"],
}
"""By the word: the answer, then what comes when it is asked again; nothing where the server fails."""
MARK = re.compile(rf"\[({'|'.join(PLAYED)})\]")


def spoken(messages: list[dict[str, Any]], dialect: str = "hermes") -> str | None:
    """What the model says; None where its server fails."""
    texts = [str(message.get("content") or "") for message in messages]
    if (said := stepped(messages, texts, dialect)) is not None:
        return said
    if results := re.findall(r"<tool_response>\n(.*?)\n</tool_response>", texts[-1], re.DOTALL):
        return f"The tools say: {' and '.join(results)}"
    at, word = next(
        ((i, found[-1]) for i in range(len(texts) - 1, -1, -1) if (found := MARK.findall(texts[i]))), (0, "plain")
    )
    played = PLAYED[word]
    again = sum(message.get("role") == "assistant" for message in messages[at:])
    return played[min(again, len(played) - 1)] if played else None


def stepped(messages: list[dict[str, Any]], texts: list[str], dialect: str) -> str | None:
    """The next of the calls that a question holds, or the answer behind them; None where no question holds any."""
    questions = [i for i, text in enumerate(texts) if messages[i].get("role") == "user" and STEP.search(text)]
    if not questions:
        return None
    steps = STEP.findall(texts[questions[-1]])
    before = sum(message.get("role") == "assistant" for message in messages[questions[-1] :])
    if before >= len(steps):
        return f"The tools say: {TOKEN if TOKEN in texts[-1] else 'nothing'}"
    name, arguments = steps[before]
    if not any(name in text for message, text in zip(messages, texts, strict=True) if message.get("role") == "system"):
        return TITLE  # a question beside the task, without its tools
    return write_calls([ts.ToolCall("", name, dict(parse_qsl(arguments)))], ts.dialect(dialect))


async def app(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    asked = json.loads(body or b"{}")
    if scope["path"].endswith("/models"):
        await _reply(send, 200, {"object": "list", "data": [{"id": SECRET, "object": "model"}]})
    elif not scope["path"].endswith("/chat/completions"):  # it counts no tokens, and lays out no template
        await _reply(send, 404, {"error": {"message": "there is nothing else here"}})
    elif (text := spoken(asked["messages"], named if (named := asked["model"]) in ts.dialects() else "hermes")) is None:
        said = {"message": f"CUDA error on {SECRET} at http://10.1.2.3:8000", "type": "server_error"}
        await _reply(send, 500, {"error": said})
    elif asked.get("tools"):
        await _reply(send, 400, {"error": {"message": "this model does not support tools", "code": 400}})
    elif asked.get("stream"):
        await _stream(send, _chunks(text))
    else:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        await _reply(send, 200, {"id": "1", "object": "chat.completion", "choices": [choice], "usage": USAGE})


USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


async def _chunks(text: str) -> AsyncIterator[dict[str, Any]]:
    for i in range(0, len(text), PIECE):
        yield {"choices": [{"index": 0, "delta": {"content": text[i : i + PIECE]}, "finish_reason": None}]}
        await asyncio.sleep(0.005)
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {"choices": [], "usage": USAGE}


async def _reply(send: Any, status: int, value: Any) -> None:
    kind = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": json.dumps(value).encode()})


async def _stream(send: Any, chunks: AsyncIterator[dict[str, Any]]) -> None:
    kind = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": kind})
    async for chunk in chunks:
        row = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": SECRET, **chunk}
        await send({"type": "http.response.body", "body": f"data: {json.dumps(row)}\n\n".encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


async def serve() -> None:
    config = uvicorn.Config(app, port=0, log_level="error", access_log=False, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await task


if __name__ == "__main__":
    sys.exit(asyncio.run(serve()))
