"""The two ends of the line: a stub of a model's server, and a generator of load, as bare protocols on uvloop.

Both do no more than they must, so that what is measured is what stands between them. The stub takes its
lines from the last word of the body's question: `#call` (a tool call at once, whole or in pieces), `#stream`
(a tool call in 100 chunks, each written by itself), `#paced` (plain text in chunks, PACE a second).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Xiamen", "unit": "celsius"}}\n</tool_call>'
NOTE = "It is a fine day for a walk along the shore, and nobody should stay at home. " * 4
LONG = '{"city": "Xiamen", "unit": "celsius", "note": "' + NOTE[:278] + '"}'
LONG_CALL = f'<tool_call>\n{{"name": "get_weather", "arguments": {LONG}}}\n</tool_call>'
CHUNKS = 100
PACE = 20
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city, now or later today.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "note": {"type": "string"},
            },
            "required": ["city"],
        },
    },
}


def question(case: str, *, stream: bool, tools: bool = True) -> bytes:
    """The body of a request, 0.45 KB with its tool."""
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": f"Weather in Xiamen? #{case}"}]}
    if tools:
        body["tools"] = [TOOL]
    if stream:
        body["stream"] = True
    return json.dumps(body, separators=(",", ":")).encode()


# ------------------------------------------------------------------ the stub


def _cut(text: str, pieces: int) -> list[str]:
    edges = [round(i * len(text) / pieces) for i in range(pieces + 1)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]


def _chunk(data: str) -> bytes:
    raw = data.encode()
    return b"%x\r\n%s\r\n" % (len(raw), raw)


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    row = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return _chunk(f"data: {json.dumps({**head, 'choices': [row]})}\n\n")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = _chunk("data: [DONE]\n\n") + b"0\r\n\r\n"
OPENING = _event({"role": "assistant", "content": ""})
WORD = _event({"content": " word"})


def _spoken(text: str, pieces: int) -> list[bytes]:
    """A stream of a call that is written as text."""
    return [HEAD + OPENING, *(_event({"content": piece}) for piece in _cut(text, pieces)), _event({}, "stop") + END]


def _native(arguments: str, pieces: int) -> list[bytes]:
    """A stream of a call in the API's own form."""
    named = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
    deltas = [[named], *([{"index": 0, "function": {"arguments": piece}}] for piece in _cut(arguments, pieces - 1))]
    return [HEAD + OPENING, *(_event({"tool_calls": delta}) for delta in deltas), _event({}, "tool_calls") + END]


def _whole(message: dict[str, Any], finish: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None, "finish_reason": finish}
    usage = {"prompt_tokens": 90, "completion_tokens": 25, "total_tokens": 115}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    raw = json.dumps({**head, "choices": [choice], "usage": usage}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(raw), raw)


