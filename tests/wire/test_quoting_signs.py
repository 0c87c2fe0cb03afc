"""Calls in comments, in elements of quoted code and between escaped tags, which are text, and real calls near signs that look
like these, for every dialect."""

from __future__ import annotations

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from test_foreign_quotations import OBJECT, readable, runs
from test_surroundings import INLINE
from wire_cases import called, read_at_cuts, stream

from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

BLOCKS = (
    *("/* */", "/** */", "{/* */}", "(* *)", "{# #}", "{- -}", "{{-- --}}", "{{!-- --}}"),
    *("<!-- -->", "<%-- --%>", "<# #>", "#| |#", "#= =#"),
)
TAGS = (
    *("<CODE> </CODE>", "<Code> </Code>", '<code class="x"> </code>', "<Pre lang=json> </Pre>", "<PRE> </PRE>"),
    *("<samp> </samp>", "<kbd> </kbd>", "<tt> </tt>", '<Q cite="a"> </Q>', "<blockquote> </blockquote>"),
)
IN_TAGS = (
    *("{0}CALL{1}", "Use {0}CALL{1} for it.", "So:\n{0}\nCALL\n{1}", "So:\n{0}<code>\nCALL\n</code>{1}\nOk."),
    "So:\n{0}<|tool|>CALL<|/tool|>{1}",
)
COMMENTS = {
    "in a line": "As in {0} CALL {1} here.",
    "on a line": "Example:\n{0} CALL {1}\nOk then.",
    "on lines": "Example:\n{0}\nCALL\n{1}\nOk then.",
    "alone": "{0}\nCALL\n{1}",
    "with words": "Example:\n{0} It is written so:\n\n  CALL\n\nand so on\n{1}\nOk then.",
    "several calls": "{0}\nCALL\nCALL\n{1}\n",
    "in markers of another family": "So:\n{0} <|tool|>CALL<|/tool|> {1}\n",
}
SHOWN = {
    **{f"{pair} {where}": form.format(*pair.split(" ")) for pair in BLOCKS for where, form in COMMENTS.items()},
    **{f"{pair} {form}": form.format(*pair.rsplit(" ", 1)) for pair in TAGS for form in IN_TAGS},
    "documentation": "/**\n * Use it so:\n * CALL\n */\nfunction f() {}",
    "documentation of Python": 'def f():\n    """Use it so:\n    CALL\n    """\n    return 1',
    "a comment of Ruby": "So:\n=begin\nCALL\n=end\nOk then.",
    "an open one below a closed one": "/* a */\n/* b\nCALL\n*/",
    "a pair in comments": "So:\n# <nav>\nCALL\n</nav>",
    "escaped tags": "For example:\n&lt;tool_call&gt;\nCALL\n&lt;/tool_call&gt;\nThat is the format.",
    "escaped tags on the line": "For example:\n&lt;x&gt;CALL&lt;/x&gt;\nThat is the format.",
    "escaped tags with a name": 'So:\n&lt;call name="x"&gt;\nCALL\n&lt;/call&gt;\nThat is it.',
    "escaped tags as numbers": "So:\n&#60;tool_call&#62;\nCALL\n&#60;/tool_call&#62;\nThat is it.",
    "tags escaped twice": "So:\n&amp;lt;call&amp;gt;\nCALL\n&amp;lt;/call&amp;gt;\nThat is it.",
    "escaped tokens": "So:\n&lt;|tool|&gt;\nCALL\n&lt;|/tool|&gt;\nThat is it.",
}
"""A text only shows the call here: it stays text, byte for byte."""
CALLED = {
    "a tag in a comment": "# <nav>\nCALL",
    "another": "I look at it.\n// <T>\nCALL",
    "a third": "-- <br>\nCALL",
    "a mark in a comment": "# [DONE]\nCALL",
    "a quoted tag": "> <nav>\nCALL\n",
    "a tag in a heading": "# Fix <nav> and <main>\nCALL",
    "a heading with a name": "## Look {#look}\n\nCALL",
    "a glob": "I search in src/*\nCALL",
    "globs in code": "I search in `src/*` and `*/test`:\nCALL\nThen all of */ goes.",
    "a glob of the root": "I look at src/** and /*\nCALL\nand not at */ there.",
    "a line that begins with a glob": "/* is what I search.\n\nCALL\nI wait.",
    "a command with a glob": "ls /*\n\nCALL\n",
    "globs in a list": "The paths */a, b/* and /*.py match:\n- src/*\n- */test\n\nCALL",
    "globs around": "The glob /* matches all.\n\nCALL\n\nAnd */ matches folders.",
    "globs on lines": "Paths:\n/*\n/usr/*\n\nCALL\nI wait for */etc.",
    "globs in a table": "| a | b |\n|---|---|\n| /* | */ |\n\nCALL",
    "globs of all files": "Paths:\n/*\n!/src\n\nCALL\n\nThe rule **/*.o covers the rest.",
    "types of all files": "/* is no type.\nCALL\nAccept: */*.",
    "globs of hidden files": "Paths:\n/*\nCALL\nI skip */.git too.",
    "an opener alone": "/*\nCALL",
    "an opener alone, with a text below": "/*\nCALL\nI wait.",
    "a comment above": "/* main */\nint main(void) {}\nCALL",
    "a comment that ends the line above": "int main(void) { return 0; } /* end */\n\nCALL",
    "comments above and below": "body { /* x */ }\nCALL\nbody { /* y */ }",
    "comments in sentences": "I add /* x */ to it.\nCALL\nThen I remove /* y */ too.",
    "an opener in a sentence": "The file begins with /* and never ends it.\n\nCALL",
    "a quoted comment without its end": "It begins so:\n/*\n * Copyright\n\nI fix it.\nCALL\nThen I wait.",
    "a comment after": "CALL\n/* done */",
    "a closer after": "CALL\n*/",
    "a closer far below": "/*\nCALL\n" + "I wait. " * 50 + "*/",
    "code above": "#include <stdio.h>\nCALL",
    "schedules": "I set 0 */2 * * * and\n\n/*\nCALL\n\nThen */5 * * * * runs.",
    "patterns": "The pattern is /a*/ and /*/.\nCALL\nNow */ ends it.",
    "an address": "See http://a.org//b/*\nCALL",
    "a footnote": "*First*, (*) I look\n\nCALL\n(*) means it.",
    "marks of a footnote": "A note.(*\nCALL\n*) means it is new.",
    "a comment of a template": "The template has {# a comment #}.\nCALL",
    "emphasis in brackets": "(*Note:* I look first.\n\nCALL\n\nThat is *it*).",
    "strong emphasis in brackets": "(**Note:** I look.)\nCALL\n(That is **it**)",
    "a star that is explained": "(* means required)\n\nCALL\n\nI fill in all fields (marked with *).",
    "a pointer": "(*p)++;\nCALL\n(char *) q;",
    "patterns of a shell": "case $x in\n(*.c) a;;\nesac\nCALL\n  *) b;;",
    "an aside in brackets": "(*looks it up\nCALL\nand waits*)",
    "an open comment of a template": "The template has {#\nand no end.\nCALL",
    "comments of several languages": "{- a -}\n--[[ b ]]\n#| c |#\n<# d #>\n<%-- e --%>\nCALL",
    "an open comment of Ruby": "=begin\nCALL",
    "quotes in a sentence": 'The docstring is """ here.\nCALL',
    "quotes above": '"""Looks it up."""\nCALL\nI wait.',
    "an escaped bracket": "If a &lt; b then I look:\nCALL\nOk.",
    "an escaped tag": "Use &lt;b&gt;\nCALL\nOk then.",
    "escaped tags that are the reply": "&lt;tool_call&gt;\nCALL\n&lt;/tool_call&gt;",
    "escaped tags that end it": "I look.\n&lt;tool_call&gt;\nCALL\n&lt;/tool_call&gt;",
    "escaped tags that begin it": "&lt;tool_call&gt;\nCALL\n&lt;/tool_call&gt;\nI wait.",
    "HTML above": '<div class="x">\n<p>Hi</p>\n</div>\n\nCALL',
    "an element above": 'I use <code class="x">find</code>:\nCALL',
    "names of elements": "The <CODE> tag and <pre class=x> are missing.\n\nCALL",
    "a quotation above": "<blockquote>You want it.</blockquote>\nCALL",
    "an element of another name": "<query>two words</query>\nCALL",
    "a diff above": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\nCALL",
    "a rule": "---\nCALL\n---",
}
"""A call is read here."""


