"""Raw completions, both directions: what is written is read again, and what servers really send is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from properties import property_test
from toolspeak.api.completions import (
    BODY,
    ReplyReader,
    ReplyWriter,
    read_request,
    write_reply,
    write_request,
)
from toolspeak.api.incoming import IncomingRequest, Stamp
from toolspeak.errors import Refused, StreamCut, UsageError
from toolspeak.events import CallStart, Event, Finished, Logprobs, TextDelta, ThoughtDelta
from toolspeak.schema.validators import judge
from toolspeak.types import Note, Reply, Request, Usage
from toolspeak.wire.reading.collect import collect

STAMP = Stamp("7", 1_700_000_000, "m")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SHARE = st.floats(0, 1)


def tokens(texts: list[str], tops: int) -> list[dict[str, Any]]:
    def token(text: str, value: float) -> dict[str, Any]:
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    return [
        {**token(text, -float(at)), "top_logprobs": [token(f"{text}{i}", -float(i) - 1) for i in range(tops)]}
        for at, text in enumerate(texts)
    ]


def asked(**fields: Any) -> IncomingRequest:
    return read_request({"model": "m", "prompt": "Once", **fields})


def written(events: list[Event], how: IncomingRequest) -> bytes:
    writer = ReplyWriter(how, STAMP)
    return writer.begin() + b"".join(writer.feed(event) for event in events) + writer.close()


def read(data: bytes, size: int = 1 << 20) -> list[Event]:
    reader = ReplyReader()
    events = [event for i in range(0, len(data), size) for event in reader.feed(data[i : i + size])]
    return events + reader.close()


REQUESTS = st.builds(
    Request,
    prompt=TEXT,
    max_tokens=st.integers(1, 10_000_000),
    temperature=st.none() | st.floats(0, 2),
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
    stop=st.lists(TEXT.filter(bool), max_size=4).map(tuple),
    logprobs=st.none() | st.integers(0, 20),
    sampling=st.fixed_dictionaries({}, optional={"top_p": SHARE, "min_p": SHARE, "top_k": st.integers(-1, 100)}),
)


@property_test(100, REQUESTS)
def test_a_request_is_read_as_it_was_written(request: Request) -> None:
    body = json.loads(json.dumps(write_request(request, "org/m:1")))
    assert judge(BODY).is_valid(body)
    got = read_request(body)
    assert got.request == request
    assert (got.model, got.stream, got.usage, got.n, got.ignored) == ("org/m:1", True, True, 1, ())


@property_test(
    100,
    st.lists(
        st.builds(
            lambda texts, tops: (texts, tops), st.lists(TEXT.filter(bool), min_size=1, max_size=3), st.integers(0, 3)
        )
    ),
    st.sampled_from(["stop", "length", "content_filter"]),
    st.integers(1, 60),
)
def test_a_stream_is_read_as_it_was_written(pieces: list[tuple[list[str], int]], finish: Any, size: int) -> None:
    events: list[Event] = []
    for texts, tops in pieces:
        events += [Logprobs(tokens(texts, tops)), TextDelta("".join(texts))]
    events.append(Finished(finish, Usage(3, 4, 1)))
    data = written(events, asked(stream=True, stream_options={"include_usage": True}))
    assert read(data, size) == events


@property_test(100, TEXT, st.sampled_from(["stop", "length", "content_filter"]), st.integers(0, 2))
def test_a_body_is_read_as_it_was_written(text: str, finish: Any, tops: int) -> None:
    told = tuple(tokens([text], tops)) if text else ()
    reply = Reply(text, finish=finish, usage=Usage(3, 4), logprobs=told)
    body = json.dumps(write_reply([reply], asked(), STAMP)).encode()
    got = collect(read(body, 7))
    assert (got.text, got.finish, got.usage, got.logprobs) == (text, finish, reply.usage, told)


def test_likelihoods_stand_where_their_tokens_do() -> None:
    events: list[Event] = [TextDelta("ab"), Logprobs(tokens(["cd", "e"], 0)), TextDelta("cde"), Finished("stop")]
    rows = [
        json.loads(line[6:]) for line in written(events, asked()).decode().split("\n\n") if line.startswith("data: {")
    ]
    told = [row["choices"][0]["logprobs"] for row in rows]
    assert told[0] is None
    assert told[1] == {
        "tokens": ["cd", "e"],
        "token_logprobs": [0.0, -1.0],
        "top_logprobs": None,
        "text_offset": [2, 4],
    }


def test_likelihoods_that_come_after_their_text_are_not_lost() -> None:
    events: list[Event] = [TextDelta("a"), Logprobs(tokens(["b"], 0)), Finished("stop")]
    assert Logprobs(tokens(["b"], 0)) in read(written(events, asked()))


def test_several_prompts_are_answered_in_turn() -> None:
    how = asked(prompt=["A", "B"], echo=True)
    assert [request.prompt for request in how.requests] == ["A", "B"]
    body = write_reply([Reply("0"), Reply("1")], how, STAMP)
    assert [(row["index"], row["text"]) for row in body["choices"]] == [(0, "A0"), (1, "B1")]
    writer = ReplyWriter(how, STAMP)
    chunks = [json.loads(line[6:]) for line in writer.begin().decode().split("\n\n") if line]
    assert [chunk["choices"][0]["text"] for chunk in chunks] == ["A", "B"]


def test_several_replies_to_one_prompt() -> None:
    how = asked(n=2)
    assert [request.prompt for request in how.requests] == ["Once", "Once"]


def test_what_was_repaired_is_told() -> None:
    body = write_reply([Reply("x", notes=(Note("re-asked", "why"),))], asked(), STAMP)
    assert body["choices"][0]["toolspeak"] == {"notes": [{"rule": "re-asked", "detail": "why"}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"echo": True, "logprobs": 0}, "logprobs"),
        ({"prompt": ["a", "b"], "n": 2}, "n"),
    ],
)
def test_what_cannot_be_done_is_refused(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(Refused) as refused:
        asked(**fields)
    assert (refused.value.status, refused.value.param) == (400, param)


@pytest.mark.parametrize("prompt", [None, 7, [], [1, 2], [[1, 2]], ["a"] * 9, ["a", 1], {}])
def test_only_texts_are_prompts(prompt: Any) -> None:
    assert not judge(BODY).is_valid({"model": "m", "prompt": prompt})


@pytest.mark.parametrize("fields", [{"n": 9}, {"logprobs": True}, {"max_tokens": 0}])
def test_what_does_not_fit_the_schema(fields: dict[str, Any]) -> None:
    assert not judge(BODY).is_valid({"model": "m", "prompt": "x", **fields})


def test_what_says_nothing_here_is_named() -> None:
    assert asked(user="me", suffix="", best_of=1).ignored == ("user",)


def test_messages_are_not_a_prompt() -> None:
    with pytest.raises(UsageError, match="render them first"):
        write_request(Request([{"role": "user", "content": "x"}]), "m")


def test_a_reply_that_breaks_off_is_no_reply() -> None:
    data = written([TextDelta("Hello")], asked())
    with pytest.raises(StreamCut):
        read(data.removesuffix(b"data: [DONE]\n\n"))


def test_likelihoods_of_other_shapes_are_read_as_far_as_they_go() -> None:
    chat = {"content": tokens(["a"], 1)}
    for logprobs, expected in [
        (chat, chat["content"]),
        (
            {"tokens": ["a", 7, "b"], "token_logprobs": [None, -1, -0.5]},
            [{"token": "b", "logprob": -0.5, "bytes": [98], "top_logprobs": []}],
        ),
        ({"tokens": "a"}, None),
        (7, None),
    ]:
        body = {"choices": [{"index": 0, "text": "x", "logprobs": logprobs, "finish_reason": "stop"}]}
        events = read(json.dumps(body).encode())
        assert [event.tokens for event in events if isinstance(event, Logprobs)] == ([expected] if expected else [])


def test_what_has_no_place_is_left_out() -> None:
    writer = ReplyWriter(asked(), STAMP)
    assert writer.feed(ThoughtDelta("hm")) == writer.feed(CallStart("f", "1")) == b""
