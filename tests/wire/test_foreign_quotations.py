"""Calls in the forms of other families, in the places that only show a call: what makes a call of the dialect's own text makes them
text too, in every dialect."""

from __future__ import annotations

from functools import cache

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from test_surroundings import SHOWN as SURROUNDED
from wire_cases import DIALECTS, called, read_at_cuts, stream

from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.foreign_markers import quotation_before
from toolspeak.wire.reading.lexicon import program

OBJECT = '{"name": "find", "arguments": {"query": "two words"}}'
MORE = (
    f"<tool_call>{OBJECT}</tool_call>",
    f"<tools>{OBJECT}</tools>",
    f"<|python_tag|>{OBJECT}",
    f"<function_call>{OBJECT}</function_call>",
    f"[TOOL_CALLS] [{OBJECT}]",
    f"functools[{OBJECT}]",
    f"<unknown><markers>\n{OBJECT}\n</markers></unknown>",
    "<function=find>\n<parameter=query>\ntwo words\n</parameter>\n</function>",
    '<invoke name="find">\n<parameter name="query">two words</parameter>\n</invoke>',
)
"""Forms besides those of the dialects."""
COMMENTED = {
    "a comment": "So:\n# {call}\nThat is it.",
    "a comment that ends the reply": "So:\n# {call}",
    "a comment that begins it": "# {call}\nThat is it.",
    "another comment": "So:\n// {call}",
    "a third": "So:\n-- {call}",
    "a comment of HTML": "So:\n<!-- {call} -->",
    "a quoted line": "So:\n> {call}",
    "an indented line": "So:\n\n    {call}",
    "an element": "So:\n<code>{call}</code>",
    "an element in a line": "Use <code>{call}</code> for it.",
    "an element on lines": "So:\n<pre>\n{call}\n</pre>\nThat is it.",
    "an element in an element": "So:\n<pre><code>\n{call}\n</code></pre>",
    "another element": "So:\n<kbd>{call}</kbd>\nThat is it.",
    "a third element": "Use <samp>{call}</samp> for it.",
    "inline code": "So:\n`{call}`",
    "inline code in a line": "So it is `{call}` here.",
    "quotation marks": 'So you say "{call}" to it.',
    "a fence of another language": "So:\n```python\nx = 1\n{call}\n```",
    "other fences": "So:\n~~~\n{call}\n~~~",
    "a table": "| call | what |\n|---|---|\n| {call} | looks |\n",
    "an example in a line": "You can write e.g. {call} to do it.",
    "the beginning of a sentence": "{call} is how I would do it.",
    "another beginning": "I look.\n{call} (do not run this)",
    "an attribute": "Use <a title='{call}'>this</a> one.",
    "an assignment": "So x = {call}; print(x)",
    "a diff": "```diff\n+ {call}\n- x\n```\n",
    "a prompt of a shell": "So:\n>>> {call}\nThat is it.",
}
PLACES = COMMENTED | {what: form for what, form in SURROUNDED.items() if form.count("{call}") == 1}
"""A text only shows the call here."""
CALLED = {
    "a sentence above": "I look it up.\n{call}",
    "a colon above": "Let me look:\n\n{call}",
    "a sentence before": "I look. {call}",
    "words before": "I could write {call}",
    "a thought above": "<think>\nI need it.\n</think>\n\n{call}",
    "two": "{call}\n{call}",
    "a heading": "# Step 1\n{call}\n",
    "a heading without words": "#\n{call}\n",
    "a comment above": "# a comment\n\n{call}",
    "inline code above": "I use `find`:\n{call}",
    "an element above": "I use <code>find</code>.\n{call}",
    "a quotation above": "> You want it.\n\n{call}",
    "an item": "I look:\n- I think.\n- {call}\n",
    "a list above": "1. First.\n2. Then.\n\n{call}",
    "a rule above": "I look.\n\n---\n\n{call}",
}
"""A call of any form that the dialect reads is read here."""
SEVERAL = {
    "items": "I look:\n- {call}\n- {call}\n",
    "numbered items": "1. {call}\n2. {call}\n\nI wait.",
    "a tag that is the reply": "<action>{call}</action>",
    "tags": "So:\n<step>{call}</step>\n<step>{call}</step>",
    "tags on lines": "So:\n<step>\n{call}\n</step>\n{call}",
}
"""Calls in one of these forms are read here, several of them."""


@cache
def forms() -> tuple[str, ...]:
    """The calls of all families, without those that are several paragraphs or have a fence of their own."""
    calls = dict.fromkeys((*(wire(d, find("two words")).strip() for d in TALKING), *MORE))
    return tuple(call for call in calls if not any(("\n\n" in call, "```" in call)))


def runs(d: Dialect, text: str) -> bool:
    return "find" in [call.name for call in collect(stream(d, [text], TOOLS)).calls if call.whole]


