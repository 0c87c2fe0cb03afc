"""Where a reply begins: inside a thought that its prompt left open, or in one that a model always begins with."""

from __future__ import annotations

import random

import pytest
from spoken import TALKING
from wire_cases import TOOLS, cuts, merged, stream

import toolspeak as ts
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect

HEADED = [d for d in TALKING if d.header and d.header.thought]
THINKING = [d for d in TALKING if d.thinking and d.thinking.open.strip() and d.thinking.close.strip() and not d.header]
ALWAYS = ["Qwen/QwQ-32B", "deepseek-ai/DeepSeek-R1", "Qwen/Qwen3-4B-Thinking-2507", "allenai/Olmo-3-32B-Think", "MiniMaxAI/MiniMax-M2", "stepfun-ai/Step-3.5-Flash", "zai-org/GLM-Z1-9B-0414", "ServiceNow-AI/Apriel-1.6-15b-Thinker", "ServiceNow-AI/Apriel-1.5-15b-Thinker"]  # fmt: skip
MAY = [
    "Qwen/Qwen3-4B",
    "allenai/Olmo-3-7B-Instruct",
    "deepseek-ai/DeepSeek-V3.1",
    "zai-org/GLM-4.7",
    "ServiceNow-AI/Apriel-5B-Instruct",
    "Qwen/QwQ-32B-Preview",
    "qwq:32b-preview-q4_K_M",
]
R1 = "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}<｜User｜>{{ m.content }}{% else %}<｜Assistant｜>{{ m.content }}<｜end▁of▁sentence｜>{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}"  # fmt: skip
SWITCHED = R1.replace("<think>\\n' }}", "' }}{% if enable_thinking %}{{ '<think>\\n' }}{% endif %}")


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_a_prompt_that_ends_inside_a_thought(d: Dialect) -> None:
    assert d.thinking
    wire = f"more of it{d.thinking.close}Hello"
    for begun in ("", "I", "I was thinking.\nThen I was " + "still thinking. " * 200):
        prompt = f"user\nHi\nassistant\n{d.thinking.open}{begun}"
        events = stream(d, [wire], TOOLS, prompt)
        assert (collect(events).thought.strip(), collect(events).text) == ("more of it", "Hello")
    closed = f"user\nHi\nassistant\n{d.thinking.open}hm{d.thinking.close}"
    assert collect(stream(d, ["Hello"], TOOLS, closed)).text == "Hello"


@pytest.mark.parametrize(
    "head", ["Assistant:", "Assistant: ", "\n\nAssistant: ", "<|im_start|>assistant ", "[/INST] ", "> ", "", "# R\n"]
)
@pytest.mark.parametrize("d", [d for d in THINKING if not d.stop], ids=lambda d: d.name)
def test_a_prompt_that_ends_inside_a_thought_of_an_unknown_layout(d: Dialect, head: str) -> None:
    assert d.thinking
    wire = f" hm.{d.thinking.close}Hello"
    reply = collect(stream(d, [wire], TOOLS, f"User: Hi\n\n{head}{d.thinking.open.strip()}\nSo"))
    assert (reply.thought.strip(), reply.text) == ("hm.", "Hello")
    for before in ("What is ", "a text: ", "use the model "):
        reply = collect(stream(d, ["Hello"], TOOLS, f"User: {before}{d.thinking.open.strip()}, say"))
        assert reply.text == "Hello"


@pytest.mark.parametrize("d", HEADED, ids=lambda d: d.name)
def test_a_prompt_that_ends_inside_the_message_of_a_thought(d: Dialect) -> None:
    assert d.header
    prompt = f"{d.header.start}{d.header.thought}{d.header.stop}I was " + "thinking. " * 200
    assert collect(stream(d, ["more of it"], TOOLS, prompt)).thought == "more of it"


@pytest.mark.parametrize("name", ALWAYS)
def test_a_model_that_always_thinks_begins_inside_a_thought_where_its_prompt_is_unknown(name: str) -> None:
    d = ts.detect(model=name)
    assert d.thinking
    wire = f"Hm.{d.thinking.close}Hello"
    events = stream(d, [wire], TOOLS, None)
    assert (collect(events).thought.strip(), collect(events).text) == ("Hm.", "Hello")
    for chunks in cuts(wire, random.Random(wire)):
        assert merged(stream(d, chunks, TOOLS, None)) == merged(events)
    for written in (ts.parse(d.thinking.open + wire, d), ts.parse(wire, d)):
        assert (written.thought.strip(), written.text) == ("Hm.", "Hello")
    assert ts.parse("Hello", d, prompt="").text == "Hello"
    assert ts.parse("Hello", d, prompt="<|im_start|>assistant\n").text == "Hello"


@pytest.mark.parametrize("name", [name for name in ALWAYS if "Apriel" in name])
def test_the_marks_around_an_answer_of_apriel_are_left_out(name: str) -> None:
    wire = "Okay, hm.\n[BEGIN FINAL RESPONSE]\nHello!\n[END FINAL RESPONSE]"
    reply = ts.parse(wire, ts.detect(model=name), [])
    assert (reply.thought, reply.text.strip()) == ("Okay, hm.", "Hello!")


@pytest.mark.parametrize("name", MAY)
def test_an_answer_of_a_model_that_may_think_is_an_answer(name: str) -> None:
    assert ts.parse("Hello", ts.detect(model=name)).text == "Hello"


def test_a_template_that_begins_a_thought_whatever_is_asked_for() -> None:
    always = ts.detect(template=R1, model="deepseek-r1").thinking
    may = ts.detect(template=SWITCHED, model="deepseek-r1").thinking
    assert always
    assert may
    assert (always.always, may.always) == (True, False)


def test_drafts_are_held_back_within_a_bound() -> None:
    """Past the bound a thought goes on as a thought, with a note; what it held comes out at once."""
    draft = "<tool_call>" + "x" * 70_000
    wire = f"<think>\n{draft}\n</think>\n\nNo."
    events = stream(ts.dialect("hermes"), [wire], TOOLS)
    reply = collect(events)
    assert (reply.thought, reply.text, [note.rule for note in reply.notes]) == (draft, "No.", ["long-draft"])
    for size in (7, 1000, 65_536):
        chunks = [wire[i : i + size] for i in range(0, len(wire), size)]
        assert merged(stream(ts.dialect("hermes"), chunks, TOOLS)) == merged(events)


def test_thoughts_full_of_openers_are_read_in_linear_time() -> None:
    """Counted in the events that come out and the text that is in them: none is told twice."""
    body = '<tool_call>{"name": "weather", "arguments": {"a": "'
    for piece in (body, "<tool_call>", body + '"}}</tool_call> no '):
        wire = "<think>\n" + piece * 300
        events = stream(ts.dialect("hermes"), [wire], TOOLS)
        assert len(events) < 1000
        reply = collect(events)
        assert len(reply.thought) + sum(len(call.json) for call in reply.calls) < 2 * len(wire)
