"""A dialect on text, without a model: what people have becomes what the core takes."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest

import toolspeak as ts

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SPEC = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize("tools", [[add], [ts.tool(add)], [SPEC], None, ts.Toolbox(add)])
@pytest.mark.parametrize("dialect", ["hermes", ts.dialect("hermes")])
def test_tools_and_dialects_in_every_form(tools: Any, dialect: Any) -> None:
    reply = ts.parse(CALL, dialect, tools)
    assert [call.arguments for call in reply.calls] == [{"a": 1, "b": 2}]
    assert "add" in ts.render("1 + 2?", tools or [add], dialect).prompt


def test_no_tools_no_calls() -> None:
    assert ts.parse(CALL, "hermes", []).text == CALL


def test_a_decoder_in_pieces_is_the_whole() -> None:
    decoder = ts.Decoder("hermes", [add], ids=lambda: "c1")
    told = [event for c in "Hm. " + CALL for event in decoder.feed(c)] + decoder.close()
    reply = ts.collect(told)
    assert (reply.text.strip(), reply.calls[0].id) == ("Hm.", "c1")


def test_an_unknown_dialect() -> None:
    with pytest.raises(ts.UnknownDialect, match="hermes"):
        ts.parse("x", "hermse")


def test_all_dialects_are_named() -> None:
    assert {"functools", "empower", "tool-json", "function-name", "tool-call", "hermes"} <= set(ts.dialects())


def test_a_template_that_asks_for_the_time_gets_todays_date() -> None:
    today = f"{datetime.now():%Y}"
    for template in ("{{ strftime_now('%Y') }}", "Today is {{ datetime }}. {{ functions }}"):
        rendered = ts.render("Hi", None, "hermes", template=template)
        assert today in rendered.prompt
        assert "variable-not-given" not in [note.rule for note in rendered.notes]


def test_a_variable_that_nobody_gave_is_noted() -> None:
    template = "{% set a = 1 %}{{ a }}{{ name }}{% if mode %}{{ mode }}{% endif %}{{ x | default('') }}{{ bos_token }}"
    told = [(n.rule, n.detail) for n in ts.render("Hi", None, "hermes", template=template).notes]
    assert ("variable-not-given", "name") in told
    assert [detail for rule, detail in told if rule == "variable-not-given"] == ["name"]
    for read in ("{% for x in name %}{{ x }}{% endfor %}", "{% set d = name %}{{ d }}", "{{ 'By %s' | format(name) }}"):
        notes = ts.render("Hi", None, "hermes", template="{{ messages[0].content }}" + read).notes
        assert [note.detail for note in notes if note.rule == "variable-not-given"] == ["name"]
    given = ts.render("Hi", None, "hermes", template=template, variables={"name": "x"}).notes
    assert "variable-not-given" not in [note.rule for note in given]


def test_replies_are_read_without_loading_grammars() -> None:
    code = (
        "import sys, toolspeak as ts\n"
        f"print([call.name for call in ts.parse({CALL!r}, 'hermes').calls])\n"
        "print([name for name in sys.modules if name.startswith('toolspeak.wire.grammar')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines() == ["['add']", "[]"], done.stderr
