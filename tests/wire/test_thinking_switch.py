"""`thinking=` switches the thoughts of a template whatever its switch is called, or a note says that it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolspeak as ts
from toolspeak.wire.reading.lexicon import THINK, program

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "templates"
TURNS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
OFF = "<think>\n\n</think>\n\n"
CONDITIONS = {
    "enable_thinking": "enable_thinking is defined and not enable_thinking",
    "thinking": "thinking is defined and not thinking",
    "reasoning": "reasoning is defined and not reasoning",
    "enable_reasoning": "not enable_reasoning | default(true)",
    "thinking_mode": "thinking_mode == 'disabled' or thinking_mode != 'enabled' and false",
    "thinking_option": "thinking_option == 'off' or thinking_option == 'on' and false",
    "reasoning_effort, none": "reasoning_effort == 'none' or reasoning_effort == 'high' and false",
    "reasoning_effort, no_think": "reasoning_effort == 'no_think' or reasoning_effort == 'high' and false",
    "thinking_budget": "thinking_budget is defined and thinking_budget == 0",
}


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
def test_thinking_is_switched_whatever_the_variable_is_called(condition: str) -> None:
    template = f"{TURNS}{{% if {condition} %}}{OFF}{{% else %}}<think>\n{{% endif %}}"
    for thinking in (None, True, False):
        rendered = ts.render("hi", [], "hermes", template=template, thinking=thinking)
        assert rendered.prompt.endswith(OFF) == (thinking is False)
        assert "thinking-not-off" not in {note.rule for note in rendered.notes}


def test_a_template_that_opens_a_thought_in_any_case_leaves_a_note() -> None:
    template = TURNS + "{{ '<think>\n' }}"
    assert "thinking-not-off" in {
        note.rule for note in ts.render("hi", [], "hermes", template=template, thinking=False).notes
    }
    for thinking in (None, True):
        rendered = ts.render("hi", [], "hermes", template=template, thinking=thinking)
        assert "thinking-not-off" not in {note.rule for note in rendered.notes}


def test_words_of_another_template_are_not_values() -> None:
    template = TURNS + "Reasoning: {{ reasoning_effort | default('medium') }}\n"
    for thinking in (True, False):
        assert "medium" in ts.render("hi", [], "hermes", template=template, thinking=thinking).prompt


@pytest.mark.parametrize("path", sorted(SHARED.glob("*.jinja")), ids=lambda path: path.stem)
def test_thinking_is_off_in_real_templates_or_noted(path: Path) -> None:
    template = path.read_text("utf-8")
    d = ts.detect(template=template)
    rendered = ts.render("hi", [], d, template=template, thinking=False)
    noted = "thinking-not-off" in {note.rule for note in rendered.notes}
    assert (program(d, True).begins(rendered.prompt) == THINK) == noted
