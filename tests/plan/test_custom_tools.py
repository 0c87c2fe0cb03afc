"""Custom tools with a grammar: calls are held to it, in every dialect, and asked for again where they do not fit."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.api import openai_chat, openai_responses
from toolspeak.dialects import get
from toolspeak.types import Tool, ToolCall
from toolspeak.wire.dialect import Raw
from toolspeak.wire.prompt.calls import write_calls

pytest.importorskip("llguidance")

GRAMMAR = r"""
start: head part+ tail
head: "*** Begin" LF
part: "*** File: " /.+/ LF change+
change: ("+" | "-" | " ") /.*/ LF
tail: "*** End" LF?
%import common.LF
"""
RIGHT = '*** Begin\n*** File: a "b".py\n-x = {1: "<a>"}\n+y = \\\\n\n*** End\n'
WRONG = RIGHT.replace("*** End", "*** Ende")
FORM = {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}
PATCH = {"type": "custom", "name": "patch", "description": "Changes files.", "format": FORM}
DIALECTS = [name for name in ts.dialects() if not any(isinstance(part, Raw) for part in get(name).call)]


def tool(made: dict[str, Any] = PATCH) -> Tool[..., Any]:
    [one] = openai_responses.read_request({"model": "m", "input": "Hi", "tools": [made]}).request.tools or ()
    return one


@pytest.mark.parametrize("name", DIALECTS)
def test_a_call_is_held_to_the_grammar_in_every_dialect(name: str) -> None:
    d, patch = get(name), tool()
    said = [write_calls([ToolCall("call_1", "patch", {"input": text})], d) for text in (WRONG, RIGHT)]
    model = ts.Speaker(ts.Scripted(said), d)
    reply = ts.decide("Change a file", tools=[patch], model=model)
    assert [call.arguments["input"].rstrip("\n") for call in reply.calls] == [RIGHT.rstrip("\n")]
    assert len(model.model.requests) == 2
    assert "does not fit its grammar: at line 5" in str(model.model.requests[1])


FREE = "Edits files. This is a FREEFORM tool, so do not wrap the patch in JSON."


@pytest.mark.parametrize("form", [None, {"type": "text"}, FORM, FORM | {"syntax": "regex", "definition": "a+"}])
def test_what_a_client_says_of_free_text_agrees_with_the_function_that_a_model_gets(form: Any) -> None:
    """In all APIs, in this order: what the client says, then how the text is passed, then its grammar."""
    inner = {"name": "patch", "description": FREE} | ({"format": form} if form else {})
    chat = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "custom", "custom": inner}],
    }
    for one in (tool({"type": "custom", **inner}), *(openai_chat.read_request(chat).request.tools or ())):
        client, passed, *grammar = one.description.split("\n\n", 2)
        assert client == FREE
        assert "one argument, the string `input`" in passed
        assert "that it is not JSON, is about this string" in passed
        assert [text.partition(" ")[0] for text in grammar] == (["The"] if form and "syntax" in form else [])
        assert list(one.parameters["properties"]) == ["input"]


def test_a_grammar_says_where_a_text_leaves_it() -> None:
    for text, said in ((WRONG, "at line 5, column 8"), ("*** Begin\n", "it ends too early"), ("", "it ends too early")):
        [problem] = ts.Toolbox(tool()).validate(ToolCall("", "patch", {"input": text})).problems
        assert said in problem.message
    assert not ts.Toolbox(tool()).validate(ToolCall("", "patch", {"input": RIGHT})).problems


def test_the_same_grammar_by_chat_completions() -> None:
    """Its shape there is another one."""
    form = {"type": "grammar", "grammar": {"syntax": "lark", "definition": GRAMMAR}}
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "custom", "custom": {"name": "patch", "description": "Changes files.", "format": form}}]}  # fmt: skip
    [one] = openai_chat.read_request(body).request.tools or ()
    assert json.dumps(one.parameters) == json.dumps(tool().parameters)


def test_a_regex_is_part_of_the_grammar_of_a_call() -> None:
    digits = tool({**PATCH, "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]{3}|none"}})
    text = ts.grammar("hermes", [digits], choice="patch")
    matcher = pytest.importorskip("llguidance")
    for value, fits in (("123", True), ("none", True), ("12", False), ("none!", False)):
        m = matcher.LLMatcher(matcher.LLTokenizer("byte"), text)
        whole = write_calls([ToolCall("", "patch", {"input": value})], get("hermes")).encode()
        assert (m.try_consume_tokens([*whole]) == len(whole)) is fits


@pytest.mark.parametrize(("start", "noted"), [("start: head", False), ('%ignore "~"\nstart: head', True)])
def test_a_format_that_nothing_holds_while_it_is_written_is_noted(start: str, noted: bool) -> None:
    """Where the model is held to calls by rules that cannot say the format; it is checked all the same."""
    definition = GRAMMAR.replace("start: head", start)
    patch = tool({**PATCH, "format": {**FORM, "definition": definition}})
    d = get("hermes")
    said = [write_calls([ToolCall("call_1", "patch", {"input": text})], d) for text in (WRONG, RIGHT)]
    model = ts.Speaker(ts.Scripted(said, capabilities=["grammar"]), d)
    reply = ts.decide("Change a file", tools=[patch], model=model, choice="patch")
    assert len(model.model.requests) == 2
    assert reply.calls[0].arguments["input"] == RIGHT
    assert ("format-not-held" in [note.rule for note in reply.notes]) is noted


SHORT = r"""
start: "*** Begin" LF change ~ 1..3 "*** End"
change: ("+" | "-" | " ") /[a-z{}<>"\\]{1,12}/ LF
%import common.LF
"""


def sampled(grammar: str, chance: random.Random) -> str:
    """A text that a model without any sense would write under a grammar: each byte is drawn from those allowed."""
    llguidance = pytest.importorskip("llguidance")
    matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), grammar)
    out = bytearray()
    while not matcher.is_accepting():
        mask = matcher.compute_bitmask()
        allowed = [at for at in range(256) if mask[at // 8] >> at % 8 & 1]
        if not allowed:
            break
        out.append(chance.choice(allowed))
        assert matcher.consume_token(out[-1]), matcher.get_error()
        assert len(out) < 5_000
    return out.decode()


@pytest.mark.parametrize("name", ["hermes", "qwen3-coder", "kimi-k2", "tool-json"])
def test_what_is_sampled_under_a_grammar_is_a_call_that_fits(name: str) -> None:
    patch = tool({**PATCH, "format": {**FORM, "definition": SHORT}})
    grammar = ts.grammar(name, [patch], choice="patch", parallel=False, thinking=False)
    texts = {sampled(grammar, random.Random(seed)) for seed in range(20)}
    assert len(texts) > 10
    for text in texts:
        [call] = ts.parse(text, name, [patch]).calls
        assert not ts.Toolbox(patch).validate(call).problems, text
