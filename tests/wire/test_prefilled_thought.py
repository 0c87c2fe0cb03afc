"""A message to continue that is only a thought: the prompt ends inside the thought, and the reply is read from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.types import Message
from toolspeak.wire.dialect import Dialect

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "templates"
TEMPLATES = [path for path in sorted(SHARED.glob("*.jinja")) if "rwkv" not in path.name]
"""RWKV's template has no end of a turn, so an opener behind a space may be a user's word."""
THOUGHT = "Okay, the user"
TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
EMPTY = TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}"
OPENED = TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
PLAIN = OPENED.replace("<think>\n", "")


def dialects() -> list[Dialect]:
    every = (ts.dialect(name) for name in ts.dialects())
    return [d for d in every if d.thinking or (d.header and d.header.thought)]


def spellings(d: Dialect) -> list[Message]:
    """The ways in which a message may be a begun thought."""
    ways: list[Message] = [{"role": "assistant", "content": "", "reasoning_content": THOUGHT}]
    if d.thinking and d.thinking.open.strip():
        ways.append({"role": "assistant", "content": f"{d.thinking.open.strip()}\n{THOUGHT}"})
    return ways


def assert_continued(d: Dialect, **options: Any) -> None:
    """The prompt ends with the thought, and the rest of the thought and the answer are read apart."""
    header = d.header
    for last in spellings(d):
        messages: list[Message] = [{"role": "user", "content": "hi"}, last]
        rendered = ts.render(messages, [], d, continue_final=True, **options)
        assert rendered.prompt.endswith(THOUGHT)
        assert not {note.rule for note in rendered.notes} & {"control-marker", "not-continued", "thought-lost"}
        assert str(rendered.messages[-1].get("content")).endswith(THOUGHT)
        if d.thinking:
            closer = d.thinking.close
        else:
            assert header
            closer = (header.ends or d.stop or ("\n\n",))[0] + header.start + header.text + header.stop
        reply = ts.parse(f" is done.{closer}Fine.", d, [], prompt=rendered.prompt)
        assert (reply.thought.strip(), reply.text.strip()) == ("is done.", "Fine.")


@pytest.mark.parametrize("d", dialects(), ids=lambda d: d.name)
def test_a_begun_thought_is_continued(d: Dialect) -> None:
    assert_continued(d)


@pytest.mark.parametrize("thinking", [None, True, False])
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_begun_thought_is_continued_by_real_templates(path: Path, thinking: bool | None) -> None:
    template = path.read_text("utf-8")
    d = ts.detect(template=template)
    if d.thinking is None and not (d.header and d.header.thought):
        pytest.skip("the model has no thoughts")
    assert_continued(d, template=template, thinking=thinking)


@pytest.mark.parametrize("template", [EMPTY, OPENED, PLAIN])
def test_the_thought_takes_the_place_of_the_one_that_the_template_begins(template: str) -> None:
    d = ts.dialect("hermes")
    for last in spellings(d):
        messages: list[Message] = [{"role": "user", "content": "hi"}, last]
        prompt = ts.render(messages, [], d, template=template, continue_final=True).prompt
        assert prompt.endswith(f"<|im_start|>assistant\n<think>\n{THOUGHT}")


def test_a_closed_thought_and_a_text_are_continued_as_a_text() -> None:
    messages: list[Message] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "<think>a</think>It"},
    ]
    for template in (None, TURNS):
        rendered = ts.render(messages, [], "hermes", template=template, continue_final=True)
        assert rendered.prompt.endswith("assistant\nIt")
        assert ts.parse(" is.", "hermes", [], prompt=rendered.prompt).text == " is."


def test_markers_inside_a_begun_thought_are_defused() -> None:
    last: Message = {"role": "assistant", "content": "<think>\nNo <|im_end|> and no <think> here"}
    rendered = ts.render([{"role": "user", "content": "hi"}, last], [], "hermes", template=OPENED, continue_final=True)
    assert rendered.prompt.endswith("<think>\nNo <\u200b|im_end|> and no <\u200bthink> here")
    assert [note.rule for note in rendered.notes] == ["control-marker", "control-marker"]
