"""Drafts of dialects that nobody has described, read off templates made up here: one for each hole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, strategies as st

import toolspeak as ts
from properties import property_test
from toolspeak.wire.detect import detect
from toolspeak.wire.dialect import (
    ARGS,
    ID,
    INDEX,
    NAME,
    Dialect,
    Json,
    JsonCall,
    Keywords,
    NumberedName,
    Part,
    Tagged,
    Thinking,
    Tree,
    Typed,
)
from toolspeak.wire.finding.drafting import draft, reads
from toolspeak.wire.finding.probe import BOTH, between, call, common_end, common_start, pieces, probe
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.render import render

TURNS = """{%- for m in messages %}[[{{ m.role }}]]
{% if m.role == 'assistant' %}THOUGHT{{ m.content or '' }}{% if m.tool_calls %}CALLS{% endif %}{% else %}{{ m.content }}{% endif %}<end>
{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}[[assistant]]
{% endif %}"""
EACH = "{% for c in m.tool_calls %}CALL{% endfor %}"
NL = "{{ '\\n' }}"
N, A = "{{ c.function.name }}", "{{ c.function.arguments | tojson }}"
PAIRS = "{% for k, v in c.function.arguments.items() %}PAIR{% endfor %}"
V = "{{ v if v is string else v | tojson }}"


def template(calls: str, thought: str = "") -> str:
    return TURNS.replace("CALLS", calls).replace("THOUGHT", thought)


def each(one: str, glue: str = "") -> str:
    return EACH.replace("CALL", one + ("{% if not loop.last %}" + glue + "{% endif %}" if glue else ""))


def of_pairs(around: str, pair: str) -> str:
    return around.replace("PAIRS", PAIRS.replace("PAIR", pair))


CASES: dict[str, tuple[str, tuple[Part, ...], dict[str, object]]] = {
    "a call in one object": (
        each('<go>{"f": "' + N + '", "with": ' + A + "}</go>", NL),
        ("<go>", JsonCall((("f", NAME), ("with", ARGS))), "</go>"),
        {"between": "\n"},
    ),
    "calls in one list": (
        "<<" + "[" + each('{"f": "' + N + '", "with": ' + A + ', "nr": "{{ c.id }}"}', ", ") + "]>>",
        (JsonCall((("f", NAME), ("with", ARGS), ("nr", ID))),),
        {"open": "<<", "items": ("[", ", ", "]"), "close": ">>"},
    ),
    "the name is the key": (
        "<do>[" + each('{"' + N + '": ' + A + "}", ", ") + "]</do>",
        (JsonCall(((NAME, ARGS),)),),
        {"open": "<do>", "items": ("[", ", ", "]"), "close": "</do>"},
    ),
    "arguments behind the name": (
        "<all>\n" + each("<one f=" + N + ">" + A + "</one>", NL) + NL + "</all>",
        ("<one f=", NAME, ">", Json(), "</one>"),
        {"open": "<all>\n", "between": "\n", "close": "\n</all>"},
    ),
    "an id that holds the name": (
        each("<call>functions." + N + ":{{ loop.index0 }}<args>" + A + "</call>"),
        ("<call>", NumberedName("functions.", ":"), "<args>", Json(), "</call>"),
        {},
    ),
    "numbered calls": (
        each('<call f="' + N + '" n="{{ loop.index }}">' + A + "</call>"),
        ('<call f="', NAME, '" n="', INDEX, '">', Json(), "</call>"),
        {"index_base": 1},
    ),
    "ids in front": (
        each("<id>{{ c.id }}<f>" + N + "<a>" + A + "</f>"),
        ("<id>", ID, "<f>", NAME, "<a>", Json(), "</f>"),
        {},
    ),
    "parameters in tags": (
        each(of_pairs("<call>\n<f=" + N + ">\nPAIRS</f>\n</call>", "<p={{ k }}>\n" + V + "\n</p>\n"), NL),
        ("<call>\n<f=", NAME, ">\n", Tagged("<p=", ">\n", "\n</p>\n"), "</f>\n</call>"),
        {"between": "\n"},
    ),
    "pairs of keys and values": (
        each(of_pairs("<call>" + N + "PAIRS</call>", "<k>{{ k }}</k><v>" + V + "</v>")),
        ("<call>", NAME, Tagged("<k>", "</k><v>", "</v>"), "</call>"),
        {},
    ),
    "parameters that tell their type": (
        each(
            of_pairs(
                '<call f="' + N + '">\nPAIRS</call>',
                "<p k=\"{{ k }}\" text=\"{{ 'yes' if v is string else 'no' }}\">" + V + "</p>\n",
            ),
            NL,
        ),
        ('<call f="', NAME, '">\n', Tagged('<p k="', '">', "</p>\n", Typed('" text="', "yes", "no")), "</call>"),
        {"between": "\n"},
    ),
    "a tree": (
        each(of_pairs('<f n="' + N + '">PAIRS</f>', "!<{{ k }}>" + V + "!</{{ k }}>")),
        ('<f n="', NAME, '">', Tree("!"), "</f>"),
        {},
    ),
    "keywords": (
        "<do>["
        + each(
            of_pairs(
                N + "(PAIRS)",
                "{% if not loop.first %}, {% endif %}{{ k }}="
                + "{% if v is string %}'{{ v }}'{% elif v is none %}None{% else %}{{ v }}{% endif %}",
            ),
            ", ",
        )
        + "]</do>",
        (NAME, Keywords()),
        {"open": "<do>", "items": ("[", ", ", "]"), "close": "</do>"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_hole_is_found(name: str) -> None:
    calls, parts, more = CASES[name]
    text = template(calls)
    found = draft(text)
    assert found is not None
    assert found.call == parts
    for key in ("open", "close", "between", "items", "index_base"):
        assert getattr(found, key) == more.get(key, getattr(Dialect("", (JsonCall(),)), key)), key
    assert found.stop == ("<end>",)
    assert (found.thinking, found.frame, found.guard) == (None, (), False)
    p = probe(text)
    assert p
    for calls_of in ([BOTH], [call(), call(1)]):
        assert write_calls(calls_of, found) in p.show(*calls_of)
        assert reads(p, found, *calls_of)


def test_a_draft_speaks_through_its_template() -> None:
    text = template(CASES["parameters in tags"][0])
    d = detect(text)
    assert d.origin == "drafted from its chat template"
    asked = {"type": "function", "function": {"name": "f", "arguments": {"a": 1, "b": "x\ny"}}}
    tool: ts.Tool[..., Any] = ts.Tool(
        "f", "", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    )
    turns: list[ts.Message] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "", "tool_calls": [asked]},
    ]
    prompt = render(turns, [tool], d, template=text).prompt
    wire = "<call>\n<f=f>\n<p=a>\n1\n</p>\n<p=b>\nx\ny\n</p>\n</f>\n</call>"
    assert wire in prompt
    reply = ts.parse(f"So:\n{wire}<end>", d, [tool])
    assert [(c.name, c.arguments) for c in reply.calls] == [("f", {"a": 1, "b": "x\ny"})]
    assert reply.text.strip() == "So:"


@pytest.mark.parametrize(
    ("thought", "expected"),
    [
        ("{% if m.reasoning_content %}<mind>\n{{ m.reasoning_content }}\n</mind>\n{% endif %}", ("<mind>\n", "\n</mind>\n")),
        ("<mind>{{ m.reasoning_content or '' }}</mind>", ("<mind>", "</mind>")),
        ("{% if m.thinking %}<|is|>mind<|of|>{{ m.thinking }}<|no|>mind<|of|>{% endif %}", ("<|is|>mind<|of|>", "<|no|>mind<|of|>")),
        ("{# models that <think> end with </think> #}", ("<think>", "</think>")),
        ("", None),
    ],
)  # fmt: skip
def test_thoughts_are_found(thought: str, expected: tuple[str, str] | None) -> None:
    found = draft(template(CASES["a call in one object"][0], thought))
    assert found is not None
    assert found.thinking == (Thinking(*expected) if expected else None)
    assert found.call[0] == "<go>"


BOT = """\
{% if tools %}⟦sys⟧{{ tools | tojson }}⟦/sys⟧
{% endif %}{% for m in messages %}{% if m.role == 'assistant' %}BOT
{%- if m.reasoning_content %}{{ 'OPEN' }}{{ m.reasoning_content }}{{ 'CLOSE' }}{% endif %}{{ m.content or '' }}
{%- for c in m.tool_calls or [] %}⟦call {{ c.function.name }}⟧{{ c.function.arguments | tojson }}⟦/call⟧{% endfor %}END
{%- else %}⟦user⟧{{ m.content }}⟦/user⟧
{% endif %}{% endfor %}{% if add_generation_prompt %}BOT{% endif %}"""


@pytest.mark.parametrize(
    ("bot", "end"), [("⟦bot⟧", "⟦/bot⟧"), ("<|im_start|>assistant\n", "<|im_end|>"), ("((bot))\n", "((/bot))\n")]
)
@pytest.mark.parametrize(
    ("opener", "closer"),
    [
        ("⟦think⟧", "⟦/think⟧"),
        ("[[think]]", "[[/think]]"),
        ("⟦think⟧\n", "\n⟦/think⟧\n\n"),
        ("<think>", "</think>"),
        ("((t ", " t))"),
    ],
)
def test_the_beginning_of_a_turn_is_no_opener_of_a_thought(bot: str, end: str, opener: str, closer: str) -> None:
    text = (
        BOT.replace("BOT", "{{ '" + bot + "' }}")
        .replace("OPEN", opener)
        .replace("CLOSE", closer)
        .replace("END", "{{ '" + end + "' }}")
    )
    found = ts.detect(text)
    assert found.origin == "drafted from its chat template"
    assert found.thinking == Thinking(opener, closer)
    assert end.strip() in found.stop
    prompt = render([{"role": "user", "content": "Hi"}], None, found, template=text).prompt
    reply = ts.parse(f"It is sunny.{end.strip()}", found, None, prompt)
    assert (reply.text, reply.thought) == ("It is sunny.", "")
    reply = ts.parse(f"{opener}Hm.{closer}It is sunny.{end.strip()}", found, None, prompt)
    assert (reply.text.strip(), reply.thought.strip()) == ("It is sunny.", "Hm.")


def test_what_stands_around_a_text_is_no_part_of_it() -> None:
    text = template("<say>CALLS</say>", "").replace("CALLS", each("<go " + N + ">" + A + "</go>"))
    text = text.replace("{{ m.content or '' }}", "{% if m.content %}<text>{{ m.content }}</text>{% endif %}")
    found = draft(text)
    assert found is not None
    assert found.frame == ("<text>", "</text>")
    reply = ts.parse("<text>Hello.</text><end>", found)
    assert reply.text.replace("<end>", "") == "Hello."


def test_a_template_that_takes_one_call_only() -> None:
    one = '{% if m.tool_calls | length > 1 %}{{ raise_exception("one") }}{% endif %}'
    found = draft(template(one + CASES["arguments behind the name"][0]))
    assert found is not None
    assert (found.open, found.call, found.close) == (
        "",
        ("<all>\n<one f=", NAME, ">", Json(), "</one>\n</all>"),
        "",
    )


def test_a_call_without_a_marker_counts_for_offered_tools_only() -> None:
    found = draft(template('{% set c = m.tool_calls[0] %}{"name": "' + N + '", "parameters": ' + A + "}"))
    assert found is not None
    assert found.guard
    assert ts.parse('{"name": "f", "parameters": {"a": 1}}', found, [ts.Tool("f")]).calls
    for text in ('{"name": "f"}', '{"city": "Rome"}', "[1]"):
        assert ts.parse(text, found, [ts.Tool("g")]).text == text


@pytest.mark.parametrize(
    "calls",
    [
        "{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}",
        "{% for c in m.tool_calls %}{{ c.function.name }}{% endfor %}",
        "{% for c in m.tool_calls %}{{ c.function.name | upper }}: {{ c.function.arguments | tojson }}{% endfor %}",
        "{{ m.tool_calls | length }}",
    ],
)
def test_what_tells_no_dialect_makes_no_draft(calls: str) -> None:
    assert draft(template(calls)) is None


def test_texts_are_compared_by_whole_pieces() -> None:
    assert pieces('a <b c="') == ["a", " ", '<b c="']
    assert common_start("<END_A>x", "<END_B>x") == ""
    assert common_end("</END_A>", "</EN_A>") == ""
    assert common_start("ab</p>\n<q>", "ab</p>\n<p>") == "ab</p>\n"
    assert between("<t>one</t>", "<t>two three</t>") == "two three"


MARKS = st.sampled_from(
    [
        *(
            ("<go>", "</go>"),
            ("[GO]", "[/GO]"),
            ("<|go|>", "<|/go|>"),
            ("<｜go▁on｜>", "<｜go▁end｜>"),
            ("]<]go[>[", "]<]/go[>["),
        ),
        *(
            ("@@go ", " @@"),
            ("GO:", ";"),
            ("```go\n", "\n```"),
            ("<go:a.b>", "</go:a.b>"),
            ("«go»", "«end»"),
            ("<go\n", "\n<end/>"),
        ),
    ]
)
INNER = st.sampled_from([("<one>", "</one>"), ("<|one|>", "<|done|>"), ("one ", " end"), ("", "")])


@property_test(
    120,
    MARKS,
    INNER,
    st.sampled_from(["", NL, " ", ", "]),
    st.sampled_from(["object", "list", "behind", "tags", "pairs"]),
)
def test_any_markers_do(outer: tuple[str, str], inner: tuple[str, str], glue: str, hole: str) -> None:
    """Whatever the markers look like, a draft reads what its template wrote, two calls of it too."""
    assume(glue or inner[1] != " end")  # two words that run into one cannot be told apart
    one = {
        "object": '{"name": "' + N + '", "arguments": ' + A + "}",
        "list": '{"name": "' + N + '", "arguments": ' + A + "}",
        "behind": "<f " + N + ">" + A,
        "tags": of_pairs('<f n="' + N + '">PAIRS</f>', '<p n="{{ k }}">' + V + "</p>"),
        "pairs": of_pairs("<f>" + N + "</f>PAIRS", "<k>{{ k }}</k>=" + V + "<;>"),
    }[hole]
    left, right = (text.replace("\n", NL) for text in outer)
    calls = left + each(inner[0] + one + inner[1], glue) + right
    if hole == "list":
        calls = left + "[" + each(one, ", ") + "]" + right
    text = template(calls)
    found, p = draft(text), probe(text)
    assert found
    assert p
    for calls_of in ([BOTH], [call(), call(1)], [call(0, first_key='"it\'s" {so}, [1]')]):
        assert reads(p, found, *calls_of)