def own(d: Dialect) -> str:
    return wire(d, find("two words")).strip()


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_what_only_shows_a_call_stays_text(d: Dialect) -> None:
    for what, form in SHOWN.items():
        text = form.replace("CALL", own(d))
        reply = collect(stream(d, [text], TOOLS))
        assert (reply.text, reply.calls) == (text, ()), what


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_no_form_of_a_call_runs_that_is_only_shown(d: Dialect) -> None:
    for call in readable(d)[:3]:
        for what, form in list(SHOWN.items())[::4]:
            assert not runs(d, form.replace("CALL", call)), (what, call)


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_call_near_signs_that_look_like_these_is_read(d: Dialect) -> None:
    for what, form in CALLED.items():
        if d in INLINE or form.endswith("CALL"):
            reply = collect(stream(d, [form.replace("CALL", own(d))], TOOLS))
            assert called(reply) == ["find"], what
    for call in readable(d)[1:3]:
        for what in list(CALLED)[:6]:
            assert runs(d, CALLED[what].replace("CALL", call)), (what, call)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_all_calls_below_a_sign_are_read(d: Dialect) -> None:
    """The opener of the second one is no marker of another family before it, though a bare object may follow it."""
    behind = wire(d, find("one"), find("two")) + "\nDone."
    plain = collect(stream(d, ["Hm.\n" + behind], TOOLS))
    for above in ("(* note\n", "Hm.\n{- x\n", "Hm.\n<example>\n", "Hm.\n- "):
        reply = collect(stream(d, [above + behind], TOOLS))
        assert called(reply) == called(plain), above
        assert reply.text.removeprefix(above).strip() == plain.text.removeprefix("Hm.\n").strip(), above


@pytest.mark.parametrize("name", ["hermes", "tool-json", "lfm2", "qwen3-coder"])
def test_at_every_cut(name: str) -> None:
    d = get(name)
    for form in (*list(SHOWN.values())[::9], *list(CALLED.values())[::3]):
        for call in (own(d), OBJECT):
            read_at_cuts(d, form.replace("CALL", call), TOOLS, every=2)


def test_a_long_call_in_a_comment_is_held_back_up_to_a_limit() -> None:
    """Up to the limit it is text; above it, the call has left already and is not whole."""
    d = get("hermes")
    for size, calls in ((60_000, []), (70_000, [False])):
        text = f"/*\n{wire(d, find('x' * size)).strip()}\n*/"
        assert [c.whole for c in collect(stream(d, [text], TOOLS)).calls] == calls


@pytest.mark.parametrize(
    "unit", ["/* CALL */\n", "/*\nCALL\n", "/* ", '<code class="x">CALL', "<q ", "&lt;x&gt;\nCALL\n"]
)
def test_many_signs_take_linear_time(unit: str) -> None:
    d = get("hermes")
    text = unit.replace("CALL", own(d))
    assert growth(lambda n: lambda: stream(d, ["So:\n" + text * n], TOOLS), 50) <= LINEAR
