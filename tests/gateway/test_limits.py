"""What a request may hold and take: everything beyond it is a 4xx, told soon and in the API's own form."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from collections.abc import Callable, Iterator
from time import process_time
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from raw_client import connected

from clock import held_time
from cost import costs_at_most
from toolspeak.errors import Refused
from toolspeak.gateway import first_schema_error
from toolspeak.gateway.body import check_body, parse_body
from toolspeak.gateway.config.settings import GatewayLimits
from toolspeak.gateway.endpoints.openapi import STORED
from toolspeak.gateway.limits.schema_limits import check_schema
from toolspeak.gateway.routes import ROUTES
from toolspeak.models.scripted import Scripted
from toolspeak.schema.check import check

DEAR = 600
"""What a hostile request costs at most, in plain ones: what grows faster than its input takes minutes."""
CHAT = "/v1/chat/completions"
BODIES = {
    route.path: route.codec.BODY for route in ROUTES if route.method == "POST" and not route.path.startswith(STORED)
}
MESSAGES = [{"role": "user", "content": "Hi"}]


def body(**more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": MESSAGES, **more}).encode()


def says(text: str) -> Scripted:
    return Scripted(text, repeat=True)


def refused(raw: bytes, limits: GatewayLimits = GatewayLimits()) -> str:  # noqa: B008 - frozen
    with pytest.raises(Refused) as caught:
        parse_body(raw, limits)
    assert caught.value.status == 400
    return str(caught.value)


def plain(size: int) -> Callable[[], Any]:
    """Reads a harmless body of about so many bytes."""
    raw = json.dumps({"a": ["a word or two"] * (size // 17 + 1000)}).encode()
    return lambda: parse_body(raw, GatewayLimits())


async def cost_in_plain_requests(url: str, raw: bytes) -> float:
    """The CPU time of a request as a multiple of a plain one's: the least of some measurements."""

    async def seconds(raw: bytes, count: int) -> float:
        begin = process_time()
        for _ in range(count):
            await posted(url, raw)
        return (process_time() - begin) / count

    least = float("inf")
    for _ in range(5):
        least = min(least, await seconds(raw, 1) / await seconds(body(), 10))
        if least <= DEAR:
            break
    return least


async def posted(url: str, raw: Any, path: str = CHAT, **headers: str) -> tuple[int, dict[str, Any]]:
    sent = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with aiohttp.ClientSession() as session:
        async with session.post(
            url + path,
            data=io.BytesIO(raw) if isinstance(raw, bytes) else raw,
            headers={k: v for k, v in sent.items() if v},
        ) as response:
            return response.status, json.loads(await response.text())


async def spoken(url: str, *pieces: bytes, pause: float = 0.0) -> bytes:
    """What the server says to bytes on a socket until it closes, or has said a whole answer."""
    client = await connected(url)
    for piece in pieces:
        if not client.answered:
            client.transport.write(piece)
            await asyncio.sleep(pause)
    told = await client.answer()
    client.transport.abort()
    return told


# ------------------------------------------------------------------ sizes and times


