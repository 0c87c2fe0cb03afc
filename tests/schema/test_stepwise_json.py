"""A large body is parsed and counted in pieces: the same values and errors as in one go, in steps that are all small."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from toolspeak.gateway.body import parse_body
from toolspeak.gateway.config.settings import GatewayLimits
from toolspeak.schema import nonblocking_json, value_count

ODD = ("", ",", "]", "}", '"', "{", "x", "\\", " ", ":", "[", "1e999", "\ud800")


def made(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.random()
    if depth < 6 and kind < 0.3:
        return {rng.choice(("a", 'b"', "c\\", "", "]")): made(rng, depth + 1) for _ in range(rng.randrange(4))}
    if depth < 6 and kind < 0.6:
        return [made(rng, depth + 1) for _ in range(rng.randrange(4))]
    return rng.choice((1, 2.5, "x", '\\"]', "{", None, True, -1e30, "ü\ud800", "\\"))


def levels_of(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(levels_of, value.values() if isinstance(value, dict) else value), default=0)


def test_the_depth_of_a_value_is_that_of_its_containers_whatever_brackets_its_strings_have() -> None:
    rng = random.Random(3)
    for _ in range(3_000):
        value = made(rng)
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
        for levels in range(1, 8):
            assert nonblocking_json.too_deep(text, value, levels) == (levels_of(value) > levels), (text, levels)


@pytest.mark.parametrize("string", ["x", "]", "[", '\\"]', "\\"])
def test_a_deep_value_is_found_beside_many_small_ones(string: str) -> None:
    deep: Any = string
    for levels in range(1, nonblocking_json.DEEPEST + 3):
        deep = [string, deep] if levels % 2 else {string: deep}
        if levels in (3, 9, 20, nonblocking_json.DEEPEST - 1, nonblocking_json.DEEPEST, nonblocking_json.DEEPEST + 1):
            value = [[[string], 1]] * 500 + [deep]
            text = json.dumps(value)
            assert nonblocking_json.too_deep(text, value) == (levels + 1 > nonblocking_json.DEEPEST), levels


def damaged(rng: random.Random) -> str:
    text = json.dumps(made(rng), indent=rng.choice((None, None, 1)), ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.5:
        return text
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(ODD) + text[at + rng.randrange(2) :]


def outcome(loads: Callable[[str], Any], text: str) -> str:
    try:
        return repr(loads(text))
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("seed", range(5))
def test_values_and_errors_are_those_of_the_standard_library(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(nonblocking_json, "LARGE", 0)
    monkeypatch.setattr(nonblocking_json, "MANY", 0)
    for _ in range(1_000):
        monkeypatch.setattr(nonblocking_json, "PIECE", rng.choice((1, 2, 5, 30)))
        text = damaged(rng)
        assert outcome(nonblocking_json.loads, text) == outcome(json.loads, text), text


def test_containers_without_end_are_no_more_than_too_many() -> None:
    with pytest.raises(RecursionError):
        nonblocking_json.loads('{"a":' * 200_000)


@pytest.mark.parametrize(
    "make",
    [
        lambda: {f"name{i}": 1 for i in range(60_000)},
        lambda: [[] for _ in range(60_000)],
        lambda: [{"type": "text", "text": "x"} for _ in range(40_000)],
        lambda: [[[[{f"name{i}": "x" * 100}] for i in range(60_000)]]],
    ],
)
def test_no_step_reads_much_more_than_a_piece(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    value = make()
    steps: list[int] = []
    walker = nonblocking_json._Walker

    class Noting(walker):
        def __init__(self, large: set[int], scan_small: Callable[[str, int], tuple[Any, int]], *as_object: Any) -> None:
            def noted(text: str, at: int) -> tuple[Any, int]:
                read, end = scan_small(text, at)
                steps.append(end - at)
                return read, end

            super().__init__(large, noted, *as_object)

    monkeypatch.setattr(nonblocking_json, "_Walker", Noting)
    assert parse_body(json.dumps({"a": value}).encode(), GatewayLimits()) == {"a": value}
    assert 0 < max(steps) <= nonblocking_json.PIECE


STRINGS = re.compile(r'"[^"]*(?:"|\Z)')


@pytest.mark.parametrize("seed", range(3))
def test_what_stands_outside_of_strings_is_the_same_in_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    for _ in range(1_000):
        monkeypatch.setattr(value_count, "PIECE", rng.choice((1, 2, 3, 10)))
        text = damaged(rng)
        pieces = list(value_count.outside_strings(text))
        assert "".join(pieces) == STRINGS.sub("", text.replace("\\\\", "").replace('\\"', "")), text


def test_what_is_counted_is_counted_in_pieces() -> None:
    text = json.dumps([{"type": "text", "text": "a \\ b"}] * 40_000)
    assert len(text) > 3 * value_count.PIECE
    assert max(map(len, value_count.outside_strings(text))) <= value_count.PIECE


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_that_of_the_standard_library(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    for _ in range(300):
        monkeypatch.setattr(nonblocking_json, "ROW", rng.choice((1, 2, 3)))
        value = made(rng)
        assert nonblocking_json.dumps(value, nonblocking_json.LARGE) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    "value",
    [
        list(range(60_000)),
        {f"n{i}": i for i in range(60_000)},
        [[list(range(30_000))] * 2],
        [[1], 2, {"a": 3}] * 9_000,
        '"\n\U0001f600' * 60_000,
        [1, "x" * 100_000, 2],
        {"b": 1, "c": "x" * 100_000},
    ],
)
def test_no_step_writes_more_than_a_row(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    texts: list[int] = []
    real = nonblocking_json._encode
    expected = json.dumps({"a": value}, ensure_ascii=False)

    def noted(value: Any) -> str:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        steps.append(len(inner))
        texts.append(max(len(one) for one in [*inner, ""] if isinstance(one, str)))
        return real(value)

    monkeypatch.setattr(nonblocking_json, "_encode", noted)
    assert nonblocking_json.dumps({"a": value}, len(expected)) == expected
    assert max(steps) <= nonblocking_json.ROW
    assert max(texts) <= nonblocking_json.PIECE


DEEP = {"list": ("[", "]"), "object": ('{"a":', "}")}


@pytest.mark.parametrize(("opener", "closer"), DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("filler", ["", '"x",' * 30_000])
def test_no_value_nests_deeper_than_may_be_walked(opener: str, closer: str, filler: str) -> None:
    def nested(levels: int) -> str:
        return opener * (levels - 1) + "[" + filler + "1]" + closer * (levels - 1)

    assert nonblocking_json.loads(nested(nonblocking_json.DEEPEST)) is not None
    for levels in (nonblocking_json.DEEPEST + 1, 900):
        with pytest.raises(RecursionError):
            nonblocking_json.loads(nested(levels))
    flat = "[" + "[]," * 1_000 + '"' + "[" * 1_000 + '"]'
    assert len(nonblocking_json.loads(flat)) == 1_001


def test_a_text_of_too_many_values_is_not_parsed() -> None:
    most = nonblocking_json.VALUES
    for text in ("[" + "[]," * most + "[]]", "[" + "1," * most + "1]", '{"a":[' + "{}," * most + "{}]}"):
        with pytest.raises(ValueError, match="more than 800,000 values"):
            nonblocking_json.loads(text)
        assert nonblocking_json.loads_or(text, None) is None
    text = json.dumps("[]," * most)
    assert nonblocking_json.loads(text) == "[]," * most
    assert nonblocking_json.loads("[1,2]", values=2) == [1, 2]
    assert nonblocking_json.loads_or("[1,2]", None, values=1) is None
