"""Coercion: by the schema, lossless, each with a note; everything else stays for the judge."""

from __future__ import annotations

import copy
import json
from decimal import Decimal
from typing import Annotated, Any

import jsonschema_rs
import pytest
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from properties import property_test
from toolspeak import Toolbox, extract, run
from toolspeak.models.scripted import Scripted
from toolspeak.schema.check import check
from toolspeak.schema.coerce import coerce
from toolspeak.schema.infer import as_tool
from toolspeak.types import Note, Tool, ToolCall


def tool_of(schema: Any, **more: Any) -> Tool[..., Any]:
    return as_tool({"name": "t", "parameters": {"type": "object", "properties": {"x": schema}, **more}})


def coerced(schema: Any, value: Any) -> Any:
    arguments, _ = coerce(tool_of(schema), {"x": value})
    return arguments["x"]


INTEGER, NUMBER, BOOLEAN, STRING = ({"type": kind} for kind in ("integer", "number", "boolean", "string"))
OBJECT: Any = {"type": "object", "properties": {"a": INTEGER, "b": STRING}}
LIST: Any = {"type": "array", "items": INTEGER}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INTEGER, "42", 42),
        (INTEGER, "-7", -7),
        (INTEGER, "0", 0),
        (INTEGER, "123456789012345678901234567890", 123456789012345678901234567890),
        (NUMBER, "42", 42),
        (NUMBER, "3.7", 3.7),
        (NUMBER, "-0.5", -0.5),
        (NUMBER, "1e3", 1000.0),
        (NUMBER, "1.50", 1.5),
        (BOOLEAN, "true", True),
        (BOOLEAN, "False", False),
        (OBJECT, '{"a": 1}', {"a": 1}),
        (OBJECT, '{"a": "1", "b": "2"}', {"a": 1, "b": "2"}),
        (LIST, "[1, 2]", [1, 2]),
        (LIST, ["1", 2], [1, 2]),
        ({"type": ["integer", "null"]}, "5", 5),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "5", 5),
        ({"anyOf": [INTEGER, {"type": "null"}]}, "null", None),
        ({"anyOf": [INTEGER, NUMBER]}, "5", 5),
        ({"oneOf": [LIST, {"type": "null"}]}, '["1"]', [1]),
        ({"anyOf": [OBJECT, {"type": "null"}]}, {"a": "1"}, {"a": 1}),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": True}, "true", True),
        ({"allOf": [INTEGER, {"minimum": 2}]}, "3", 3),
        ({"type": "array", "prefixItems": [INTEGER, STRING]}, ["1", "2"], [1, "2"]),
        ({"type": "object", "additionalProperties": NUMBER}, {"k": "1.5"}, {"k": 1.5}),
        ({"$ref": "#/$defs/n"}, {"next": {"v": "2"}, "v": "1"}, {"next": {"v": 2}, "v": 1}),
        ({"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}, {"v": "1"}, {"v": 1}),
    ],
)
def test_what_is_coerced(schema: Any, value: Any, expected: Any):
    made = tool_of(
        schema, **{"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "v": INTEGER}}}}
    )
    arguments = {"x": copy.deepcopy(value)}
    got, notes = coerce(made, arguments)
    assert got == {"x": expected}
    assert type(got["x"]) is type(expected)
    assert notes
    assert all(note.rule == "coerced" and note.detail.startswith("/x") for note in notes)
    assert arguments == {"x": value}
    assert check(made, got) == []


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (
            INTEGER,
            [
                "3.7",
                "042",
                "",
                " 42",
                "42 ",
                "+42",
                "4_2",
                "0x2A",
                "-0",
                "1e3",
                "42.0",
                "٤٢",
                "yes",
                "true",
                True,
                None,
                1.5,
            ],
        ),
        (INTEGER, ["9" * 5000, [], {}, "null", "[1]"]),
        (NUMBER, ["", "042", "1.", ".5", "+1", "NaN", "Infinity", "1e999", "1,5", "1 000", True, False, None, "one"]),
        (NUMBER, ["3.14159265358979323846264338327950288", "9007199254740993.5"]),
        (BOOLEAN, ["yes", "no", "TRUE", "1", "0", 1, 0, "", "on", "t", None]),
        (STRING, [42, 1.5, True, None, ["a"], {"a": 1}]),
        (OBJECT, ["", "{", "[]", "{a: 1}", "{'a': 1}", '{"a": 1, "a": 2}', '{"a": NaN}', "null", 5, "x"]),
        (LIST, ["", "1,2", "1", 1, "{}", "(1, 2)"]),
        ({"type": "null"}, ["", "None", "nil", 0, False]),
        ({"enum": ["celsius"]}, ["Celsius", "CELSIUS", "c", "celsius "]),
        ({"enum": [1, 2]}, ["3", "01", 1.5]),
        ({"anyOf": [INTEGER, BOOLEAN]}, ["yes", "1.5", ""]),
    ],
)
def test_what_is_refused(schema: Any, values: list[Any]):
    made = tool_of(schema)
    for value in values:
        got, notes = coerce(made, {"x": value})
        assert got["x"] == value, value
        assert type(got["x"]) is type(value), value
        assert notes == (), value
        assert check(made, got), value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (STRING, "42"),
        ({"anyOf": [INTEGER, STRING]}, "42"),
        ({"type": ["integer", "string"]}, "42"),
        ({}, "42"),
        ({"enum": ["1", 1]}, "1"),
        ({"anyOf": [{"type": "string"}, OBJECT]}, '{"a": 1}'),
        (NUMBER, 3),
        (NUMBER, 1.0),
        ({"type": ["integer", "number"]}, 1.0),
    ],
)
def test_what_is_valid_is_left_alone(schema: Any, value: Any):
    got, notes = coerce(tool_of(schema), {"x": value})
    assert got["x"] is value
    assert notes == ()