def test_a_body_that_is_too_large_is_refused_before_it_is_read(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello"), settings={"limits": GatewayLimits(body=1000)}) as running:
            assert (await posted(running.url, body(user="x" * 800)))[0] == 200
            status, told = await posted(running.url, body(user="x" * 1000))
            assert (status, told["error"]["code"]) == (413, "request_too_large")
            announced = b"POST " + CHAT.encode() + b" HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            told_raw = await spoken(running.url, announced + b"content-length: 99999999999\r\n\r\n{")
            assert told_raw.startswith(b"HTTP/1.1 413 ")

            async def chunks() -> Any:
                for _ in range(100):
                    yield b" " * 100

            status, _ = await posted(running.url, chunks())
            assert status == 413

    asyncio.run(go())


def test_a_body_and_a_head_arrive_in_time_or_not_at_all(serve_models: Callable[..., Any]) -> None:
    head = b"POST " + CHAT.encode() + b" HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    slow = [
        [head + b"content-length: 100\r\n\r\n{"],
        [head, *[b"x-a: b\r\n"] * 12],
        [b"\r\n"] * 12,
    ]

    async def go() -> None:
        async with serve_models(m=says("Hello"), settings={"limits": GatewayLimits(reading=100)}) as running:
            for pieces in slow:
                with held_time() as clock:
                    client = await connected(running.url)
                    for piece in pieces:
                        client.transport.write(piece)
                        clock.now += 10
                        await asyncio.sleep(0)
                    await clock.until(lambda: client.answered, step=0.02)  # noqa: B023 - called here
                    assert client.told.startswith(b"HTTP/1.1 408 ")
                    client.transport.abort()
            assert (await posted(running.url, body()))[0] == 200

    asyncio.run(go())


def test_a_head_that_is_too_large_is_refused(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello")) as running:
            line = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n"
            assert (await spoken(running.url, line + b"x-a: " + b"b" * 20_000 + b"\r\n\r\n")).startswith(
                b"HTTP/1.1 200 "
            )
            for pieces in (
                [line + b"x-a: " + b"b" * 64_000 + b"\r\n\r\n"],
                [line + b"x-a: " + b"b" * 30_000, b"b" * 10_000],
                [line + b"".join(b"x-%d: y\r\n" % i for i in range(5000)) + b"\r\n"],
                [b"GET /" + b"a" * 64_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n"],
                [line, *[b"x" * 9_000] * 20],
            ):
                told = await spoken(running.url, *pieces, pause=0.01)
                assert told.startswith(b"HTTP/1.1 431 "), pieces[0][:40]
                assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["message"]

    asyncio.run(go())


def test_what_is_not_plain_json_is_refused_by_its_headers(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello")) as running:
            for kind in ("application/json", "APPLICATION/JSON; charset=utf-8", "application/vnd.api+json"):
                assert (await posted(running.url, body(), content_type=kind))[0] == 200, kind
            for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json"):
                status, told = await posted(running.url, body(), content_type=kind)
                assert status == 415, kind
                assert "Content-Type: application/json" in told["error"]["message"]
            for coding in ("gzip", "deflate", "br", "gzip, identity", "GZIP"):
                status, told = await posted(running.url, gzip.compress(body()), content_encoding=coding)
                assert (status, told["error"]["code"]) == (415, "unsupported_media_type"), coding
            raw = body()
            head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(raw)}\r\n"
            assert (await spoken(running.url, head.encode() + b"\r\n" + raw)).startswith(b"HTTP/1.1 415 ")

    asyncio.run(go())


# ------------------------------------------------------------------ JSON


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "Expecting value"),
        (b"{", "line 1, column 2"),
        (b"[]", "expected an object"),
        (b'"text"', "expected an object"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e400}', "too large"),
        (b'{"a": -1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number with too many digits"),
        (b'{"a": "\xff"}', "not UTF-8 (byte 0xff"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", "nests deeper than 64"),
        (b'{"a": ' + b"[" * 700_000, "nests deeper than 64"),
        (b'{"a": ' + b"[" * 5_000_000, "more than 800,000 values"),
        (b'{"a":' * 190_000, "nests deeper than 64"),
        (b'{"a":' * 700_000, "more than 200,000 object keys"),
        (b'{"a": {' + b'"b":1,' * 200_001 + b'"b":1}}', "more than 200,000 object keys"),
        (b'{"a": [' + b"1," * 1_100_000 + b"1]}", "more than 800,000 values"),
        (b'{"a": [' + b"[]," * 1_100_000 + b"1]}", "more than 800,000 values"),
        (b'{"a": "' + b'\\"' * 2_000_000 + b"," * 2_000_000, "Unterminated string"),
        (b'{"a": ' + b'"\\' * 2_000_000 + b"," * 2_000_000, "invalid JSON body: Invalid"),
    ],
)
def test_json_that_is_none_or_too_much_is_told_soon(raw: bytes, said: str) -> None:
    assert said in refused(raw)
    assert costs_at_most(8, lambda: refused(raw), plain(len(raw)))


def test_what_json_leaves_open_is_settled() -> None:
    assert parse_body(b'{"a": 1, "a": 2}', GatewayLimits()) == {"a": 2}
    assert parse_body(b'\xef\xbb\xbf{"a": 1.5e3}', GatewayLimits()) == {"a": 1500.0}
    assert parse_body(b'{"a": "\\ud800 \\ud83d\\ude00 \\\\ud800"}', GatewayLimits()) == {"a": "\ufffd 😀 \\ud800"}
    assert parse_body(b'{"\\udfff": 1}', GatewayLimits()) == {"\ufffd": 1}
    marks = "," * 1_500_000 + ":" * 1_500_000  # in a text they are no values, and name none
    assert parse_body(json.dumps({"a": marks}).encode(), GatewayLimits()) == {"a": marks}


# ------------------------------------------------------------------ numbers


def numbers(schema: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Every place in a body's schema that takes a number."""
    if not isinstance(schema, dict):
        return
    kinds = schema.get("type", ())
    if {"integer", "number"} & set([kinds] if isinstance(kinds, str) else kinds):
        yield path, schema
    for word in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(word, ()):
            yield from numbers(inner, path)
    for name, inner in schema.get("properties", {}).items():
        yield from numbers(inner, (*path, name))
    yield from numbers(schema.get("items"), (*path, 0))
    yield from numbers(schema.get("additionalProperties"), (*path, "any"))


PLACES = [(path, place, schema) for path, whole in BODIES.items() for place, schema in numbers(whole)]


@pytest.mark.parametrize(
    ("path", "place", "schema"), PLACES, ids=[f"{p}:{'.'.join(map(str, w))}" for p, w, _ in PLACES]
)
def test_every_number_has_bounds(path: str, place: tuple[str | int, ...], schema: dict[str, Any]) -> None:
    assert "minimum" in schema or "exclusiveMinimum" in schema
    assert "maximum" in schema
    for value in (2**63, -(2**63), 2**64, -(2**63) - 1, 10**300, 10**4000):
        if schema.get("minimum", 0) <= value <= schema["maximum"]:
            continue
        wanted: Any = value
        for part in reversed(place):
            wanted = [wanted] if isinstance(part, int) else {part: wanted}
        with pytest.raises(Refused) as caught:
            check_body(
                {"model": "m", "messages": MESSAGES, "input": "Hi", "prompt": "Hi", "max_tokens": 5, **wanted},
                BODIES[path],
            )
        assert (caught.value.param or "").split(".")[0] == str(place[0])


# ------------------------------------------------------------------ schemas


def doubled(levels: int, word: str = "anyOf") -> dict[str, Any]:
    defs: dict[str, Any] = {"a0": {"type": "string"}}
    for level in range(1, levels):
        defs[f"a{level}"] = {word: [{"$ref": f"#/$defs/a{level - 1}"}] * 2}
    return {"type": "object", "$defs": defs, "properties": {"x": {"$ref": f"#/$defs/a{levels - 1}"}}}


def chained(length: int) -> dict[str, Any]:
    defs: dict[str, Any] = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(length)}
    return {"$defs": {**defs, f"a{length}": {}}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "http://127.0.0.1:1/schema.json"}, "points outside the schema"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "points outside the schema"),
        ({"properties": {"a": {"items": {"$dynamicRef": "#n"}}}}, "points outside the schema"),
        (doubled(40), "too many nested alternatives"),
        (doubled(40, "allOf"), "too many nested alternatives"),
        (doubled(40, "oneOf"), "too many nested alternatives"),
        (chained(500), "references follow one another"),
        ({"description": "x" * 300_000}, "larger than 262,144 bytes"),
    ],
    ids=range(8),
)
def test_hostile_schemas_are_refused_soon(schema: dict[str, Any], said: str, serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello")) as running:
            function = {"name": "f", "parameters": {"type": "object", **schema}}
            format_ = {"type": "json_schema", "json_schema": {"name": "f", "schema": schema}}
            for raw in (body(tools=[{"type": "function", "function": function}]), body(response_format=format_)):
                assert await cost_in_plain_requests(running.url, raw) <= DEAR
                status, told = await posted(running.url, raw)
                assert (status, told["error"]["code"]) == (400, "invalid_schema")
                assert said in told["error"]["message"]

    asyncio.run(go())


@pytest.mark.parametrize(
    ("pattern", "tools", "why"),
    [
        ("([^a]{ 50 }){ 50 }", 1, "its patterns take about"),
        ("(?x)(abc){1 000}", 1, "has the flag x"),
        ("(?i-s:(?x:a #)\n)){9}", 1, "has the flag x"),
        ("([^a]{50}){30}", 20, "the patterns of all tools together take more than 200 MB"),
    ],
)
def test_patterns_that_take_long_to_compile_are_refused_soon(
    pattern: str, tools: int, why: str, serve_models: Callable[..., Any]
) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello")) as running:
            schema = [
                {"type": "object", "properties": {f"p{i}": {"pattern": f"{pattern}q{tool}x{i}"} for i in range(5)}}
                for tool in range(tools)
            ]
            raw = body(tools=[{"type": "function", "function": {"name": f"f{i}", "parameters": one}} for i, one in enumerate(schema)])  # fmt: skip
            assert await cost_in_plain_requests(running.url, raw) <= DEAR
            status, answer = await posted(running.url, raw)
            assert (status, answer["error"]["code"]) == (400, "invalid_schema" if tools > 1 else "invalid_tool")
            assert why in answer["error"]["message"]

    asyncio.run(go())


@pytest.mark.parametrize(
    ("schema", "argument"),
    [
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 50_000 + "!"),
        ({"type": "string", "pattern": "^(?=(a+)+$)"}, "a" * 50_000 + "!"),
        ({"type": "array", "uniqueItems": True}, [{"a": i} for i in range(4000)]),
        ({"$ref": "#"}, {"x": {}}),
        (doubled(12), "x"),
        ({"type": "integer", "maximum": 5}, 10**4000),
        ({"type": "string", "pattern": "(a{1000}){1000}"}, "a"),
        ({"type": "string", "pattern": "["}, "a"),
        ({"type": 5}, "a"),
        ({"$ref": "#/$defs/none"}, "a"),
        ({"enum": []}, "a"),
        ({"multipleOf": 1e-300}, 5),
        ({"required": "x"}, "a"),
    ],
    ids=range(13),
)
def test_hostile_schemas_cost_little_and_are_no_error_of_ours(
    schema: dict[str, Any], argument: Any, serve_models: Callable[..., Any]
) -> None:
    async def go() -> None:
        call = json.dumps({"tool": "f", "tool_input": {"x": argument}})
        async with serve_models(m=says(call)) as running:
            inner = {**schema, "$defs": schema.get("$defs", {})} if "$defs" in schema else schema
            function = {"name": "f", "parameters": {"type": "object", "properties": {"x": inner}}}
            raw = body(tools=[{"type": "function", "function": function}])
            assert await cost_in_plain_requests(running.url, raw) <= DEAR
            status, told = await posted(running.url, raw)
            assert status in (200, 400, 502), told
            format_ = {"type": "json_schema", "json_schema": {"name": "f", "schema": schema}}
            raw = body(response_format=format_)
            assert await cost_in_plain_requests(running.url, raw) <= DEAR
            status, told = await posted(running.url, raw)
            assert status in (200, 400, 502), told

    asyncio.run(go())


