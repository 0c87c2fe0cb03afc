"""Where a call counts and where a text only talks of it: the table of decision 12, for every dialect."""

from __future__ import annotations

import json
import random

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import cuts, merged, stream

from cost import LINEAR, growth
from toolspeak.dialects import get
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

INLINE = [d for d in TALKING if not d.header]
FENCED = [d for d in INLINE if "```" not in wire(d, find("two words")) and d.name != "llama3-builtin"]  # which is code
HERMES = get("hermes")
CALLS = {
    "the reply": "{call}",
    "on a line of its own": "I look.\n{call}",
    "in a paragraph of its own": "I look.\n\n{call}",
    "at the end of a line": "I look. {call}",
    "with a text on the lines behind it": "{call}\nI wait for the answer.",
    "behind code": "I use `find` and ``this``:\n{call}",
    "behind a fence in another": "So:\n```markdown\n# How\n```json\n1\n```\n```\n{call}",
    "behind a quotation": '> Find it.\n\nHe said: "Do it!"\n{call}',
    "behind a quoted line that begins the reply": "> Use the `find` tag.\n{call}",
    "behind a comment": "<!-- now -->\n{call}",
    "behind a word on elements": "Use the <code> tag or <pre>.\n{call}",
    "at the end of a line, with a text below": "I look. {call}\nI wait for the answer.",
    "behind a sentence that ends with it": "Let me look {call}",
}
"""A call is read here."""
FENCES = {
    "a fence alone": "```json\n{call}\n```",
    "a fence that ends the reply": "I look:\n```\n{call}\n```",
    "a fence that begins it": "```\n{call}\n```\nThis looks for it.",
}
"""Here too, in a fence."""
TALK = {
    "code": "You write `{call}` for that.",
    "code in two backticks": "You write ``{call}`` for that.",
    "code with blanks": "You write ` {call} ` for that.",
    "code with blanks in two backticks": "You write `` {call} `` for that.",
    "an element of code": "<code>{call}</code>",
    "an element in an element": "So:\n<pre><code>\n{call}\n</code></pre>",
    "a sentence that goes on in the next line": "Instead of {call}\nI will just answer.",
    "a sentence that goes on in a paragraph": "You could write something like {call}\n\nbut **that** is wrong.",
    "a sentence that goes on behind a comma": "If it were so, {call}\n\nit would be wrong.",
    "a sentence in other letters": "मैं {call}\nनहीं लिखता हूं",
    "a fence between texts": "For example:\n```json\n{call}\n```\nSo it is done.",
    "a fence with more in it": "So:\n```python\n# how it is done\n{call}\n```\nThat is it.",
    "a fence with a language in another": "So:\n```markdown\n# How\n\n```json\n{call}\n```\n```\nThat is it.",
    "another fence": "So:\n~~~\n{call}\n~~~\nThat is it.",
    "a comment": "A comment <!-- {call} --> says so.",
    "a quotation": 'The text "{call}" is a call.',
    "another quotation": "The text “{call}” is a call.",
    "lines that are quoted": "He wrote:\n> {quoted}\nand left.",
    "lines that are indented": "An example:\n\n    {indented}\n\nSo it is done.",
    "what is not done": "I will not send {call} because it is wrong.",
    "a sentence": "One writes {call} and waits.",
    "a string of JSON": '{{"example": {string}}}',
    "a line that is commented": "# {call}\nNothing was done.",
    "another such line": "So:\n// {call}\nNothing was done.",
    "a third such line": "-- {call}\nNothing was done.",
    "a quotation whose first line alone is marked": "The log:\n> {call}\n\nThat was it.",
    "words and a call in a quoted line that begins the reply": "> He wrote: {call}\nand left.",
    "words and a call in a line quoted twice": "> > He wrote: {call}\n\nThat was it.",
    "words and a call in a quoted line": "The log:\n> He wrote: {call}\nThat was it.",
    "words and a call in an indented line": "An example:\n\n    x = {call}\n\nSo it is done.",
    "an indented call whose first line alone is": "An example:\n\n    {call}\n\nSo it is done.",
    "lines that are quoted, first": "> {quoted}\nHe wrote so.",
    "a fence in a longer one": "````markdown\n```\n{call}\n```\n````\nThat is how it is written.",
}
"""A text only talks of the call here: nothing is whole that could run."""


