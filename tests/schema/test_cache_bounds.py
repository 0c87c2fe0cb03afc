"""What is kept of schemas is bounded in bytes: by estimates that are held against what is really taken."""

from __future__ import annotations

import json
import marshal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import toolspeak as ts
from properties import rotated
from toolspeak.errors import InvalidTool
from toolspeak.gateway.tool_cache import in_memory
from toolspeak.schema import validators as judges
from toolspeak.schema.bounded_cache import BoundedCache
from toolspeak.schema.check import check
from toolspeak.schema.coerce import coerce
from toolspeak.schema.validators import PATTERNS, branch_judge, judge
from toolspeak.schema.weight import pattern_weight, weight
from toolspeak.types import Tool


def obj(inner: Callable[[int], Any], count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{j}": inner(j) for j in range(count)}}


def test_what_was_used_last_stays_within_the_bytes() -> None:
    cache = BoundedCache[str, str](100, 40)
    for name in "abcd":
        cache.put(name, name.upper(), 25)
    assert cache.get("a") == "A"
    cache.put("e", "E", 25)
    assert (cache.get("a"), cache.get("b"), cache.get("e")) == ("A", None, "E")
    assert cache.size <= 100
    cache.put("large", "L", 41)
    assert cache.get("large") is None
    cache.put("e", "again", 20)
    assert (cache.get("e"), cache.size) == ("again", 25 * (len(cache) - 1) + 20)


def test_threads_may_share_one() -> None:
    cache = BoundedCache[int, int](1000, 10)

    def use(first: int) -> None:
        for i in range(4000):
            cache.put((first + i) % 700, i, 1 + i % 9)
            cache.get(i % 500)

    threads = [threading.Thread(target=use, args=(97 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache.put(-1, 0, 10)
    for i in range(1000):
        cache.put(10_000 + i, i, 5)
    assert cache.size == sum(size for _, size in cache._values.values()) <= 1000


def test_sixty_tools_of_thousands_of_patterns_are_not_all_kept() -> None:
    """Each validator takes 23 MB: kept by their number, they took 3.5 GB."""
    small = {"type": "object", "properties": {"a": {"type": "integer"}}}
    first = judge(small)
    assert judge(small) is first
    for i in range(60):
        judge(obj(lambda j: {"type": "string", "pattern": f"^[a-z]+{j}x{i}$"}, 900))  # noqa: B023 - called at once
        assert judges._judges.size <= judges.JUDGES
    assert judge(small) is not first
    assert judges._judges.size <= judges.JUDGES


def test_alternatives_are_bounded_too() -> None:
    root = {"$defs": {"t": {"type": "string"}}, **obj(lambda j: {"anyOf": [{"const": j}]}, 200)}
    first = {"const": "first", "$ref": "#/$defs/t"}
    before = judges._branches.size  # of other tests
    validator = branch_judge(root, first)
    assert branch_judge(root, first) is validator
    rounds = 2 * judges.BRANCHES // max(1, judges._branches.size - before)
    for j in range(min(rounds, 500)):
        branch_judge(root, {"const": j, "$ref": "#/$defs/t"})
        assert 0 < judges._branches.size <= judges.BRANCHES
    assert branch_judge(root, first) is not validator


@pytest.mark.parametrize("pattern", [r"^\pL{9}%d", r"^(?:\p{L}{50}){50}%d$", r"(?!%d)\w{1,900}", "[a-z]{1,900}%d"])
def test_patterns_that_take_too_much_are_refused_before_they_are_compiled(pattern: str) -> None:
    """3,000 times nine letters of any script are 115 KB of schema, took 1.4 GB and held everything for seconds."""
    schema = obj(lambda j: {"pattern": pattern % j}, 3000)
    with pytest.raises(InvalidTool, match=r"its patterns take about [\d,]+ MB when they are compiled, and may take 24"):
        ts.Toolbox([{"name": "f", "parameters": schema}])


@pytest.mark.parametrize(
    "pattern",
    [r"^\p{L}{1,50}$", r"^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", r"^(?=.*\d)(?=.*[a-z]).{8,64}$",
     r"^[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}$", "^[^/]{1,255}$", r"^\d{4}-\d\d-\d\d$", "[", "a{,3}", "{", "\\"],
)  # fmt: skip
def test_patterns_that_people_write_are_far_below(pattern: str) -> None:
    assert pattern_weight(pattern) < PATTERNS / 4


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": lambda i: obj(lambda j: {"type": "string", "title": f"{i}"}, 2000),
    "patterns": lambda i: obj(lambda j: {"pattern": f"^[a-z]+{j}x{i}$"}, 1000),
    "repeated": lambda i: obj(lambda j: {"pattern": f"[a-z]{{1,900}}{j}x{i}"}, 100),
    "blanks in braces": lambda i: obj(lambda j: {"pattern": f"([^a]{{ 9 }}){{ 1 , 9 }}{j}x{i}"}, 100),
    "optional": lambda i: obj(lambda j: {"pattern": f"(ab?){{500}}{j}x{i}"}, 40),
    "letters": lambda i: obj(lambda j: {"pattern": f"(abc){{400}}{j}x{i}"}, 40),
    "any script": lambda i: obj(lambda j: {"pattern": rf"\p{{L}}{{2}}{j}x{i}"}, 100),
    "alternatives": lambda i: obj(lambda j: {"anyOf": [{"const": j}, {"type": "null"}]}, 2000),
    "objects": lambda i: obj(lambda j: {"enum": [{"a": {"b": {"c": k + i}}} for k in range(2000)]}, 1),
    "small objects": lambda i: obj(lambda j: {"enum": [{"": k + i} for k in range(2000)]}, 1),
    "data": lambda i: obj(lambda j: {"x-data": [{"a": {"b": {"c": k + i}}} for k in range(2000)]}, 1),
    "look around": lambda i: obj(lambda j: {"pattern": f"^(?!x{j})[a-z]+x{i}$"}, 500),
    "small": lambda i: obj(lambda j: {"type": "string", "title": f"{i}"}, 2),
}
MEASURE = """
import gc, json, sys
import jsonschema_rs as rs
def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096
schemas = json.load(sys.stdin)
make = lambda s: rs.Draft202012Validator(s, validate_formats=True, pattern_options=(
    rs.FancyRegexOptions() if "(?!" in json.dumps(s) else rs.RegexOptions()))
warm = make(schemas[0])
before = resident()
made = [make(s) for s in schemas[1:]]
print(json.dumps([(resident() - before) / len(made)]))
"""


def measured(program: str, given: object) -> list[float]:
    """What a program prints, in a process of its own: what other tests left in caches and threads is not measured."""
    command = [sys.executable, "-c", program]
    return json.loads(
        subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True).stdout
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_estimate_of_a_validator_is_not_less_than_it_takes(shape: str) -> None:
    count = 400 if shape == "small" else 5
    schemas = [SHAPES[shape](i) for i in range(count)]
    (real,), estimate = measured(MEASURE, schemas), weight(schemas[0])[0]
    assert 0.8 * real < estimate < 12 * real + 10_000, (shape, real, estimate)


DESCRIBED: dict[str, Callable[[], Any]] = {
    "plain": lambda: [{"name": f"t{j}", "parameters": obj(lambda i: {"type": "string"}, 2)} for j in range(200)],
    "names": lambda: [{"name": f"t{j}"} for j in range(500)],
    "properties": lambda: [{"name": "t", "parameters": obj(lambda j: {}, 3000)}],
    "anything": lambda: [{"name": "t", "parameters": obj(lambda j: True, 3000)}],
    "numbers": lambda: [{"name": "t", "parameters": obj(lambda j: {"enum": list(range(9000))}, 1)}],
    "lists": lambda: [{"name": "t", "parameters": obj(lambda j: {"default": [[] for _ in range(9000)]}, 1)}],
    "objects": lambda: [{"name": "t", "parameters": obj(lambda j: {"default": [{"a": 1} for _ in range(9000)]}, 1)}],
    "texts": lambda: [{"name": f"t{j}", "description": "lorem ipsum " * 500} for j in range(50)],
}


MEASURE_TOOLS = """
import gc, json, sys, tracemalloc
import toolspeak as ts
from toolspeak.schema.infer import as_tools
ts.Toolbox([{"name": "warm"}])
described = sys.stdin.read()
gc.collect()
tracemalloc.start()
made = as_tools(json.loads(described))
gc.collect()
print(json.dumps([tracemalloc.get_traced_memory()[0]]))
assert made
"""


@pytest.mark.parametrize("name", DESCRIBED)
def test_the_estimate_of_a_set_of_tools_is_not_less_than_it_takes(name: str) -> None:
    described = DESCRIBED[name]()
    (real,) = measured(MEASURE_TOOLS, described)
    beside = 20_000 + 250 * json.dumps(described).count('"name"')  # what keeps their validators, counted there
    assert real < 1.05 * in_memory(marshal.dumps(json.loads(json.dumps(described)), 2)) + beside


def described(i: int, words: int, fields: int, values: int = 0) -> dict[str, Any]:
    enum = {"enum": [f"e{k}of{i}" for k in range(values)]} if values else {}
    properties = {f"p{k}": {"type": "string", "description": "d" * 40, **enum} for k in range(fields)}
    said = " ".join(f"w{i * words + k:x}" for k in range(words))
    return {"name": f"f{i}", "description": said, "parameters": {"type": "object", "properties": properties}}


MEASURE_INDEX = """
import gc, json, sys, tracemalloc
from toolspeak.schema.infer import as_tools
from toolspeak.search import terms
from toolspeak.search.index import ToolIndex
from toolspeak.search.index_memory_cache import _content_key, in_memory
warm, *texts = json.load(sys.stdin)
ToolIndex([json.loads(warm)]).search("find")
gc.collect()
tracemalloc.start()
tools = as_tools([json.loads(text) for text in texts])
index = ToolIndex(tools)
index.search("find the thing")
for cache in (terms._pieces, terms._terms, terms._term):
    cache.cache_clear()
gc.collect()
taken = tracemalloc.get_traced_memory()[0]
_, size = _content_key(tools)
print(json.dumps([taken, in_memory(len(tools), size) + sys.getsizeof(index)]))
"""


@pytest.mark.parametrize(("words", "fields", "values"), rotated([(0, 0, 0), (3, 10, 0), (200, 2, 0), (3, 1, 60)], 2))
def test_the_estimate_of_an_index_holds(words: int, fields: int, values: int) -> None:
    """With its tools: it holds them. Kept by what they say, forty requests took gigabytes."""
    texts = [json.dumps(described(0, 3, 1)), *(json.dumps(described(i, words, fields, values)) for i in range(200))]
    taken, estimate = measured(MEASURE_INDEX, texts)
    assert taken < estimate < 12 * taken


def test_references_are_looked_for_once_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []
    multiplies = judges.multiplies
    monkeypatch.setattr(judges, "multiplies", lambda schema: (looks.append(schema), multiplies(schema))[1])
    plain, own = {"type": "object"}, {"type": "object", "properties": {"x": {"$ref": "#"}}}
    for schema in (plain, own):
        tool = Tool("t", "", schema)
        for _ in range(3):
            assert check(tool, coerce(tool, {})[0]) == []
    assert looks == [plain, own]
    assert [isinstance(judge(schema), judges.Referring) for schema in (plain, own)] == [False, True]
