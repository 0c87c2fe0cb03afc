"""Images past a prompt: put back where they stood, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from toolspeak.errors import UsageError
from toolspeak.plan.attachment_marks import MARK, detach, has_parts, put_back

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_parts_come_back_where_they_stood() -> None:
    content = [text("A "), IMAGE, text(" and "), SOUND]
    messages: Any = [{"role": "system", "content": "x"}, {"role": "user", "content": content}]
    assert has_parts(messages)
    bare, parts = detach(messages)
    assert all(isinstance(message["content"], str) for message in bare)
    assert parts == [IMAGE, SOUND]
    assert put_back(bare, parts) == messages


def test_text_alone_has_no_parts() -> None:
    assert not has_parts([{"role": "user", "content": [text("x")]}, {"role": "user", "content": None}])


def test_a_mark_in_a_text_brings_no_part() -> None:
    messages: Any = [{"role": "user", "content": f"{MARK}0{MARK}"}, {"role": "user", "content": [IMAGE]}]
    bare, parts = detach(messages)
    assert put_back(bare, parts)[0]["content"] == "0"


def test_a_mark_that_stands_for_nothing() -> None:
    odd: Any = [{"role": "assistant", "content": f"x{MARK}7{MARK}y"}]
    assert put_back(odd, []) == odd
    (message,) = put_back([{"role": "user", "content": f"x{MARK}7{MARK}y{MARK}0{MARK}"}], [IMAGE])
    assert message["content"] == [text("x"), text("y"), IMAGE]


def test_a_lost_part_is_refused() -> None:
    messages: Any = [{"role": "user", "content": [IMAGE]}]
    bare, parts = detach(messages)
    bare[0]["content"] = "something else"
    with pytest.raises(UsageError, match="accepts no image"):
        put_back(bare, parts)