def test_one_point_nothing_is_an_integer():
    got, notes = coerce(tool_of(INTEGER), {"x": 1.0})
    assert (got["x"], type(got["x"]), notes) == (1, int, ())
    assert coerced({"type": "array", "items": {"anyOf": [INTEGER, {"type": "null"}]}}, [2.0, None]) == [2, None]
    assert type(coerced({"anyOf": [INTEGER, {"type": "null"}]}, 2.0)) is int
    assert type(coerced({"anyOf": [NUMBER, INTEGER]}, 2.0)) is float
    assert type(coerced({"allOf": [INTEGER]}, 2.0)) is int
    assert type(coerced({"anyOf": [OBJECT, LIST]}, {"a": 2.0})["a"]) is int


def test_two_meanings_are_none():
    got, notes = coerce(tool_of({"anyOf": [{"type": "array"}, {"type": "object"}, BOOLEAN]}), {"x": "true"})
    assert (got["x"], len(notes)) == (True, 1)
    either = {
        "anyOf": [{"properties": {"a": INTEGER}, "type": "object"}, {"properties": {"a": BOOLEAN}, "type": "object"}]
    }
    assert coerced(either, {"a": "1"}) == {"a": 1}
    both = {"anyOf": [{"type": "object", "properties": {"a": INTEGER}}, {"type": "object", "properties": {"a": LIST}}]}
    assert coerced(both, '{"a": "[1]"}') == {"a": [1]}
    ambiguous = {"anyOf": [{"type": "array", "items": INTEGER}, {"type": "array", "items": BOOLEAN}]}
    assert coerced(ambiguous, "[]") == []
    assert (
        coerced(
            {
                "anyOf": [
                    {"type": "object", "properties": {"a": INTEGER}},
                    {"type": "object", "properties": {"a": {"enum": ["1"]}}},
                ]
            },
            '{"a": "1"}',
        )
        == '{"a": "1"}'
    )


def test_the_note_says_what_and_where():
    _, notes = coerce(tool_of(OBJECT), {"x": {"a": "42"}})
    assert notes == (Note("coerced", '/x/a: the text "42" was read as integer'),)


