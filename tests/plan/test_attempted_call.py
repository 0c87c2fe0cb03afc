"""A reply with the markers of a call around something else is asked again, within the usual number of tries."""

from __future__ import annotations

from typing import Any

import pytest

import toolspeak as ts
from replies import hermes_call
from toolspeak.events import Finished, TextDelta
from toolspeak.models.speaker import Speaker

BLOCK = "<tool_call>\n{}\n</tool_call>"
PATCH = BLOCK.format("*** Begin Patch\n*** Update File: a.py\n+x\n*** End Patch")
ATTEMPTS = {
    "code": BLOCK.format("add(a=2, b=3)"),
    "arguments alone": BLOCK.format('{"a": 2, "b": 3}'),
    "the name as a key": BLOCK.format('{"add": {"a": 2, "b": 3}}'),
    "an object in an object": BLOCK.format(
        '{"type": "function", "function": {"name": "add", "arguments": "{\\"a\\": 2}"}}'
    ),
    "a command": BLOCK.format("ls -la"),
    "nothing": "<tool_call></tool_call>",
    "a patch": PATCH,
    "words before it": "I add them.\n\n" + PATCH,
    "words after it": PATCH + "\nI wait.",
    "half a call": "I add them.\n<tool_call>",
}
TALK = {
    "a fence": "The form of a call:\n```xml\n" + PATCH + "\n```\nNothing else.",
    "inline code": "Write `<tool_call>` before it and `</tool_call>` behind it.",
    "a sentence": "<tool_call> and </tool_call> are the markers.",
    "an example between texts": f"The form is:\n\n{PATCH}\n\nThe name comes first.",
    "a thought": f"<think>\n{PATCH}\n</think>\n\nHello.",
}
CALL = hermes_call("add", a=2, b=3)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def asked(model: ts.Scripted, verb: Any, dialect: str = "hermes", **options: Any) -> ts.Reply:
    return verb("2 + 3?", tools=[add], model=Speaker(model, dialect), **options)


@pytest.mark.parametrize("text", ATTEMPTS.values(), ids=ATTEMPTS)
def test_an_attempt_is_asked_again(text: str) -> None:
    model = ts.Scripted([text, CALL, "It is 5."])
    reply = asked(model, ts.run)
    assert (reply.text, len(model.requests)) == ("It is 5.", 3)
    assert next(step.reply.text for step in reply.steps) == text
    assert "re-asked" in [note.rule for note in reply.notes]
    assert text in [message.get("content") for message in reply.messages]
    model = ts.Scripted([text, CALL])
    assert asked(model, ts.decide).calls[0].arguments == {"a": 2, "b": 3}
    assert asked(ts.Scripted([text, "It is 5."]), ts.decide).text == "It is 5."
    sent = str(model.requests[1].messages[-1]["content"])
    assert sent.endswith("Write the whole call, or answer in words.")
    form = '{"name": "add", "arguments": {"a": "...", "b": "..."}}'
    assert (form in sent) == (text != ATTEMPTS["half a call"])


@pytest.mark.parametrize("verb", [ts.run, ts.decide])
@pytest.mark.parametrize("text", TALK.values(), ids=TALK)
def test_talk_is_an_answer(text: str, verb: Any) -> None:
    model = ts.Scripted([text, "never"])
    assert asked(model, verb).text.strip() == text.rpartition("</think>")[2].strip()
    assert len(model.requests) == 1


@pytest.mark.parametrize("verb", [ts.run, ts.decide])
def test_after_the_last_try_the_text_counts(verb: Any) -> None:
    texts = [ATTEMPTS["code"], ATTEMPTS["a command"], ATTEMPTS["a patch"]]
    model = ts.Scripted([*texts, "never"])
    reply = asked(model, verb)
    assert (reply.text, reply.calls, reply.finish, len(model.requests)) == (texts[-1], (), "stop", 3)
    assert [step.reply.text for step in reply.steps] == texts
    again = asked(model := ts.Scripted([texts[0], texts[0], "never"]), verb)  # it does not do better
    assert (again.text, len(model.requests)) == (texts[0], 2)


def test_each_turn_of_a_run_has_its_tries() -> None:
    code, command = ATTEMPTS["code"], ATTEMPTS["a command"]
    model = ts.Scripted([code, command, CALL, code, command, "It is 5."])
    assert (asked(model, ts.run).text, len(model.requests)) == ("It is 5.", 6)