def told(text: str, d: Dialect) -> str:
    call = wire(d, find("two words")).strip()
    return text.format(
        call=call, quoted=call.replace("\n", "\n> "), indented=call.replace("\n", "\n    "), string=json.dumps(call)
    )


def whole(d: Dialect, text: str) -> list[str]:
    """The calls that could run, the same at every cut."""
    events = stream(d, [text], TOOLS)
    for chunks in list(cuts(text, random.Random(text)))[::3]:
        assert merged(stream(d, chunks, TOOLS)) == merged(events)
    return [call.name for call in collect(events).calls if call.whole]


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_call_where_calls_stand(d: Dialect) -> None:
    for what, text in CALLS.items():
        if d.name == "llama3-builtin" and "wait" in text:
            continue  # all that stands behind its mark is code
        assert whole(d, told(text, d)) == ["find"], what


@pytest.mark.parametrize("d", FENCED, ids=lambda d: d.name)
def test_a_call_in_a_fence(d: Dialect) -> None:
    for what, text in FENCES.items():
        assert whole(d, told(text, d)) == ["find"], what


@pytest.mark.parametrize("d", FENCED, ids=lambda d: d.name)
def test_a_fence_between_words_and_a_call_is_an_example(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    assert whole(d, f"For example:\n```\n{call}\n```\nNow:\n{call}") == ["find"]
    for chunk in (f"For example:\n```\n{call}\n```\n{call}", f"One:\n```\n{call}\n```\n```\n{call}\n```"):
        assert len(whole(d, chunk)) == 1 + chunk.startswith("One"), chunk


@pytest.mark.parametrize("d", FENCED, ids=lambda d: d.name)
def test_fences_between_texts_stay_text(d: Dialect) -> None:
    """Byte for byte, whatever their language, and several of them."""
    call = wire(d, find("two words")).strip()
    for text in (
        TALK["a fence between texts"],
        "Write this:\n```xml\n{call}\n```\nThen wait.",
        "Write this:\n\n```\n{call}\n```\n\nand get:\n```\nnothing\n```",
        "One:\n```\n{call}\n```\n```json\n{call}\n```\nSo it is done.",
        "One:\n```\n{call}\n```\n```python\nx = 1\n```",
    ):
        if "`" not in call:
            text = text.format(call=call)
            assert whole(d, text) == []
            reply = collect(stream(d, [text], TOOLS))
            assert (reply.text, reply.calls, reply.notes) == (text, (), ()), text


def test_a_long_fence_between_texts_is_held_back_up_to_a_limit() -> None:
    """Up to the limit an example is text; above it, its call has left already and is not whole."""
    for size, text, whole_calls in ((60_000, True, []), (70_000, False, [False])):
        call = wire(HERMES, find("x" * size)).strip()
        written = f"So:\n```\n{call}\n```\nThat is it."
        events = stream(HERMES, [written], TOOLS)
        reply = collect(events)
        assert (reply.text == written, [c.whole for c in reply.calls]) == (text, whole_calls)
        chunks = [written[i : i + 7] for i in range(0, len(written), 7)]
        assert merged(stream(HERMES, chunks, TOOLS)) == merged(events)
        last = collect(stream(HERMES, [f"So:\n```\n{call}\n```"], TOOLS))
        assert [(c.name, c.whole) for c in last.calls] == [("find", True)]


@pytest.mark.parametrize(
    "form", ["```\n{call}\n```\n", "So:\n```\n{call}\n```\n", "```\n", "```\n{call}\n```\n<|im_end|>\n"]
)
def test_many_fences_after_a_text_take_linear_time(form: str) -> None:
    block = form.format(call=wire(HERMES, find("two words")).strip())
    assert growth(lambda n: lambda: stream(HERMES, ["So:\n" + block * n], TOOLS), 50) <= LINEAR


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_talk_of_a_call(d: Dialect) -> None:
    """Also of one that is a message of its own, of which the marks stand in a text."""
    call = wire(d, find("two words")).strip()
    for what, text in TALK.items():
        code = "`{call}`" in text or "` {call} `" in text
        if not code and (("`" in call and "`" in text) or ("\n\n" in call and "{call}" in text)):
            continue  # such a call ends the fence, or the paragraph, itself
        assert whole(d, told(text, d)) == [], what


MESSAGES = [d for d in TALKING if d.header]


@pytest.mark.parametrize("d", MESSAGES, ids=lambda d: d.name)
def test_what_is_shown_ends_with_its_message(d: Dialect) -> None:
    """A quotation mark that nobody closes keeps no message from being read."""
    assert d.header
    call = wire(d, find("two words")).strip()
    end = d.header.ends[0] if d.header.ends else "\n"
    for said in ("Use a ` for code.", "It is <!-- open.", "So:\n```\nx = 1", 'He said "no.', "~~~\nx"):
        if end[0] == "\n" and not said.startswith(("Use", "He")):
            continue  # nothing tells that the message is over
        assert whole(d, f"{said}{end}{call}") == ["find"], said
    assert whole(d, f"I look.\n{call}") == ["find"]


@pytest.mark.parametrize("d", MESSAGES, ids=lambda d: d.name)
def test_a_message_that_the_prompt_began_may_begin_with_a_quotation(d: Dialect) -> None:
    assert d.header
    begun = d.header.start + d.header.text + d.header.stop
    for what in ("lines that are quoted, first", "a line that is commented"):
        text = told(TALK[what], d)
        events = stream(d, [text], TOOLS, f"<|start|>user<|message|>Hi{begun}")
        assert not [call for call in collect(events).calls if call.whole], what


@pytest.mark.parametrize("d", MESSAGES, ids=lambda d: d.name)
def test_a_draft_in_the_message_of_a_thought(d: Dialect) -> None:
    if not (d.header and d.header.thought):
        return
    head, end = d.header.thought + d.header.stop, d.header.ends[0]
    call = wire(d, find("two words")).strip()
    for draft in ("I could write {} now, but no.", "Maybe `{}`", 'It is "{}".'):
        assert whole(d, f"{head}{draft.format(call)}{end}") == []


def test_talk_that_can_be_told_at_once_stays_text() -> None:
    """Where what stands before it shows that no call is meant, the text comes back byte for byte."""
    for d in TALKING:
        for what in ("code", "another fence", "a comment", "a quotation", "lines that are quoted"):
            if d.name in ("beam", "muse") and what == "lines that are quoted":
                continue  # the message ends on another line than it begins: what ends it is a mark of the dialect's
            text = told(TALK[what], d)
            call = wire(d, find("two words")).strip()
            if not ("`" in call or "\n\n" in call):
                assert collect(stream(d, [text], TOOLS)).text == text, (d.name, what)


WORDY = ("command-r-plus", "functionary-v1", "llama3-builtin", "mirothinker", "mistral-v11", "solar-open")
"""Dialects in which words may belong to a broken call: to an id, a server's name, an argument without quotes, code."""


@pytest.mark.parametrize("d", [d for d in INLINE if d.name not in WORDY], ids=lambda d: d.name)
def test_a_call_after_a_broken_one_on_its_line_is_in_a_sentence(d: Dialect) -> None:
    """It does not run if the text continues after it, as after any other text on its line."""
    call = wire(d, find("two words")).strip()
    for i in range(len(call) // 2, len(call) - 1, 5):
        for form in ("{}!? I will not send {} because it is wrong.", "{}!? I will not: {} No."):
            text = form.format(call[:i], call)
            events = stream(d, [text], TOOLS)
            assert [c for c in collect(events).calls if c.whole and c.arguments == {"query": "two words"}] == [], text
            for chunks in cuts(text, random.Random(text)):
                assert merged(stream(d, chunks, TOOLS)) == merged(events)
