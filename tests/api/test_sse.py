"""Server-sent events: the standard's rules, at every cut."""

import json

import pytest
from hypothesis import strategies as st

from properties import property_test
from toolspeak.api.json_stream import Payloads, dumped, paired
from toolspeak.api.sse_parser import EventParser, ServerEvent
from toolspeak.errors import ServerFailed


def event(data: str, kind: str = "message", last: str = "") -> ServerEvent:
    return data, kind, last


def parse(*chunks: bytes | str) -> list[ServerEvent]:
    parser = EventParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.close()


CASES: list[tuple[str, str, list[ServerEvent]]] = [
    ("one event", "data: a\n\n", [event("a")]),
    ("several data lines are one text", "data: a\ndata:b\ndata:  c\n\n", [event("a\nb\n c")]),
    ("CRLF", "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", [event("a\nb"), event("c")]),
    ("lone CR", "data: a\r\rdata: b\r\r", [event("a"), event("b")]),
    ("a comment keeps alive and says nothing", ": ping\n\n:\n\ndata: a\n\n", [event("a")]),
    ("a byte order mark", "\ufeffdata: a\n\n", [event("a")]),
    ("only the first one is a mark", "data: \ufeffa\n\n", [event("\ufeffa")]),
    ("type and id", "event: x\nid: 7\ndata: a\n\ndata: b\n\n", [event("a", "x", "7"), event("b", last="7")]),
    ("no data, no event", "event: x\n\ndata: a\n\n", [event("a")]),
    ("a field without a colon", "data\n\n", [event("")]),
    ("unknown fields", "retry: 3\nfoo: bar\ndata: a\n\n", [event("a")]),
    ("the end without a blank line", "data: a\n\ndata: [DONE]", [event("a"), event("[DONE]")]),
    ("other separators of lines are text", "data: a\u2028b\x85c\x0bd\n\n", [event("a\u2028b\x85c\x0bd")]),
    ("characters of four bytes", "data: 厦门🌦️\n\n", [event("厦门🌦️")]),
    ("nothing", "", []),
]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_events_are_the_same_at_every_cut(text: str, expected: list[ServerEvent]) -> None:
    data = text.encode()
    assert parse(text) == expected
    assert parse(data) == expected
    assert parse(*(data[i : i + 1] for i in range(len(data)))) == expected
    for cut in range(len(data) + 1):
        assert parse(data[:cut], data[cut:]) == expected


def test_an_event_goes_out_as_soon_as_its_blank_line_is_there() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\r\n") == []
    assert parser.feed(b"\r") == [event("a")]
    assert parser.feed(b"\ndata: b\n\n") == [event("b")]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert parse(b"data: a\xff\n\n") == [event("a\ufffd")]


@property_test(100, st.binary(), st.integers(1, 5))
def test_any_bytes_are_taken(data: bytes, size: int) -> None:
    assert parse(*(data[i : i + size] for i in range(0, len(data), size))) == parse(data)


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolspeak.api.sse_parser.LONGEST", 100)
    for endless in (b"data: " + b"x" * 200, b"data: x\n" * 200):
        with pytest.raises(ServerFailed, match="without an end"):
            parse(endless)


def test_a_line_of_json_holds_nothing_that_ends_a_line() -> None:
    """Some clients split a stream's lines where Unicode does, though events do not end there."""
    said = "a\u2028b\u2029c\x85d\ne\rf✓"
    line = dumped({"said": said})
    assert line.splitlines() == [line]
    assert json.loads(line) == {"said": said}


SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


def decoded(text: str) -> str:
    """What a payload's text comes to, as text: NaN is not equal to itself."""
    (payload,) = Payloads().feed(f"data: {text}\n\n".encode())
    return repr(payload)


@property_test(200, JSON)
def test_a_payload_is_what_the_standard_library_reads(value: object) -> None:
    text = json.dumps({"value": value})
    assert decoded(text) == repr(json.loads(paired(text)))


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', r'{"a": "\ud83d"}', r'{"a": "\ud83d\ude00"}',
     '{"a": ' + "[" * 300 + "]" * 300 + "}", '{"a": 1.0, "b": 0.1, "c": 1E2, "d": -0}'],
)  # fmt: skip
def test_an_odd_payload_is_what_the_standard_library_reads(text: str) -> None:
    assert decoded(text) == repr(json.loads(paired(text)))
