"""The attacks that memory.py makes, class by class: what one request of each is, and which caches it fills."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from functools import partial

import aiohttp
from hostile_servers import ANSWERS, GZIP

from endless import ENDLESS

CACHES = {
    "validators": 64_000_000,
    "alternatives": 16_000_000,
    "tools": 96_000_000,
    "texts": 32_000_000,
    "formats": 16_000_000,
    "indexes": 96_000_000,
    "words": 35_000_000,
    "answer": 13_000_000,
}
"""What the caches may hold, as docs/explanation/security.md has it."""
CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]

MAIN_KEY, TOOL_KEY, AUDIT_KEY = "main", "tools", "audited"
"""The keys of attackers: with no rates, with the tools of an MCP server, and with a policy."""
KEYS = 1_000
"""How many more keys there are, each with rates."""

STATUS: dict[int, int] = {}
"""How often each status was answered."""

Ask = Callable[[aiohttp.ClientSession, str, int], Awaitable[None]]


def body_of(**more: object) -> dict[str, object]:
    return {"model": "m", "messages": HI, **more}


def tool(name: str, **properties: object) -> dict[str, object]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def posts(make: Callable[[int], tuple[str, dict[str, object]]], key: str = MAIN_KEY) -> Ask:
    async def ask(session: aiohttp.ClientSession, url: str, number: int) -> None:
        path, body = make(number)
        await post(session, url + path, body, key)

    return ask


async def post(session: aiohttp.ClientSession, url: str, body: dict[str, object], key: str) -> bytes:
    """Sends a body, and returns the answer's."""
    async with session.post(url, json=body, headers={"authorization": f"Bearer {key}"}) as answer:
        raw = await answer.read()
        STATUS[answer.status] = STATUS.get(answer.status, 0) + 1
        if answer.status == 500:
            raise SystemExit(f"{url}: {answer.status}")
        return raw


def sends(first: bytes, more: bytes, times: Callable[[], int]) -> Ask:
    async def ask(_: aiohttp.ClientSession, url: str, __: int) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        try:
            writer.write(first)
            async with asyncio.timeout(1):
                for _ in range(times()):
                    writer.write(more)
                    await writer.drain()
        except (OSError, TimeoutError):
            pass
        writer.close()

    return ask


LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
CHUNKED = b"POST /livez HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


def chat(text: str, **more: object) -> tuple[str, dict[str, object]]:
    return CHAT, {"model": "echo", "messages": [{"role": "user", "content": text}], **more}