@cache
def readable(d: Dialect) -> tuple[str, ...]:
    """The calls that the dialect reads, its own first."""
    own = (wire(d, find("two words")).strip(),) if d in TALKING else ()
    return (*own, *(form for form in forms() if form not in own and runs(d, form)))


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_what_makes_the_own_form_text_makes_every_form_text(d: Dialect) -> None:
    own, *foreign = readable(d)
    for what, form in PLACES.items():
        if not runs(d, form.format(call=own)):
            for call in foreign:
                assert not runs(d, form.format(call=call)), (what, call)


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_a_call_in_any_form_that_is_made(d: Dialect) -> None:
    for what, form in CALLED.items():
        for call in readable(d):
            assert runs(d, form.format(call=call)), (what, call)


def test_calls_in_every_item_or_tag_are_made() -> None:
    """Where a bare object is a call, so that the markers around it may be unknown."""
    bare = [d for d in DIALECTS if runs(d, OBJECT)]
    assert len(bare) > 30
    wrong: list[tuple[str, str, str]] = []
    for d in bare:
        for call in filter(readable(d).__contains__, MORE[:4]):
            for what, form in SEVERAL.items():
                reply = collect(stream(d, [form.format(call=call)], TOOLS))
                if [c.whole for c in reply.calls] != [True] * form.count("{call}"):
                    wrong.append((d.name, what, call))
    assert not wrong


@pytest.mark.parametrize("name", ["hermes", "tool-json", "granite3", "xlam", "claude-legacy", "lfm2", "granite-20b-fc"])
def test_at_every_cut(name: str) -> None:
    d = get(name)
    for form in ("So:\n# {}\nSo.", "# {}\n\n{}", "So:\n<pre><code>\n{}\n</code></pre>", "- {}\n- or", "{} is it"):
        for call in (*MORE[:6], MORE[-1]):
            read_at_cuts(d, form.replace("{}", call), TOOLS)


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_call_below_a_line_that_ends_with_a_marker_counts(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for line in (
        "> Please fix the <nav>",
        "> Is it Promise<string>",
        "# The <nav>",
        "# [DONE]",
        "Use `<nav>",
        "- <https://a.org>",
    ):
        for text in (f"{line}\n\n{call}", f"So:\n{line}\n\n\n{call}"):
            assert called(read_at_cuts(d, text, TOOLS, every=4)) == ["find"], text


def test_a_quotation_ends_with_its_paragraph_or_closer() -> None:
    d = get("tool-json")
    call = f"<tool_call>\n{OBJECT}\n</tool_call>"
    for text in (f"# {call}\n\n{call}", f"So <code>{call}</code>.\n{call}"):
        reply = read_at_cuts(d, text, TOOLS)
        assert called(reply) == ["find"]
        assert reply.text.startswith(text[: -len(call)])


@pytest.mark.parametrize(
    ("text", "opener", "word"),
    [
        ("", "{", ""),
        ("# ", "{", ""),
        ("# <a>", "{", "#"),
        ("So.\n  // <function_calls>\n[B]\n", "{", "//"),
        ("So.\n  // <a>\n[B]\n", "{", ""),
        ("# <nav>\n", "{", ""),
        ("> <nav>\n<function_calls>", "{", ""),
        ("#\n<a>", "{", ""),
        ("# so <a>", "{", ""),
        ("## <a>", "{", ""),
        ("# </a>", "{", ""),
        ("# functools", "[", "#"),
        ("# functools", "\n[", ""),
        ("# functools", "<call>", ""),
        ("<code><a>", "{", "<code>"),
        ("<pre>\n<a>\n", "{", "<pre>"),
        ("<code>a</code><a>", "{", ""),
        ("say `<a>\n", "{", "`"),
        ("say `x`<a>\n", "{", ""),
        ("say ` <a>\n", "{", ""),
        ("# <a>\n\n", "{", ""),
        ("> Fix <a>\n \n", "{", ""),
        ("# <a>\n\n<b>\n", "{", ""),
        ("# <a>", "<tool_call>", "#"),
        ("# <a>\n", "<tool_call>", ""),
        ("# <a>", "\n<tool_call>", ""),
    ],
)
def test_what_begins_a_quotation_before_markers(text: str, opener: str, word: str) -> None:
    assert quotation_before(text, opener, program(get("hermes"), True)) == word


@pytest.mark.parametrize(
    "unit", ["# <a>{call}\n", "# <a>{call}\n\n", "<code><a>{call}", "- <a>{call}</a>\n- so\n", "# <a>{", "`<a>\n{"]
)
def test_many_quotations_take_linear_time(unit: str) -> None:
    d = get("tool-json")
    assert growth(lambda n: lambda: stream(d, [unit.replace("{call}", OBJECT) * n], TOOLS), 50) <= LINEAR