def test_a_run_is_not_asked_again_beyond_its_steps() -> None:
    model = ts.Scripted([ATTEMPTS["code"], "never"])
    assert asked(model, ts.run, limits={"steps": 1}).text == ATTEMPTS["code"]
    assert len(model.requests) == 1


def test_a_required_call_stays_required() -> None:
    model = ts.Scripted([ATTEMPTS["code"], CALL])
    assert asked(model, ts.decide, choice="required").calls
    assert '"arguments": {"a": "...", "b": "..."}' in str(model.requests[1].messages[-1]["content"])
    with pytest.raises(ts.GenerationError):
        asked(ts.Scripted([ATTEMPTS["code"]], repeat=True), ts.decide, choice="required")


@pytest.mark.parametrize("verb", [ts.run, ts.decide])
def test_where_no_call_may_come_or_the_reply_was_cut_nothing_is_asked(verb: Any) -> None:
    text = ATTEMPTS["code"]
    model = ts.Scripted([text, "never"])
    assert asked(model, verb, choice="none").text == text
    cut: Any = [TextDelta(text), Finished("length")]
    assert asked(ts.Scripted([cut, "never"]), verb).text == text


SCRIPT = "A talk:\n\nUser: 2 + 3?\nAssistant: 5.\n\nNow I add them.\n"
LOST = {
    "a script": SCRIPT + CALL,
    "a log": f"The log has:\n<tool_response>\n5\n</tool_response>\nI add them.\n{CALL}",
    "a fence": f"{SCRIPT}```json\n{CALL}\n```",
    "an invented talk": f"It is 5.\n\nUser: and 3 + 4?\nAssistant: {CALL}",
}


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
def test_a_call_behind_the_head_of_another_turn_is_asked_for_once(text: str) -> None:
    model = ts.Scripted([text, CALL, "It is 5."])
    assert (asked(model, ts.run).text, len(model.requests)) == ("It is 5.", 3)
    sent = str(model.requests[1].messages[-1]["content"])
    assert sent.startswith("The call of 'add' was not run: before it, your text begins the turn of another role (")
    assert asked(ts.Scripted([text, "It is 5."]), ts.decide).text == "It is 5."
    for verb in (ts.run, ts.decide):
        model = ts.Scripted([text, f"Well.\n{text}", "never"])
        reply = asked(model, verb)
        assert (reply.calls, reply.finish, len(model.requests)) == ((), "stop", 2)
        assert reply.text == ts.run("?", tools=[add], model=Speaker(ts.Scripted([f"Well.\n{text}"] * 2), "hermes")).text
        assert reply.text.startswith("Well.\n")


@pytest.mark.parametrize("verb", [ts.run, ts.decide])
def test_a_call_in_another_turn_is_not_asked_for_where_the_reply_has_one_or_is_over(verb: Any) -> None:
    over = f"It is 5.<|im_end|>\n<|im_start|>user\n3 + 4?<|im_end|>\n<|im_start|>assistant\n{CALL}"
    model = ts.Scripted([over, "never"])
    assert (asked(model, verb).text, len(model.requests)) == ("It is 5.", 1)
    model = ts.Scripted([f"{CALL}\n\nIt is 5.\n\nUser: and 3 + 4?\n{CALL}", "It is 5.", "never"])
    assert asked(model, verb).calls or len(model.requests) == 2
    model = ts.Scripted([f"{SCRIPT}That is all.", "never"])
    assert (asked(model, verb).text, len(model.requests)) == (f"{SCRIPT}That is all.", 1)


def test_a_required_call_in_another_turn_has_all_its_tries() -> None:
    model = ts.Scripted([LOST["a script"], LOST["a log"], CALL])
    assert asked(model, ts.decide, choice="required").calls
    assert "Answer with a call to" in str(model.requests[1].messages[-1]["content"])


def test_an_empty_section_is_no_answer() -> None:
    empty = "<|tool_calls_section_begin|><|tool_calls_section_end|>"
    assert asked(ts.Scripted([empty, "It is 5."]), ts.run, "kimi-k2").text == "It is 5."
    assert asked(ts.Scripted([f"It is 5.{empty}", "never"]), ts.run, "kimi-k2").text == "It is 5."


def test_a_form_with_markers_in_it_is_not_written_in_the_prompt() -> None:
    model = ts.Scripted([ATTEMPTS["code"], "It is 5."])
    assert asked(model, ts.run, "qwen3-coder").text == "It is 5."
    sent = str(model.requests[1].messages[-1]["content"])
    assert "the description of the tools" in sent
    assert "\u200b" not in sent
