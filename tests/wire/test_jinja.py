"""A chat template's own language: as Jinja2 has it, within bounds, and in the sandbox where minijinja cannot follow."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from jinja import NOW, by_jinja2

import toolspeak as ts
from toolspeak.errors import TemplateError
from toolspeak.wire.prompt import jinja
from toolspeak.wire.prompt.jinja import free_variables, render_template, tojson
from toolspeak.wire.prompt.jinja_sandbox import render_sandboxed

MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": ' a<b "é" \n'}, {"role": "assistant", "content": None}]
X = {"s": "it's", "n": None, "t": True, "f": 1e20, "g": 1e-7, "h": 0.1, "l": [1, ["x"], {}], "z": "ü"}

ALIKE = [
    "{{ x }} {{ x.f }} {{ x.g }} {{ x.h }} {{ x.l }} {{ x.n }} {{ x.t }} {{ nothing }}",
    "{{ x | tojson }} {{ x | tojson(indent=2) }} {{ x.z | tojson(ensure_ascii=True) }} {{ x.l | tojson(separators=(',', ':')) }}",
    "{% for k, v in x.items() %}{{ loop.index }}{{ k }}={{ v }};{% endfor %}{{ x.keys() | list }}{{ x.get('q', 1) }}",
    "{% for m in messages %}{% if m.content is none %}{% continue %}{% endif %}{{ m.content.strip() }}{% break %}{% endfor %}",
    "{% for a in [1, 2, 3] %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.last }}{% endfor %}",
    "{{ messages[0].content.split('<')[-1].upper() }}{{ messages[::-1][0].role }}{{ 'abc'[1:] }}{{ 'abc'[-1] }}",
    "{% set ns = namespace(a=1) %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}",
    "{% macro f(a, b='d') %}[{{ a }}{{ b }}]{% endmacro %}{{ f(1) }}{{ f('x', b=2) }}",
    "{{ x is mapping }}{{ x.s is string }}{{ x.l is iterable }}{{ x.l is sequence }}{{ x.h is number }}{{ x.t is boolean }}",
    "{{ '{\n' | indent(4, first=true) }}|{{ 'a\n\nb' | indent(2) }}|{{ 'a\nb' | indent('--', blank=true) }}",
    "{{ '%s-%d-%5.2f' | format('a', 2, 0.5) }}{{ 'a' | replace('a', 'b') }}{{ [3, 1] | sort | join('-') }}",
    "{{ 7 // 2 }} {{ 7 / 2 }} {{ -7 % 3 }} {{ 2 ** 3 }} {{ 1 == 1.0 }} {{ '3' | int + 1 }} {{ 'a' ~ none ~ 1.5 }}",
    "{{ 'a' | safe + '<b>\"' + 'c' | safe + \"it's\" }}|{{ '<' | safe }}",
    "{{ ('<' | safe) ~ '<' }}{{ '<' | safe }}",
    "  {% if true %}\n  x\n  {% endif %}\n {%- generation %} y {%- endgeneration %}z\n",
    "{{ strftime_now('%d %b %Y') }}{{ tools is none }}{{ documents is none }}{{ tools is defined }}",
    "{{ x.l | map('string') | list }}{{ [1, 2, 3] | selectattr('x') | list }}{{ 'a,b'.partition(',') }}{{ '%s!' % x.s }}",
    "{% set l = [1] %}{{ 'abc'.rsplit('b') }}{{ 'x'.center(5) }}{{ l }}{{ '%s' % 1 }}",
]


@pytest.mark.parametrize("template", ALIKE)
def test_minijinja_and_the_sandbox_do_as_jinja2_does(template: str) -> None:
    expected = by_jinja2(template, MESSAGES, None, x=X, add_generation_prompt=True)
    assert expected is not None
    assert render_template(template, MESSAGES, None, variables={"x": X}, now=NOW) == expected
    context = {"messages": MESSAGES, "tools": None, "documents": None, "x": X}
    helpers = {"strftime_now": NOW.strftime}
    assert render_sandboxed(template, context, helpers, {"tojson": tojson}, jinja.FUEL, jinja.OUTPUT) == expected


def test_a_template_changes_nothing_that_it_is_given() -> None:
    data = {"x": {"a": [1]}}
    for template in ("{% set _ = x.update({'b': 1}) %}{{ x }}", "{% set _ = x.a.append(2) %}{{ x }}"):
        assert "2" in render_template(template, MESSAGES, None, variables=data) or "b" in template
        assert data == {"x": {"a": [1]}}


def test_without_jinja2_one_line_says_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{{ 'a,b'.partition(',') }}"
    assert render_template(template, MESSAGES, None) == "('a', ',', 'b')"
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr("toolspeak.wire.prompt.jinja_sandbox.installed", lambda: False)
    with pytest.raises(TemplateError, match=r"no method named partition.*pip install 'toolspeak\[jinja\]'") as caught:
        render_template(template, MESSAGES, None)
    assert "\n" not in str(caught.value)
    with pytest.raises(TemplateError, match="refuses these messages: No"):
        render_template("{{ raise_exception('No') }}", MESSAGES, None)


GROW = "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}{% set ns.s = EXPRESSION %}{% endfor %}"


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
        *(GROW.replace("EXPRESSION", e) for e in ("ns.s ~ ns.s", "ns.s + ns.s", "ns.s.replace('x', ns.s)", "ns.s * 9")),
        "{{ 'x' * 10 ** 11 }}",
        "{{ '%99999999999s' | format('a') }}",
        "{{ '%99999999999s' % 'a' }}",
        "{{ 'a' | indent(100000000000, first=true) }}",
        "{{ 'x'.center(10 ** 11) }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ range(10 ** 9) | list }}",
        "{% macro f(s) %}{{ f(s ~ s) }}{% endmacro %}{{ f('a') }}",
        "{% set l = [1] %}{% for i in range(60) %}{% set _ = l.extend(l) %}{% endfor %}",
        "{{ ''.__class__.__mro__ }}",
    ],
)
def test_the_sandbox_has_bounds(template: str) -> None:
    with pytest.raises(TemplateError):
        render_sandboxed(template, {"messages": MESSAGES}, {}, {}, 1_000_000, 1_000_000)


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(99999) %}{{ x }}{% endfor %}",
        "{{ '%99999999999s' | format('a') }}",
        "{{ 'a' | indent(100000000000, first=true) }}",
        "{{ 'x' * 10 ** 11 }}",
        "{% macro f(s) %}{{ f(s) }}{% endmacro %}{{ f('a') }}",
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    ],
)
def test_minijinja_has_bounds(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja, "OUTPUT", 1_000_000)
    monkeypatch.setattr(jinja, "FUEL", 5_000_000)
    with pytest.raises(TemplateError):
        render_template(template, MESSAGES, None, variables={"x": "x" * 100})


def test_a_prompt_has_at_most_so_many_characters() -> None:
    template = "{% for i in range(400) %}{{ x }}{% endfor %}"
    assert len(render_template(template, MESSAGES, None, variables={"x": "x" * 49_000})) == 19_600_000
    with pytest.raises(TemplateError):
        render_template(template, MESSAGES, None, variables={"x": "x" * 51_000})


DEEP = {
    "sums": "{{ %s a }}" % ("a + " * 30_000),
    "fields": "{{ a%s }}" % (".b" * 30_000),
    "filters": "{{ a%s }}" % ("|upper" * 30_000),
    "calls": "{{ a%s }}" % ("()" * 30_000),
    "conditions": "{{ %s a }}" % ("a if b else " * 30_000),
    "negations": "{% if " + "not " * 30_000 + "a %}{% endif %}",
    "branches": "{% if a %}" + "{% elif b %}x" * 30_000 + "{% endif %}",
    "behind a comment": '{# {{ " #}{{ ' + "a + " * 30_000 + 'a }}"',
    "behind an object": "{{ {'a': {}}, " + "a + " * 30_000 + "a }}",
    "behind raw text": "{% raw %}{{ ' {% endraw %}{{ " + "a + " * 30_000 + "a }}",
}


@pytest.mark.parametrize("what", DEEP)
def test_no_template_is_too_deep_for_what_compiles_it(what: str) -> None:
    """Any of these ended the process."""
    with pytest.raises(TemplateError, match="at most 1000 tokens"):
        render_template(DEEP[what], [], None)
    assert free_variables(DEEP[what]) == []


def test_what_is_long_and_not_deep_is_rendered() -> None:
    text = "{{ 'a + ' ~ \"it's }} (\" ~ {'a': {'b': 1}}['a']['b'] }}{# {{ a + a #}{% raw %}{{ ' }}{% endraw %}"
    assert render_template(text * 2_000, [], None) == "a + it's }} (1{{ ' }}" * 2_000
    assert render_template("{{ {'a': 1}}}" * 2_000, [], None).count("1") == 2_000


def test_a_long_template_is_not_searched_for_each_of_its_variables() -> None:
    names = [f"v{i:05}" for i in range(20_000)]
    template = "".join(f"{{{{ {name} }}}}" for name in names)
    notes = ts.render([{"role": "user", "content": "Hi"}], [], "hermes", template=template).notes
    looked_at = [note.detail for note in notes if note.rule == "variable-not-given"]
    assert looked_at == names[: len(looked_at)]
    assert 0 < len(looked_at) <= 2_000_000 // len(template)


@pytest.mark.parametrize(
    "call",
    [
        "strftime_now(messages)",
        "strftime_now()",
        "messages | indent",
        "messages | tojson(separators=1)",
        "1 | tojson(foo=1)",
    ],
)
def test_a_function_that_is_given_something_else_is_an_error_of_the_template(call: str) -> None:
    template = f"{{{{ {call} }}}}"
    with pytest.raises(TemplateError, match="the chat template cannot be rendered: "):
        ts.render("Hi", None, "hermes", template=template, now=NOW)


def test_indented_json_is_bounded_while_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jinja, "OUTPUT", 100_000)
    deep: list[object] = []
    for _ in range(90):
        deep = [deep, 1]
    with pytest.raises(TemplateError, match="at most 100000 characters"):
        jinja.tojson([deep] * 50, indent=4)
    assert len(jinja.tojson([1], indent=10**9)) < 2_000
    assert jinja.tojson([1, {"a": []}], indent=2) == json.dumps([1, {"a": []}], indent=2)