def test_recursion_has_an_end():
    loop = {"$ref": "#/$defs/a"}
    made = as_tool(
        {
            "name": "t",
            "parameters": {"properties": {"x": loop, "y": INTEGER}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": loop}},
        }
    )
    assert coerce(made, {"x": "1", "y": "2"})[0]["x"] == "1"
    tree = as_tool({"name": "t", "parameters": {"properties": {"x": {"$ref": "#"}, "y": INTEGER}}})
    value: Any = {"y": "1"}
    for _ in range(500):
        value = {"x": value}
    coerce(tree, value)
    many = {"anyOf": [{"type": "object", "properties": {"x": {"$ref": "#/$defs/m"}}}] * 3}
    wide = as_tool({"name": "t", "parameters": {"properties": {"x": {"$ref": "#/$defs/m"}}, "$defs": {"m": many}}})
    nested: Any = 5
    for _ in range(30):
        nested = {"x": nested}
    coerce(wide, nested)


def test_long_lists_are_coerced_whole():
    optional = {"type": "array", "items": {"anyOf": [INTEGER, {"type": "null"}]}}
    assert coerced(optional, ["1"] * 50_000) == [1] * 50_000
    assert coerced(optional, json.dumps(["1"] * 50_000)) == [1] * 50_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
SCHEMAS = st.sampled_from(
    [
        INTEGER,
        NUMBER,
        BOOLEAN,
        STRING,
        OBJECT,
        LIST,
        {},
        {"anyOf": [INTEGER, LIST, {"type": "null"}]},
        {"enum": [1, "a"]},
    ]
)


@property_test(100, SCHEMAS, JSON)
def test_valid_stays_and_the_rest_is_what_it_was_or_valid(schema: Any, value: Any):
    made = tool_of(schema)
    got, notes = coerce(made, {"x": value})
    if not check(made, {"x": value}):
        assert got == {"x": value}
        assert notes == ()
    if not notes:
        assert got == {"x": value}
    assert coerce(made, got) == (got, ())


@property_test(100, SCHEMAS, JSON)
def test_the_text_of_a_value_is_that_value_or_is_left(schema: Any, value: Any):
    made = tool_of(schema)
    text = json.dumps(value)
    got, notes = coerce(made, {"x": text})
    if notes and not check(made, got):
        assert json.loads(text) == got["x"] or isinstance(value, (list, dict))
    else:
        assert notes or got == {"x": text}


def nested(depth: int, leaf: Any) -> Any:
    """Pairs of alternatives inside one another: the schema doubles at every level."""
    schema = leaf
    for _ in range(depth):
        first = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
        second = {**first, "properties": {"a": schema, "b": {"type": "integer"}}}
        schema = {"anyOf": [first, second]}
    return schema


def deep(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"a": leaf}
    return leaf


class TestAlternativesInsideAlternatives:
    def test_what_is_read_of_a_schema_grows_with_its_size_and_not_with_its_square(
        self, monkeypatch: pytest.MonkeyPatch
    ):
        """Every level of a schema is read once, and the whole of it by none of its alternatives."""
        read = 0
        registry, validator = jsonschema_rs.Registry, jsonschema_rs.Draft202012Validator

        def counting_registry(resources: Any, **options: Any) -> Any:
            nonlocal read
            read += sum(len(json.dumps(schema)) for _, schema in resources)
            return registry(resources, **options)

        def counting_validator(schema: Any, **options: Any) -> Any:
            nonlocal read
            read += len(json.dumps(schema))
            return validator(schema, **options)

        for depth in (5, 7):
            tool = tool_of(nested(depth, {"type": "integer"}))
            monkeypatch.setattr(jsonschema_rs, "Registry", counting_registry)
            monkeypatch.setattr(jsonschema_rs, "Draft202012Validator", counting_validator)
            read = 0
            assert coerce(tool, {"x": deep(depth, "no")}) == ({"x": deep(depth, "no")}, ())
            assert read <= (depth + 2) * len(json.dumps(tool.parameters))
            monkeypatch.undo()

    @pytest.mark.parametrize("depth", [1, 3, 5])
    def test_they_are_coerced_as_far_as_the_work_goes(self, depth: int):
        got, notes = coerce(tool_of(nested(depth, {"type": "integer"})), {"x": deep(depth, "42")})
        assert got == {"x": deep(depth, 42)}
        assert [note.rule for note in notes] == ["coerced"]

    def test_beyond_that_the_arguments_stay_as_they_are(self):
        for leaf in ("42", "no"):
            tool = tool_of(nested(10, {"type": "integer"}))
            assert coerce(tool, {"x": deep(10, leaf)}) == ({"x": deep(10, leaf)}, ())

    def test_what_comes_of_a_call_does_not_hang_on_earlier_ones(self):
        tool = tool_of(nested(9, {"type": "integer"}))
        assert len({str(coerce(tool, {"x": deep(9, "42")})) for _ in range(4)}) == 1

    def test_alternatives_that_refer_to_the_whole_are_bounded_too(self):
        """Ever the same few schemas are held against ever the same values: it is counted, how often."""
        branch = {"type": "object", "properties": {"next": {"$ref": "#/properties/x"}, "n": {"type": "integer"}}}
        wide = {"anyOf": [{**branch, "description": str(i)} for i in range(40)]}
        value: Any = {"n": "1"}
        for _ in range(12):
            value = {"next": value, "n": "1"}
        assert coerce(tool_of(wide), {"x": value}) == ({"x": value}, ())


class Price(BaseModel):
    amount: Decimal
    tax: Decimal | None = None


def pay(
    amount: Decimal,
    part: Annotated[Decimal, Field(ge=0, le=1)] | None = None,
    rows: list[Decimal] = [],  # noqa: B006
    by_name: dict[str, Decimal] = {},  # noqa: B006
    price: Price | None = None,
    rate: float = 0.0,
    days: int = 0,
) -> dict[str, Any]:
    return dict(locals())


LONG = "12345678901234567.89"


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (f'{{"amount": {LONG}}}', "amount", Decimal(LONG)),
        ('{"amount": -1.234567890123456789}', "amount", Decimal("-1.234567890123456789")),
        ('{"amount": 1.5e-400}', "amount", Decimal("1.5e-400")),
        ('{"amount": 12.50}', "amount", Decimal("12.5")),
        ('{"amount": 0.1}', "amount", Decimal("0.1")),
        (f'{{"amount": 1, "rows": [0.5, {LONG}]}}', "rows", [Decimal("0.5"), Decimal(LONG)]),
        (f'{{"amount": 1, "by_name": {{"a": {LONG}}}}}', "by_name", {"a": Decimal(LONG)}),
        (
            f'{{"amount": 1, "price": {{"amount": {LONG}, "tax": {LONG}}}}}',
            "price",
            Price(amount=Decimal(LONG), tax=Decimal(LONG)),
        ),
        (f'{{"amount": {LONG}, "days": "3"}}', "amount", Decimal(LONG)),
        (f'{{"amount": 1, "rate": {LONG}}}', "rate", float(LONG)),
    ],
)
def test_a_decimal_has_all_digits_of_the_call(text: str, name: str, value: Any) -> None:
    call = ToolCall("1", "pay", json.loads(text), text)
    assert Toolbox(pay).call(call)[name] == value
    ran = run("Pay", tools=[pay], model=Scripted([f'{{"name": "pay", "arguments": {text}}}', "Paid."]))
    assert ran.steps[0].results[0].value[name] == value


