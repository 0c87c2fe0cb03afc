"""Recording and replaying: the same events without the model, and a diff where the request is another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import toolspeak as ts
from llama import served
from replies import calls, native
from toolspeak.events import Event, Logprobs
from toolspeak.models.recording import FileTape, Recorder
from toolspeak.models.replay import Replay, read
from toolspeak.models.request_diff import diff
from toolspeak.types import Message, Note, Request, Usage

QUESTION = "What is the weather in Xiamen?"
KEY = "sk-real-0123456789abcdef"


def weather(city: str) -> str:
    """Get the current weather in a city."""
    return f"Sunny in {city}, 21 °C"


LINE = '{"version": 1, "model": {}, "now": "2026-01-01T00:00:00+00:00", "request": %s, "events": []}'


def asked(text: str, **more: Any) -> Request:
    return Request([{"role": "user", "content": text}], **more)


async def events_of(model: ts.Model, request: Request) -> list[Event]:
    return [event async for event in model.stream(request)]


def every(model: ts.Model, *requests: Request) -> list[list[Event]]:
    async def main() -> list[list[Event]]:
        return [await events_of(model, request) for request in requests]

    return asyncio.run(main())


# ------------------------------------------------------------------ the same events


@pytest.mark.costly
def test_a_run_against_a_real_server_and_again_without_it(tmp_path: Path) -> None:
    server = served(KEY, 1024)
    model = ts.record(ts.model(f"{server.listening_address}#smollm", key=KEY), tmp_path / "run.jsonl")
    before = list(ts.stream(QUESTION, tools=[weather], model=model, max_tokens=8, temperature=0.0, limits={"steps": 1}))
    said = list(ts.stream("Say hello.", model=model, max_tokens=12, temperature=0.0))
    del server

    replayed = ts.replay(tmp_path / "run.jsonl")
    assert (
        list(ts.stream(QUESTION, tools=[weather], model=replayed, max_tokens=8, temperature=0.0, limits={"steps": 1}))
        == before
    )
    assert list(ts.stream("Say hello.", model=replayed, max_tokens=12, temperature=0.0)) == said
    assert sum(isinstance(event, ts.TextDelta) for event in said) > 2  # piece by piece, as it came
    assert KEY not in (tmp_path / "run.jsonl").read_text("utf-8")
    with pytest.raises(ts.NotRecorded, match="Say hello"):
        ts.run("Say hullo.", model=replayed, max_tokens=12, temperature=0.0)


def test_the_embedded_model_that_is_scored(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    before = ts.decide(QUESTION, tools=[weather], model=ts.record("local", tmp_path / "local.jsonl"))
    replayed = ts.replay(tmp_path / "local.jsonl")
    assert "scored" in replayed.capabilities
    again = ts.decide(QUESTION, tools=[weather], model=replayed)
    assert (again, replayed.name) == (before, "local")
    assert again.calls[0].arguments == {"city": "Xiamen"}


def test_every_kind_of_event(tmp_path: Path) -> None:
    reply: list[Event] = [
        ts.ThoughtDelta("hm"),
        ts.ThoughtDelta("m"),
        ts.TextDelta("Let "),
        ts.TextDelta("me"),
        ts.TextDelta(""),
        Logprobs([{"token": "me", "logprob": -0.5}]),
        ts.CallStart("weather", "w9"),
        ts.ArgumentsDelta('{"city"'),
        ts.ArgumentsDelta(': "Xiamen \ud800"}'),
        ts.CallEnd(),
        ts.CallStart("weather", ""),
        ts.CallEnd(whole=False, id="late"),
        ts.Noted(Note("repaired", "a comma", 3)),
        ts.Finished("tool_calls", Usage(3, 4, cached_tokens=1, estimated=True)),
    ]
    path = tmp_path / "all.jsonl"
    assert every(ts.record(native(reply), path), asked("Hi")) == [reply]
    assert every(ts.replay(path), asked("Hi")) == [reply]


def test_equal_requests_get_their_answers_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    model = ts.record(ts.Scripted(["one", "two", "three"]), path)
    assert [ts.generate(model, "Next?") for _ in range(2)] == ["one", "two"]
    assert ts.generate(model, "And?") == "three"
    replayed = ts.replay(path)
    assert ts.generate(replayed, "And?") == "three"
    assert [ts.generate(replayed, "Next?") for _ in range(3)] == ["one", "two", "two"]


def test_requests_at_once_are_kept_apart(tmp_path: Path) -> None:
    """Replies that end in another order than they began: each belongs to its request, and equal ones to their turn."""
    gates: list[asyncio.Event] = []

    class Held(ts.Scripted):
        async def stream(self, request: Request) -> AsyncIterator[Event]:
            gates.append(asyncio.Event())
            mine = len(gates)
            yield ts.TextDelta(f"{request.messages[-1].get('content')} {mine}")
            await gates[mine - 1].wait()
            yield ts.Finished()

    async def both(model: ts.Model) -> list[list[Event]]:
        tasks: list[asyncio.Task[list[Event]]] = []
        for text in ("a", "b", "a"):
            tasks.append(asyncio.create_task(events_of(model, asked(text))))
            while len(gates) < len(tasks):
                await asyncio.sleep(0)
        for gate in reversed(gates):
            gate.set()
            await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks))

    path = tmp_path / "once.jsonl"
    before = asyncio.run(both(Recorder(Held([], capabilities=["tools"]), FileTape(path))))
    assert [row[0] for row in before] == [ts.TextDelta(text) for text in ("a 1", "b 2", "a 3")]
    assert every(ts.replay(path), asked("a"), asked("a"), asked("b")) == [before[0], before[2], before[1]]


# ------------------------------------------------------------------ errors, and replies that were left


def test_an_error_is_the_same_error(tmp_path: Path) -> None:
    path = tmp_path / "errors.jsonl"
    limited = ts.RateLimited("too many", retry_after=2.5)
    limited.reason = "too many"
    failing = ts.record(
        ts.Scripted([limited, ts.PromptTooLong("long", tokens=9, limit=4)], capabilities=["tools"]), path
    )
    for kind in (ts.RateLimited, ts.PromptTooLong):
        with pytest.raises(kind):
            every(failing, asked("Ho"))
    replayed = ts.replay(path)
    with pytest.raises(ts.RateLimited) as first:
        every(replayed, asked("Ho"))
    assert str(first.value) == f"too many (replayed from {path}, line 1)"
    assert (first.value.retry_after, first.value.reason) == (2.5, "too many")
    with pytest.raises(ts.PromptTooLong) as second:
        every(replayed, asked("Ho"))
    assert (second.value.tokens, second.value.limit) == (9, 4)


def test_a_reply_that_breaks_off_over_http(tmp_path: Path, serve: Callable[..., Any]) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"index":0,"delta":{"content":"Sun"}}]}\n\n')
        assert request.transport is not None
        request.transport.abort()
        return response

    async def main() -> tuple[str, str]:
        async with serve(cut) as server:
            model = ts.record(ts.model(f"{server.url}/v1#m", look=False), tmp_path / "cut.jsonl")
            with pytest.raises(ts.StreamCut) as before:
                await ts.arun("Weather?", model=model)
        with pytest.raises(ts.StreamCut) as after:
            await ts.arun("Weather?", model=ts.replay(tmp_path / "cut.jsonl"))
        assert after.value.text == before.value.text == "Sun"
        return str(before.value), str(after.value)

    before, after = asyncio.run(main())
    assert after.startswith(before)
    assert after.endswith("cut.jsonl, line 1)")


def test_a_reply_that_was_left_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "left.jsonl"
    stream = ts.stream("Tell me all.", model=ts.record(ts.Scripted(["a long story"]), path))
    first = next(iter(stream))
    stream.close()  # type: ignore[attr-defined]
    (exchange,) = read(path)
    assert exchange.cut
    assert not any(isinstance(event, ts.Finished) for event in exchange.events)
    replayed = ts.stream("Tell me all.", model=ts.replay(path))
    assert next(iter(replayed)) == first  # who leaves again is served
    with pytest.raises(ts.StreamCut, match="because its consumer stopped"):
        list(replayed)


# ------------------------------------------------------------------ what a request is known by


def test_ids_and_defaults_do_not_count(tmp_path: Path) -> None:
    def conversation(name: str) -> list[Message]:
        call = {"id": name, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        return [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": name, "content": "Sunny"},
        ]

    path = tmp_path / "ids.jsonl"
    every(ts.record(native(calls(text="Sunny.")), path), Request(conversation("call_9f")))
    again = Request(conversation("toolu_01"), tools=(), choice="auto", whole=True)
    assert every(ts.replay(path), again) == [calls(text="Sunny.")]


def test_a_changed_request_fails_with_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "diff.jsonl"
    model = ts.record(native(calls(("weather", {"city": "Oslo"})), calls(text="Hello.")), path)
    ts.decide("In Oslo?\nBe brief.", system="You are kind.", tools=[weather], model=model, temperature=0.0)
    ts.decide("Hello", model=model)

    def changed(city: str, days: int = 1) -> str:
        """Get the weather in a city."""
        return ""

    changed.__name__ = "weather"
    with pytest.raises(ts.NotRecorded) as caught:
        ts.decide(
            "In Oslo?\nBe very brief.",
            system="You are kind.",
            tools=[changed],
            model=ts.replay(path),
            temperature=0.5,
        )
    lines = caught.value.diff.splitlines()
    for line in (
        "-user: Be brief.",
        "+user: Be very brief.",
        "-tool weather: Get the current weather in a city.",
        "+tool weather: Get the weather in a city.",
        "-temperature: 0.0",
        "+temperature: 0.5",
        " user: In Oslo?",
    ):
        assert line in lines
    assert "nearest of its 2 is number 1" in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("one\r\ntwo", "one\ntwo", [r"-user: one\r", "+user: one", " user: two"]),
        ("ab", "a\u200bb", ["-user: ab", r"+user: a\u200bb"]),
        ("caf\u00e9", "cafe\u0301", ["-user: caf\u00e9", r"+user: cafe\u0301"]),
        ("a", "a ", ["-user: a", r"+user: a\x20"]),
        ("a", "a\n", [" user: a", "+user:"]),
    ],
)
def test_a_diff_shows_what_cannot_be_seen(tmp_path: Path, before: str, after: str, shown: list[str]) -> None:
    path = tmp_path / "unseen.jsonl"
    every(ts.record(native([ts.Finished()]), path), asked(before))
    with pytest.raises(ts.NotRecorded) as caught:
        every(ts.replay(path), asked(after))
    assert caught.value.diff.splitlines() == shown


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"tools": [{"name": "f", "strict": True}]}, {"tools": [{"name": "f"}]}),
        ({"sampling": "5"}, {"sampling": 5}),
        ({"system": "x\n" * 9_000}, {"system": "x\n" * 9_000 + "y"}),
    ],
)
def test_a_diff_is_never_empty(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert diff(before, after)


def test_a_diff_of_a_long_line_shows_what_is_around_the_change() -> None:
    def one(word: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": f"Begin {'alpha ' * 900}{word} {'omega ' * 900}end."}]}

    minus, plus = diff(one("cat"), one("dog")).splitlines()
    for line, word in ((minus, "-user: Begin alpha"), (plus, "+user: Begin alpha")):
        assert line.startswith(word)
        assert line.endswith("omega end.")
        assert line.count(" … ") == 2
        assert len(line) < 240
    assert "alpha cat omega" in minus
    assert "alpha dog omega" in plus


def test_a_message_says_how_much_of_a_diff_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    every(ts.record(native([ts.Finished()]), path), asked("Hi"))
    with pytest.raises(ts.NotRecorded) as caught:
        every(ts.replay(path), asked("\n".join(f"line {n}" for n in range(1000))))
    assert "\n+user: line 99\n" in str(caught.value)
    assert "lines more, in the error's `diff`\nIf the change is intended" in str(caught.value)
    assert len(caught.value.diff.splitlines()) == 1001


def test_the_time_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "time.jsonl"
    model = ts.record(ts.Scripted(["Monday", "late"]), path)
    ts.generate(model, f"Today is {model.now}. Which day is it?")
    ts.generate(model, "And now?")
    replayed = ts.replay(path)
    assert isinstance(replayed.now, datetime)
    assert ts.generate(replayed, f"Today is {replayed.now}. Which day is it?") == "Monday"
    added = ts.record(ts.Scripted(["never asked"]), path, mode="new")
    assert ts.generate(added, f"Today is {added.now}. Which day is it?") == "Monday"


# ------------------------------------------------------------------ secrets


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("ask https://me:pass@host/x", "ask https://[hidden]@host/x"),
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [hidden]"),
        ('{"x-api-key": "0123456789"}', '{"x-api-key": "[hidden]"}'),
        ("use sk-proj-abcdefghijklmnop now", "use [hidden] now"),
        ("Basic understanding, a bearer of news, mail me@host", "Basic understanding, a bearer of news, mail me@host"),
    ],
)
def test_secrets_are_left_out(tmp_path: Path, text: str, clean: str) -> None:
    path = tmp_path / "secrets.jsonl"
    reply = [ts.TextDelta(piece) for piece in (text[: len(text) // 2], text[len(text) // 2 :])]
    model = ts.record(native([*reply, ts.Finished()]), path)
    ts.run(text, model=model, extra_body={"api_key": "hush", "note": text})
    row = json.loads(path.read_text("utf-8"))
    assert row["request"]["messages"][0]["content"] == clean
    assert row["request"]["sampling"] == {"api_key": "[hidden]", "note": clean}
    assert "".join(row["events"][0]["text"]) == clean
    assert ts.run(text, model=ts.replay(path), extra_body={"api_key": "hush", "note": text}).text == clean


def test_the_servers_own_key_is_left_out(tmp_path: Path, serve: Callable[..., Any]) -> None:
    secret = "open-sesame-of-mine"  # of no known form
    body = b'data: {"choices":[{"delta":{"content":"It is open-sesame-of-mine."}}]}\n\ndata: [DONE]\n\n'

    async def main() -> None:
        async with serve(body) as server:
            address = server.url.replace("://", f"://me:{secret}@")
            model = ts.record(ts.model(f"{address}/v1#m", look=False), tmp_path / "key.jsonl")
            await ts.arun(f"My key is {secret}. What is my key?", model=model)

    asyncio.run(main())
    text = (tmp_path / "key.jsonl").read_text("utf-8")
    assert secret not in text
    assert "[hidden]" in text


# ------------------------------------------------------------------ modes, files


def test_modes(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "modes.jsonl"
    with pytest.raises(ts.UsageError, match="there is no recording"):
        ts.record(ts.Scripted(["x"]), path, mode="none")
    assert ts.generate(ts.record(ts.Scripted(["first"]), path, mode="once"), "Hi") == "first"
    assert ts.generate(ts.record(ts.Scripted(["second"]), path, mode="once"), "Hi") == "first"
    added = ts.record(ts.Scripted(["new"]), path, mode="new")
    assert [ts.generate(added, text) for text in ("Hi", "Ho")] == ["first", "new"]
    assert [ts.generate(ts.replay(path), text) for text in ("Ho", "Hi")] == ["new", "first"]
    assert ts.generate(ts.record(ts.Scripted(["anew"]), path, mode="all"), "Hi") == "anew"
    assert len(read(path)) == 1
    with pytest.raises(ts.UsageError, match="mode: expected none, once, new, all"):
        ts.record(ts.Scripted(["x"]), path, mode="some")  # type: ignore[arg-type]


def test_nothing_is_lost_before_the_first_exchange(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    ts.generate(ts.record(ts.Scripted(["old"]), path), "Hi")
    ts.record(ts.Scripted(["never"]), path)
    assert ts.generate(ts.replay(path), "Hi") == "old"


def test_half_a_line_at_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "half.jsonl"
    ts.generate(ts.record(ts.Scripted(["one"]), path), "Hi")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert ts.generate(ts.replay(path), "Hi") == "one"
    (warning,) = caplog.messages
    assert warning.startswith(f"{path}, line 2: not an exchange of a recording")
    assert warning.endswith("(the file ends within this line: was it cut?); the line is ignored")
    ts.generate(ts.record(ts.Scripted(["two"]), path, mode="new"), "Ho")
    assert [one.request["messages"][0]["content"] for one in read(path)] == ["Hi", "Ho"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (LINE.encode()[:60], r"line 1.*expected JSON.*the file ends within this line: was it cut\?"),
        (b"\x89PNG\x00\xff\xfe", "line 1.*expected JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\xff", "line 1.*expected JSON"),
        ("\ufeff{}".encode("utf-16-le"), "line 1.*expected JSON in UTF-8: byte 0xff at offset 0"),
    ],
)
def test_a_file_without_a_whole_line(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(content)
    with pytest.raises(ts.UsageError, match=why):
        ts.replay(path)


def test_another_file_is_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes", "utf-8")
    with pytest.raises(ts.UsageError, match="line 1: not an exchange of a recording"):
        ts.record(ts.Scripted(["x"]), path, mode="new")
    assert path.read_text("utf-8") == "my notes"


def test_a_last_line_without_its_line_break_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "stripped.jsonl"
    ts.generate(ts.record(ts.Scripted(["one"]), path), "Hi")
    path.write_bytes(path.read_bytes().rstrip())
    assert ts.generate(ts.replay(path), "Hi") == "one"
    ts.generate(ts.record(ts.Scripted(["two"]), path, mode="new"), "Ho")
    assert [ts.generate(ts.replay(path), text) for text in ("Hi", "Ho")] == ["one", "two"]


def test_a_server_that_was_down_is_asked_again(tmp_path: Path, serve: Callable[..., Any]) -> None:
    path = tmp_path / "down.jsonl"
    body = b'data: {"choices":[{"delta":{"content":"Hello."}}]}\n\ndata: [DONE]\n\n'

    async def main() -> None:
        async with serve(body) as server:
            up = server.url
        down = ts.model(f"{up}/v1#m", look=False)
        for mode in ("once", "new"):
            with pytest.raises(ts.ModelUnreachable):
                await ts.arun("Hi", model=ts.record(down, path, mode=mode))
            assert not path.exists()
        async with serve(body) as server:
            model = ts.model(f"{server.url}/v1#m", look=False)
            assert (await ts.arun("Hi", model=ts.record(model, path, mode="once"))).text == "Hello."
        assert (await ts.arun("Hi", model=ts.record(down, path, mode="once"))).text == "Hello."

    asyncio.run(main())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("hello", "line 2: not an exchange of a recording"),
        ("{}", "expected an object with version"),
        ('{"version": 9}', "expected version 1, received 9"),
        ('{"version": 1, "model": {}}', "it lacks 'now'"),
        (
            '{"version": 1, "model": {}, "now": "2026-01-01T00:00:00+00:00", "request": {}, "events": [{"x": 1}]}',
            "no event",
        ),
        (LINE % '{"messages": ["Hi"]}', r"line 2.*request.messages\[0\]: expected an object, received \"Hi\""),
        (LINE % '{"messages": {}}', "request.messages: expected an array"),
        (LINE % '{"tools": [null]}', r"request.tools\[0\]: expected an object, received null"),
        (LINE % '{"tools": [{"parameters": 1}]}', r"request.tools\[0\].parameters: expected an object"),
        (LINE % '{"messages": [{"tool_calls": [1]}]}', r"tool_calls: expected an object, received 1"),
        (LINE % "[]", "request: expected an object"),
    ],
)
def test_a_file_that_is_no_recording(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f"\n{line}\n", "utf-8")
    with pytest.raises(ts.UsageError, match=why):
        ts.replay(path)


def test_a_model_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "named.jsonl"
    ts.run("Hi", model=ts.record("scripted:Hello.", path))
    monkeypatch.setenv("TOOLSPEAK_MODEL", f"replay:{path}")
    assert ts.run("Hi").text == "Hello."
    model = ts.model(f"replay:{path}", temperature=0.5)
    assert isinstance(model, Replay)
    assert model.name == "scripted"


def test_tokens_that_were_counted(tmp_path: Path, serve: Callable[..., Any]) -> None:
    async def tokens(request: web.Request) -> web.Response:
        return web.json_response({"tokens": [1, 2, 3]} if request.path == "/tokenize" else {"prompt": "x"})

    async def main() -> None:
        async with serve(tokens) as server:
            model = ts.record(ts.model(f"{server.url}/v1#m", look=False), tmp_path / "count.jsonl")
            before = await model.count(asked("Hi"))
        replayed = ts.replay(tmp_path / "count.jsonl")
        assert before == await replayed.count(asked("Hi")) == 3
        assert await replayed.count(asked("Ho")) is None

    asyncio.run(main())