def _called(arguments: str) -> dict[str, object]:
    """A conversation with a call of these arguments."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": f'{{"x": {arguments}}}'}}
    turns = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    return body_of(tools=ANY_TOOL) | {"messages": [*HI, *turns]}


def _endless(kind: str, number: int) -> tuple[str, dict[str, object]]:
    """A request whose reply does not end, every other one with a stream."""
    return CHAT, body_of(tools=ANY_TOOL) | {
        "model": ENDLESS[kind][0],
        "messages": [{"role": "user", "content": kind}],
        "stream": number % 2 == 0,
    }


def _big(i: int) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": f"{i}"}] * 20}] * n(8000)}


SCALE = 1.0
"""How large the attacks are: the suite makes them small."""


def n(count: int) -> int:
    return max(1, int(count * SCALE))


def alternatives(depth: int) -> dict[str, object]:
    made: dict[str, object] = {"type": "integer"}
    for _ in range(depth):
        made = {"anyOf": [made, {"type": "array", "items": made}]}
    return made


def kinds(count: int, i: int = 0) -> list[object]:
    """Alternatives of which each wants another value of a field."""
    return [
        {"type": "object", "properties": {"k": {"const": j}}, "required": ["k"], "title": f"{i}"}
        for j in range(n(count))
    ]


def numbered(count: int, value: object, i: int = 0) -> dict[str, object]:
    return {f"p{j}_{i}": value for j in range(n(count))}


class Conversation:
    """A conversation of stored responses, of which each turn goes on from the last one. After `turns` it begins anew."""

    def __init__(self, turns: int, size: int) -> None:
        self._turns, self._size = turns, size
        self._last = ""

    async def ask(self, session: aiohttp.ClientSession, url: str, number: int) -> None:
        body: dict[str, object] = {"model": "m", "input": "x " * n(self._size // 2), "store": True}
        if self._last and number % self._turns:
            body["previous_response_id"] = self._last
        raw = await post(session, url + "/v1/responses", body, MAIN_KEY)
        self._last = str(json.loads(raw).get("id", ""))


async def many_keys(session: aiohttp.ClientSession, url: str, number: int) -> None:
    """Requests with each of the keys, and as many with keys that do not exist."""
    for i in range(n(KEYS)):
        await post(session, url + CHAT, body_of(), f"key{i}")
        await post(session, url + CHAT, body_of(), f"no{number}-{i}-" + "x" * 400)


def long_chat(count: int, i: int) -> dict[str, object]:
    """A chat of many turns, each with a call and its result."""
    turns: list[object] = []
    for j in range(n(count)):
        call = {"id": f"c{j}", "type": "function", "function": {"name": "f", "arguments": f'{{"x": [{i}, "{j}"]}}'}}
        turns += [
            {"role": "user", "content": f"question {j}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{j}", "content": f"result {j} of {i}"},
            {"role": "assistant", "content": "done"},
        ]
    return body_of(tools=ANY_TOOL) | {"messages": [*turns, *HI]}


def hosted(kind: str) -> Ask:
    """A request whose model calls the tool of the MCP server."""
    call = json.dumps({"name": "web_act", "arguments": {"kind": kind}})
    return posts(lambda _: chat(f"<tool_call>{call}</tool_call>"), TOOL_KEY)


CALL = '<tool_call>{"name": "f", "arguments": {"x": %s}}</tool_call>'
ANY_TOOL = [tool("f", x={})]
TOOLS = ("validators", "alternatives", "tools", "texts")
MANY = (*TOOLS, "indexes", "words")


def words(count: int, i: int) -> str:
    return " ".join(f"w{number:x}" for number in random.Random(i).choices(range(10**7), k=count))


CLASSES: dict[str, tuple[Ask, int, tuple[str, ...]]] = {
    "patterns": (posts(lambda i: (CHAT, body_of(tools=[tool("f", **{f"p{j}": {"pattern": f"^[a-z]+{j}x{i}$"} for j in range(n(900))})]))), 1, TOOLS),
    "properties": (posts(lambda i: (CHAT, body_of(tools=[tool("f", **numbered(3000, {"title": f"{i}"}))]))), 1, TOOLS),
    "many tools": (posts(lambda i: (CHAT, body_of(tools=[tool(f"f{j}_{i}") for j in range(n(100))]))), 1, MANY),
    "large tools": (posts(lambda i: (CHAT, body_of(tools=[tool(f"f{j}_{i}", **{f"p{k}": {"type": "string", "description": "d" * 40} for k in range(10)}) for j in range(n(3000))]))), 1, MANY),
    "tools of words": (posts(lambda i: (CHAT, body_of(tools=[tool(f"f{j}_{i}", x={"description": words(100, i * 1000 + j)}) for j in range(n(1000))]))), 1, MANY),
    "deferred tools": (posts(lambda i: ("/v1/messages", {**body_of(max_tokens=9), "tools": [
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        *({"name": f"f{j}_{i}", "description": words(20, i * 1000 + j), "input_schema": {"type": "object"}, "defer_loading": True} for j in range(n(1000)))]})), 1, MANY),
    "varied fields": (posts(lambda i: (CHAT, body_of(**{
        "user": words(9_000, i), "stop": [words(20, i)], "metadata": {"a": words(50, i)}, f"x{words(20_000, i)}": i}))), 1, ()),
    "formats": (posts(lambda i: (CHAT, body_of(response_format={"type": "json_schema", "json_schema": {
        "name": "r", "schema": {"type": "object", "properties": numbered(300, {}, i)}}}))), 1, ("validators", "alternatives", "formats")),
    "wrong messages": (posts(lambda _: (CHAT, {"model": "m", "messages": [{"role": 1}] * n(300_000)})), 1, ()),
    "requests in a row": (sends(LIVEZ, LIVEZ * 1000, lambda: n(20)), 4, ()),
    "trailers": (sends(CHUNKED + b"0\r\nx-a: ", b"b" * 65_536, lambda: n(20)), 4, ()),
    "large texts": (posts(lambda i: (CHAT, body_of(user="x" * n(9_000_000)))), 1, ()),
    "many parts": (posts(lambda i: (CHAT, _big(i))), 1, ()),
    "many names": (posts(lambda i: (CHAT, body_of(x=numbered(190_000, 1, i)))), 1, ()),
    "many lists": (posts(lambda i: (CHAT, body_of(x=[[]] * n(390_000)))), 1, ()),
    "large prompts": (posts(lambda i: (CHAT, {"model": "m", "messages": [{"role": "user", "content": f"<s>{i} " * n(1_000_000)}]})), 1, ()),
    "many replies": (posts(lambda i: chat("x" * n(100_000), n=8)), 1, ()),
    "replies of braces": (posts(lambda i: chat("{" * n(200_000), tools=ANY_TOOL)), 1, TOOLS),
    "replies of calls": (posts(lambda i: chat(CALL % '"y"' * n(200), tools=ANY_TOOL)), 1, TOOLS),
    "replies of openers": (posts(lambda i: chat("<tool_call>" * n(20_000), tools=ANY_TOOL)), 1, TOOLS),
    "replies of arguments": (posts(lambda i: chat(CALL % ("[" + "1," * n(400_000) + "1]"), tools=ANY_TOOL)), 1, TOOLS),
    "replies of values": (posts(lambda i: chat("[" + "1," * n(790_000) + "1]", response_format={"type": "json_object"})), 1, ("formats",)),
    "replies of lists": (posts(lambda i: chat(CALL % ("[" + "[]," * n(390_000) + "1]"), tools=ANY_TOOL)), 1, TOOLS),
    "replies of names": (posts(lambda i: chat(CALL % json.dumps({f"k{j}": 1 for j in range(n(380_000))}), tools=ANY_TOOL)), 1, TOOLS),
    "calls of lists": (posts(lambda i: (CHAT, _called("[" + "[]," * n(390_000) + "1]"))), 1, TOOLS),
    "wrong alternatives": (posts(lambda i: chat(CALL % '[[[["y"]]]]', tools=[tool("f", x=alternatives(10 if SCALE == 1 else 4))])), 1, TOOLS),
    "wrong items": (posts(lambda i: chat(CALL % json.dumps([{"k": 1}] * n(400) + [{"k": "q"}] * n(100)), tools=[tool("f", x={"type": "array", "items": {"anyOf": kinds(300, i)}})])), 1, TOOLS),
    "many alternatives": (posts(lambda i: chat(CALL % '{"k": "q"}', tools=[tool("f", x={"anyOf": kinds(1500, i)})])), 1, TOOLS),
    "equal items": (posts(lambda i: chat(CALL % ("[" + "1," * n(60_000) + "1]"), tools=[tool("f", x={"type": "array", "uniqueItems": True})])), 1, TOOLS),
    "texts to convert": (posts(lambda i: chat(CALL % ("[" + '"1.25",' * n(150_000) + '"1"]'), tools=[tool("f", x={"type": "array", "items": {"type": "number"}})])), 1, TOOLS),
    "long events of a response": (posts(lambda i: ("/v1/responses", {"model": "echo", "input": "x\n" * n(1_000_000), "stream": True})), 1, ()),
    "wrong tools": (posts(lambda _: (CHAT, body_of(tools=[{}] * n(320_000)))), 1, ()),
    "many keys": (many_keys, 4, ()),
    "long chats": (posts(lambda i: (CHAT, long_chat(8_000, i))), 1, TOOLS),
    "stored conversations": (Conversation(50, 160_000).ask, 1, ()),
    "audited calls": (posts(lambda i: chat(CALL % f'"{i}"' * n(128), tools=ANY_TOOL), AUDIT_KEY), 1, TOOLS),
    "audited arguments": (posts(lambda i: chat(CALL % json.dumps("xy" * n(4_000_000)), tools=ANY_TOOL), AUDIT_KEY), 1, TOOLS),
    "embeddings": (posts(lambda i: ("/v1/embeddings", {"model": "embeds", "input": ["Hi"] * n(2_048)})), 6, ()),
    **{f"answers of {kind} by MCP": (hosted(kind), 1, ("answer",)) for kind in (*ANSWERS, GZIP)},
    **{f"endless {kind}": (posts(partial(_endless, kind)), 1, ()) for kind in ENDLESS},
}  # fmt: skip
"""Each class, how many of its requests are made at once, and the caches that it fills."""