def test_a_decimal_beyond_its_bound_by_its_last_digit_is_refused() -> None:
    text = '{"amount": 1, "part": 1.000000000000000000001}'
    problems = Toolbox(pay).validate(ToolCall("1", "pay", json.loads(text), text)).problems
    assert [problem.path for problem in problems] == ["/part"]


@pytest.mark.parametrize(
    "reply",
    [
        '{"name": "record_price", "arguments": {"amount": %s}}',
        '{"amount": %s}',
        'It is {"amount": %s}.',
        '{"amount": %s, "currency": "EUR"}',
    ],
)
def test_an_extracted_decimal_has_all_digits(reply: str) -> None:
    assert extract("…", Price, model=Scripted([reply % LONG])) == Price(amount=Decimal(LONG))


def choose(amount: Decimal | int | None, either: Decimal | str = "", many: list[Decimal | bool] = []) -> dict[str, Any]:  # noqa: B006
    return dict(locals())


def test_a_decimal_among_other_types_has_all_digits() -> None:
    text = f'{{"amount": {LONG}, "either": {LONG}, "many": [{LONG}, true]}}'
    assert Toolbox(choose).call(ToolCall("1", "choose", json.loads(text), text)) == {
        "amount": Decimal(LONG),
        "either": LONG,
        "many": [Decimal(LONG), True],
    }


def test_an_alternative_may_refer_dynamically() -> None:
    defs = {"n": {"type": "object", "properties": {"v": INTEGER}, "required": ["v"]}}
    made = tool_of({"anyOf": [{"$dynamicRef": "#/$defs/n"}, {"type": "null"}]}, **{"$defs": defs})
    assert coerce(made, {"x": {"v": 1}})[0] == {"x": {"v": 1}}
    assert coerce(made, {"x": "null"})[0] == {"x": None}
    assert [one.path for one in check(made, {"x": {"v": "one"}})]
