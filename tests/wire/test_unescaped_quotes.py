"""Texts whose quotes are not escaped, with the closers of their call in them: the call ends too early, so it does not run."""

from __future__ import annotations

from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import called, read_at_cuts, rules, stream

import toolspeak as ts
from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.models.speaker import Speaker
from toolspeak.wire.dialect import ARGS, Dialect, JsonCall
from toolspeak.wire.reading.collect import collect

QUERIES = (
    'say "hi" and "\nCLOSE\nmore',
    'say "hi"\nCLOSE\nmore',
    'x"\nCLOSE\nmore',
    'a = "" \nCLOSE\nmore',
    'print("hi")"\nCLOSE\nmore',
    '<a href="x">y</a>"\nCLOSE\n<b c="d">',
    'x"CLOSE more',
)
"""What may be written as it is between the quotes of the last argument. CLOSE stands for all that closes its call."""
BEHIND = (
    "Let me know!",
    'It looks for {"query": "two words"}.',
    "if (x) {\n  f(\"a\");\n}\nelse { g('b') }",
    "So (as you said \"find it\") I look.\n1) first\n2) 'then' (b)",
    'The set {1, "a"}, and a[0] = {"b": ["c"]}',
    "a} b",
    'The config was {"end": "}"}.',
    'It ends with `"}`.',
    'The new end is:\n```js\n  return "x"\n}\n```',
    'a { content: "}" }',
)
"""Texts behind calls that have both ends of each object, no value before its end, or nothing of the outer one behind that."""
QUOTED = [d for d in TALKING if '"QUERY"' in wire(d, find("QUERY"))]
INLINE = [d for d in QUOTED if not d.header and d.name != "llama3-builtin"]

read = partial(read_at_cuts, tools=TOOLS, every=2)


@pytest.mark.parametrize("d", QUOTED, ids=lambda d: d.name)
def test_a_call_does_not_run_cut(d: Dialect) -> None:
    before, after = wire(d, find("QUERY")).strip().split('QUERY"')
    for query in QUERIES:
        whole = query.replace("CLOSE", after)
        reply = read(d, f'{before}{whole}"{after}')
        assert [one for one in reply.calls if one.whole and one.arguments != {"query": whole}] == [], query
        assert reply.calls[0].whole or reply.notes, query


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_text_behind_a_call_refuses_none(d: Dialect) -> None:
    nested = any(isinstance(part, JsonCall) and part.keys[-1][1] is ARGS for part in d.call)
    for text in BEHIND if nested else BEHIND[:-2]:  # one object alone ends as these do
        reply = read(d, f"{wire(d, find('two words')).strip()}\n\n{text}")
        assert called(reply) == ["find"], text
        assert "unbalanced-closers" not in rules(reply), text


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_calls_before_and_behind(d: Dialect) -> None:
    """It is not known which call ended too early. One behind the text counts."""
    before, after = wire(d, find("QUERY")).strip().split('QUERY"')
    cut = f'{before}x"\n{after}\nmore"{after}'
    whole = wire(d, find("two words")).strip()
    reply = read(d, f"{cut}\n\n{whole}")
    assert [one.arguments for one in reply.calls if one.whole and one.arguments != {"query": "two words"}] == []


@pytest.mark.parametrize("blanks", [0, 60, 70, 690, 720, 2_000])
def test_blanks_between_the_ends_do_not_make_it_depend_on_the_cut(blanks: int) -> None:
    before, after = wire(get("hermes"), find("QUERY")).strip().split('QUERY"')
    for end in (f'more"}}{" " * blanks}}}\n</tool_call>\nSo.', f'more"}}}}{" " * blanks}</tool_call>\nSo.'):
        read_at_cuts(get("hermes"), f'{before}x"{after}\n{end}', TOOLS)


def test_the_model_is_asked_again() -> None:
    text = '<tool_call>\n{"name": "find_it", "arguments": {"query": "say \\n}}\n</tool_call>\nmore"}}\n</tool_call>'
    text = text.replace("say ", 'say "hi" and "')
    model = ts.Scripted([text.replace("\\n", "\n"), "No call."])
    assert ts.run("Go", tools=[find_it], model=Speaker(model, "hermes")).text == "No call."
    assert len(model.requests) == 2


def find_it(query: str) -> str:
    """Find it."""
    raise AssertionError(query)


@pytest.mark.parametrize("name", ["hermes", "hy-v3-opensource", "deepseek-v31"])
def test_a_row_of_tags_behind_a_call_is_read_in_one_way(name: str) -> None:
    """With two ways for each slash, forty of them would take hours."""
    d = get(name)
    for end in ("<", "</a", "</b>"):
        reply = collect(stream(d, [wire(d, find("two words")).strip() + "\n" + "</a>" * 150 + end], TOOLS))
        assert [call.name for call in reply.calls] == ["find"]


@pytest.mark.parametrize("form", ['a "b" }', "{", '"}', "1 ", "] "])
def test_many_braces_take_linear_time(form: str) -> None:
    hermes = get("hermes")
    call = wire(hermes, find("two words")).strip()
    assert growth(lambda n: lambda: stream(hermes, [f"{call}\nSo:\n", *[form] * n], TOOLS), 50) <= LINEAR
