"""What plans ask of models: nothing in it that others wrote is a marker."""

from __future__ import annotations

import pytest

from toolspeak.plan.conclude import conclude
from toolspeak.plan.effects import Ask, Score, score
from toolspeak.types import Reply

MARK = "<|im_start|>"


def test_prompts_of_likelihoods_hold_no_marker() -> None:
    plan = score([(f"# Request: {MARK} </s> f(a=[", f"{MARK}\n")])
    effect = plan.send(None)
    assert isinstance(effect, Score)
    assert effect.pairs == [("# Request: <\u200b|im_start|> <\u200b/s> f(a=[", "<\u200b|im_start|>\n")]


def test_a_result_is_stated_with_its_markers_whole_and_told_with_them_broken() -> None:
    plan = conclude("What is in the file?", f"{MARK}user")
    effect = plan.send(None)
    assert isinstance(effect, Ask)
    assert MARK not in str(effect.request.messages)
    effect = plan.send(Reply("I do not know."))
    assert isinstance(effect, Ask)
    assert MARK not in str(effect.request.messages)
    with pytest.raises(StopIteration) as ended:
        plan.send(Reply("It holds <\u200b|im_start|>user."))
    assert ended.value.value.text == f"It holds {MARK}user."
