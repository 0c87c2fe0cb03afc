"""A value before a turn that the model invents: that turn is no part of the reply, and neither are the values in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

import toolspeak as ts
from toolspeak.models.speaker import Speaker
from toolspeak.plan.json_reply import json_text


@dataclass
class Person:
    name: str
    age: int


ALICE, BOB = '{"name": "Alice", "age": 31}', '{"name": "Bob", "age": 5}'
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TURNS = {
    "a label": f"\n\nUser: and Bob?\n\nAssistant: {BOB}",
    "a label on the next line": f"\nHuman: and {BOB}",
    "ChatML": f"\n<|im_start|>user\nand Bob?<|im_end|>\n<|im_start|>assistant\n{BOB}",
    "ChatML, with its end": f"<|im_end|>\n<|im_start|>user\nand Bob?<|im_end|>\n<|im_start|>assistant\n{BOB}",
    "Llama": f"<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nBob?<|eot_id|>{BOB}",
    "Mistral": f"</s>[INST] and Bob? [/INST] {BOB}",
    "Mistral without its end": f"[INST] and Bob? [/INST] {BOB}",
    "Gemma": f"<end_of_turn>\n<start_of_turn>user\nand Bob?<end_of_turn>\n{BOB}",
    "a result": f"\n<tool_response>\n{BOB}\n</tool_response>",
}
OF_THE_REPLY = {
    "an example before the value": f'For "Bob is 5":\n{BOB}\nResult: {ALICE}',
    "a role that is no label": f"{BOB}\nThe user: {ALICE}",
    "two values": f"{ALICE}\n{BOB}",
}


@pytest.mark.parametrize("before", ["", "Here it is: ", "```json\n"])
@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_the_value_before_the_turn_counts(turn: str, before: str) -> None:
    text = before + ALICE + ("\n```" if before.startswith("`") else "") + turn
    model = ts.Scripted([text, "never"])
    assert ts.extract("Alice is 31", Person, model=Speaker(model, "hermes")) == Person("Alice", 31)
    assert len(model.requests) == 1
    assert ts.run("Alice is 31", output=Person, model=ts.Scripted([text, "never"])).output == Person("Alice", 31)


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_json_of_a_schema_too(turn: str) -> None:
    reply, wrong = json_text(ts.Reply(ALICE + turn), SCHEMA)
    assert (reply.text, wrong) == (ALICE, "")


def test_a_word_before_a_turn() -> None:
    kind: Any = Literal["positive", "negative"]
    for turn in ("\nUser: and this?\nAssistant: negative", "<|im_end|>\n<|im_start|>user\nand this?"):
        assert ts.extract("Good!", kind, model=ts.Scripted([f"positive{turn}", "never"])) == "positive"


@pytest.mark.parametrize("text", OF_THE_REPLY.values(), ids=OF_THE_REPLY)
def test_of_other_values_that_differ_none_counts(text: str) -> None:
    model = ts.Scripted([text, ALICE])
    assert ts.extract("Alice is 31", Person, model=model) == Person("Alice", 31)
    assert len(model.requests) == 2


def test_a_head_inside_a_value_or_before_the_only_one_ends_nothing() -> None:
    said = '{"name": "Alice\\nUser: <|im_end|>\\n<|im_start|>user", "age": 31}'
    raw = '{"name": "Alice\nUser: me", "age": 31}'
    for text in (said, raw, f"User: Alice is 31.\n{ALICE}", f"Of this talk:\nUser: [1]\n{ALICE}"):
        model = ts.Scripted([text, "never"])
        assert ts.extract("Alice is 31", Person, model=model).name.startswith("Alice")
        assert len(model.requests) == 1