SHORT = '{"city": "Xiamen", "unit": "celsius"}'
CALLED = [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": SHORT}}]
WHOLE = {False: _whole({"content": CALL}, "stop"), True: _whole({"content": None, "tool_calls": CALLED}, "tool_calls")}
PIECES = {False: b"".join(_spoken(CALL, 20)), True: b"".join(_native(SHORT, 20))}
STREAM = {False: _spoken(LONG_CALL, CHUNKS), True: _native(LONG, CHUNKS)}


class Stub(asyncio.Protocol):
    """A server of one model: it answers in the API's own calls where it is offered tools, in text otherwise."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._data = b""
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._data = self._data + data if self._data else data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._data) < end + 4 + length:
                return
            body, self._data = self._data[end + 4 : end + 4 + length], self._data[end + 4 + length :]
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        native = b'"tools"' in body
        if b"#paced" in body:
            self._paced(int(body.partition(b"#paced")[2][:4]))
        elif b"#stream" in body:
            self._next(iter(STREAM[native]))
        elif b'"stream":true' in body or b'"stream": true' in body:
            self.transport.write(PIECES[native])
        else:
            self.transport.write(WHOLE[native])

    def _next(self, pieces: Iterator[bytes]) -> None:
        """One piece a turn of the loop, so that each leaves by itself."""
        piece = next(pieces, None)
        if piece is not None and not self.transport.is_closing():
            self.transport.write(piece)
            self._loop.call_soon(self._next, pieces)

    def _paced(self, count: int) -> None:
        self.transport.write(HEAD + OPENING + WORD)
        due = self._loop.time()

        def more(sent: int) -> None:
            if self.transport.is_closing():
                return
            if sent < count:
                self.transport.write(WORD)
                self._loop.call_at(due + sent / PACE, more, sent + 1)
            else:
                self.transport.write(_event({}, "stop") + END)

        self._loop.call_at(due + 1 / PACE, more, 1)


# ------------------------------------------------------------------ the generator


@dataclass
class Result:
    """What came of some load: seconds of each answer, seconds to its first words, chunks, and what was wrong."""

    seconds: float = 0.0
    took: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    chunks: int = 0
    wrong: list[str] = field(default_factory=list)
    last: bytes = b""


class Client(asyncio.Protocol):
    """One connection that asks again as soon as it has its answer, while `more()` says so.

    An answer is right when it holds `wanted`; `mark` are the bytes that are counted as chunks.
    """

    transport: asyncio.Transport

    def __init__(self, body: bytes, wanted: bytes, result: Result, more: Callable[[], bool], mark: bytes = b"") -> None:
        head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        self._request = f"{head}authorization: Bearer sk-bench\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
        self._wanted, self._result, self._more, self._mark = wanted, result, more, mark
        self._parts: list[bytes] = []
        self._length: int | None = None
        self._told = False
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self._ask()

    def _ask(self) -> None:
        self._parts, self._length, self._told = [], None, False
        self._begun = time.perf_counter()
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._mark and not self._told and self._mark in data:
            self._told = True
            self._result.first.append(time.perf_counter() - self._begun)
        self._parts.append(data)
        if self._length is None and not self._opened():
            return
        if self._length == -1:
            if not data.endswith(b"0\r\n\r\n"):
                return
        elif sum(map(len, self._parts)) < (self._length or 0):
            return
        self._over(b"".join(self._parts))

    def _opened(self) -> bool:
        """Whether the head is here: then the length of the whole answer is known, -1 for a chunked one."""
        raw = b"".join(self._parts)
        end = raw.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = raw[:end].lower()
        at = head.find(b"content-length:")
        self._length = end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else -1
        return True

    def _over(self, raw: bytes) -> None:
        result = self._result
        result.took.append(time.perf_counter() - self._begun)
        result.last = raw
        if self._mark:
            result.chunks += raw.count(self._mark)
        if not raw.startswith(b"HTTP/1.1 200") or self._wanted not in raw:
            result.wrong.append(raw[:2000].decode("utf-8", "replace"))
        if self._more():
            self._ask()
        else:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._result.wrong.append("the connection was closed in the middle")
            self.done.set_result(None)

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        self.transport.close()


async def load(
    port: int,
    body: bytes,
    wanted: bytes,
    *,
    connections: int = 1,
    seconds: float | None = None,
    requests: int | None = None,
    mark: bytes = b"",
) -> Result:
    """What comes of asking over so many connections, for so long or so often."""
    loop = asyncio.get_running_loop()
    result = Result()
    begun = time.perf_counter()

    def more() -> bool:
        if requests is not None and len(result.took) + connections > requests:
            return False
        return not result.wrong and (seconds is None or time.perf_counter() - begun < seconds)

    made = [
        (await loop.create_connection(lambda: Client(body, wanted, result, more, mark), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(client.done for client in made))
    result.seconds = time.perf_counter() - begun
    return result


async def crowd(port: int, body: bytes, wanted: bytes, *, streams: int, ramp: float, mark: bytes) -> Result:
    """What comes of `streams` streams, each asked for once, opened one after another over `ramp` seconds."""
    loop = asyncio.get_running_loop()
    result = Result()
    begun = time.perf_counter()
    waiting: list[asyncio.Future[None]] = []
    for i in range(streams):
        if (pause := begun + i * ramp / streams - time.perf_counter()) > 0:
            await asyncio.sleep(pause)
        made = await loop.create_connection(lambda: Client(body, wanted, result, bool, mark), "127.0.0.1", port)
        waiting.append(made[1].done)
    await asyncio.gather(*waiting)
    result.seconds = time.perf_counter() - begun
    return result


def calls(raw: bytes) -> list[tuple[str, Any]]:
    """The calls, names and arguments, in an answer of a chat API, streamed or whole."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        body = bytearray()
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            body += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]
        rest = bytes(body)
    lines = rest.split(b"data: ")[1:] if rest.startswith((b"data: ", b":")) else [rest]
    found: list[list[str]] = []
    for line in lines:
        if line.strip() == b"[DONE]":
            break
        for choice in json.loads(line)["choices"]:
            for call in (choice.get("delta") or choice.get("message") or {}).get("tool_calls") or ():
                if call["function"].get("name"):
                    found.append([call["function"]["name"], ""])
                found[-1][1] += call["function"].get("arguments") or ""
    return [(name, json.loads(arguments)) for name, arguments in found]
