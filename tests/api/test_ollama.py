"""Ollama's own chat API: requests into JSON, and lines into events."""

import json
from typing import Any

import pytest

from replies import events_in
from toolspeak.api.ollama import ReplyReader, read_models, write_request
from toolspeak.errors import BadRequest, ModelError, Refused, ServerFailed, StreamCut
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from toolspeak.types import Note, Request, Tool, Usage


def lines(*payloads: Any) -> bytes:
    return "".join(json.dumps(payload, ensure_ascii=False) + "\n" for payload in payloads).encode()


def said(done: bool = False, reason: Any = "stop", **message: Any) -> dict[str, Any]:
    end = {"done_reason": reason, "prompt_eval_count": 7, "eval_count": 2} if done else {}
    return {"model": "m", "message": {"role": "assistant", "content": "", **message}, "done": done, **end}


def call(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def read(data: bytes, size: int | None = None) -> list[Event]:
    return events_in(ReplyReader(), data, size)


USED = Usage(7, 2)

STREAMS: list[tuple[str, bytes, list[Event]]] = [
    (
        "a thought and a text",
        lines(said(thinking="hm"), said(content="你"), said(content="好"), said(True)),
        [ThoughtDelta("hm"), TextDelta("你"), TextDelta("好"), Finished("stop", USED)],
    ),
    (
        "calls come whole",
        lines(
            said(tool_calls=[call("weather", {"city": "厦门"})]), said(tool_calls=[call("now", {}, id="x")]), said(True)
        ),
        [
            CallStart("weather", "call_1"),
            ArgumentsDelta('{"city": "厦门"}'),
            CallEnd(),
            CallStart("now", "x"),
            ArgumentsDelta("{}"),
            CallEnd(),
            Finished("tool_calls", USED),
        ],
    ),
    (
        "two of the same",
        lines(said(True, tool_calls=[call("now", {}), call("now", {})])),
        [
            *(CallStart("now", "call_1"), ArgumentsDelta("{}"), CallEnd()),
            *(CallStart("now", "call_2"), ArgumentsDelta("{}"), CallEnd()),
            Finished("tool_calls", USED),
        ],
    ),
    ("cut by the length", lines(said(content="x"), said(True, "length")), [TextDelta("x"), Finished("length", USED)]),
    ("no line break at the end", lines(said(True, content="x")).rstrip(), [TextDelta("x"), Finished("stop", USED)]),
    ("CRLF", lines(said(True, content="x")).replace(b"\n", b"\r\n"), [TextDelta("x"), Finished("stop", USED)]),
    ("another reason", lines(said(True, "load")), [Noted(Note("unknown-finish", "load")), Finished("stop", USED)]),
    (
        "a reason that is no text",
        lines(said(True, ["x"])),
        [Noted(Note("unknown-finish", "['x']")), Finished("stop", USED)],
    ),
    ("nothing counts after done", lines(said(True), said(content="x")), [Finished("stop", USED)]),
]


@pytest.mark.parametrize(("data", "expected"), [case[1:] for case in STREAMS], ids=[case[0] for case in STREAMS])
def test_events_are_the_same_at_every_cut(data: bytes, expected: list[Event]) -> None:
    for size in (None, 1, 2, 3):
        assert read(data, size) == expected


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (lines(said(content="x")), StreamCut, "in the middle"),
        (b"", StreamCut, "in the middle"),
        (lines(said(content="x"))[:-9], ServerFailed, "not JSON"),
        (lines(said(content="x"), said(True))[:-9], StreamCut, "in the middle"),
        (
            lines(said(content="x"), {"error": "an error was encountered while running the model"}),
            ServerFailed,
            "while running",
        ),
        (lines({"error": "registry/x does not support tools"}), BadRequest, "support tools"),
        (b"<html>\n<title>Login</title>", ServerFailed, "web page .*Login"),
    ],
)
def test_what_is_no_reply_is_an_error(data: bytes, kind: type[ModelError], words: str) -> None:
    with pytest.raises(kind, match=words):
        read(data)


def test_a_request_with_everything() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    calls = [
        {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "厦门"}'}},
        {"id": "b", "type": "function", "function": {"name": "now", "arguments": ""}},
        {"id": "c", "type": "function", "function": {"name": "bad", "arguments": "{bro"}},
    ]
    request = Request(
        [
            {"role": "developer", "content": "be brief"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "what is "}, image, {"type": "text", "text": "this?"}],
            },
            {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "35"},
        ],
        (Tool("weather"), Tool("now")),
        max_tokens=9,
        temperature=0.0,
        seed=7,
        stop=("END",),
        schema={"type": "object"},
    )
    body = write_request(request, "m")
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "what is this?", "images": ["AAAA"]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [
                {"function": {"name": "weather", "arguments": {"city": "厦门"}}},
                {"function": {"name": "now", "arguments": {}}},
                {"function": {"name": "bad", "arguments": {"arguments": "{bro"}}},
            ],
        },
        {"role": "tool", "content": "35", "tool_name": "weather"},
    ]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["weather", "now"]
    assert body["format"] == {"type": "object"}
    assert body["options"] == {"num_predict": 9, "temperature": 0.0, "seed": 7, "stop": ["END"]}
    assert (body["model"], body["stream"]) == ("m", True)


def test_the_choice_of_tools_is_made_by_what_is_offered() -> None:
    tools = (Tool("weather"), Tool("now"))
    assert "tools" not in write_request(Request(tools=tools, choice="none"), "m")
    assert len(write_request(Request(tools=tools, choice="required"), "m")["tools"]) == 2
    (one,) = write_request(Request(tools=tools, choice="now"), "m")["tools"]
    assert one["function"]["name"] == "now"
    assert write_request(Request([{"role": "user", "content": "hi"}]), "m") == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
    }


def test_settings_have_their_own_names() -> None:
    sampling = {"top_p": 0.5, "top_k": 3, "min_p": 0.1, "repetition_penalty": 1.2, "presence_penalty": 1}
    body = write_request(Request(sampling=sampling, thinking=False), "m")
    assert body["options"] == {
        "top_p": 0.5, "top_k": 3, "min_p": 0.1, "repeat_penalty": 1.2, "presence_penalty": 1,
    }  # fmt: skip
    assert body["think"] is False
    assert "think" not in write_request(Request(), "m")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}},
        {"type": "image_url"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ],
)
def test_what_ollama_cannot_be_shown_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="Ollama takes"):
        write_request(Request([{"role": "user", "content": [{"type": "text", "text": "see"}, part]}]), "m")


def test_the_models_there_are() -> None:
    assert read_models({"models": [{"name": "gemma3:latest", "model": "x"}, {"model": "y"}, {}]}) == [
        "gemma3:latest",
        "y",
    ]
    assert read_models({}) == []