def test_all_schemas_together_are_bounded_too(serve_models: Callable[..., Any]) -> None:
    async def go() -> None:
        async with serve_models(m=says("Hello")) as running:
            tools = [
                {
                    "type": "function",
                    "function": {"name": f"f{i}", "parameters": {"type": "object", "description": "x" * 200_000}},
                }
                for i in range(42)
            ]
            status, told = await posted(running.url, body(tools=tools))
            assert (status, told["error"]["code"]) == (400, "invalid_schema")
            assert "together" in told["error"]["message"]

    asyncio.run(go())


def test_schemas_of_real_tools_pass() -> None:
    tree = {
        "type": "object",
        "$defs": {"node": {"properties": {"left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}}}},
        "properties": {"root": {"$ref": "#/$defs/node"}, "any": {"anyOf": [{"type": t} for t in ("string", "null")]}},
    }
    assert check_schema(tree, "tools.0", GatewayLimits()) == len(json.dumps(tree))
    assert check_schema(None, "tools.0", GatewayLimits()) == 0
    named = {"type": "object", "properties": {"$ref": {"type": "string"}, "anyOf": {"type": "array"}}}
    check_schema(named, "tools.0", GatewayLimits())  # properties of these names are no keywords


# ------------------------------------------------------------------ what is wrong is found without looking at all of it


MANY_WRONG: dict[str, tuple[str, Callable[[], dict[str, Any]], str]] = {
    "messages": (CHAT, lambda: {"messages": [{"role": 1}] * 300_000}, "messages.0.role: expected one of"),
    "late": (CHAT, lambda: {"messages": [*MESSAGES * 700, {"role": "user", "content": [{"type": "text", "text": ""}] * 30 + [{"type": 1}]}]},
             "messages.700.content.30.type: expected string (at most 64 characters long), got 1"),
    "too many": (CHAT, lambda: {"messages": MESSAGES * 20_000}, "messages: expected at most 10,000 items, got 20,000"),
    "tools": (CHAT, lambda: {"messages": MESSAGES, "tools": [{"type": "function"}] * 320_000}, "tools: expected at most 10,000 items, got 320,000"),
    "stop": (CHAT, lambda: {"messages": MESSAGES, "stop": [1] * 300_000}, "stop.0: expected string (at least 1 character long, at most 1024 characters long), got 1"),
    "biases": (CHAT, lambda: {"messages": MESSAGES, "logit_bias": {str(i): "x" for i in range(300_000)}}, "logit_bias.0: expected number"),
    "items": ("/v1/responses", lambda: {"input": [{"type": 1}] * 300_000}, "input.0.type: expected"),
    "blocks": ("/v1/messages", lambda: {"max_tokens": 1, "messages": [{"role": "user", "content": [{"a": 1}] * 300_000}]},
               "messages.0.content.0.type: expected a value, got nothing"),
}  # fmt: skip


@pytest.mark.parametrize("name", MANY_WRONG)
def test_what_is_wrong_first_is_found_in_few_looks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work, not time: how many values the errors that are made are about, and how often the body is judged."""
    path, sent, wanted = MANY_WRONG[name]
    looks, seen = 0, 0
    real = first_schema_error.judge(BODIES[path])

    def right(value: Any) -> bool:
        nonlocal looks
        looks += 1
        return real.is_valid(value)

    def told(tool: Any, value: Any) -> Any:
        nonlocal seen
        seen = len(json.dumps(value))
        return check(tool, value)

    monkeypatch.setattr(first_schema_error, "judge", lambda _: SimpleNamespace(is_valid=right))
    monkeypatch.setattr(first_schema_error, "check", told)
    with pytest.raises(Refused) as caught:
        check_body({"model": "m", **sent()}, BODIES[path])
    assert str(caught.value).startswith(wanted)
    assert looks < 100
    assert seen < 2000
