"""Settings of a request that a server's API has no place for are refused, never dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolspeak.errors import UsageError
from toolspeak.models.http import Http
from toolspeak.models.http.providers import PROVIDERS
from toolspeak.models.unsupported_settings import without_unsupported
from toolspeak.types import Request

HI: Any = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("api", "settings", "said"),
    [
        ("ollama", {"sampling": {"logit_bias": {"1": 2}}}, "no logit_bias"),
        ("ollama", {"logprobs": 1}, "no logprobs"),
        ("completions", {"sampling": {"mood": "low"}}, "no mood"),
    ],
)
def test_what_has_no_place_is_refused(api: Any, settings: dict[str, Any], said: str) -> None:
    asked = {"prompt": "Hi"} if api == "completions" else {"messages": HI}
    with pytest.raises(UsageError, match=said):
        Http("http://127.0.0.1:9", "m", api=api).body(Request(**asked, **settings))


def test_what_has_one_is_sent() -> None:
    request = Request(HI, thinking=False, logprobs=2, sampling={"logit_bias": {"1": 2}, "reasoning_effort": "low"})
    body = json.loads(Http("http://127.0.0.1:9", "m").body(request))
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert (body["logprobs"], body["top_logprobs"], body["reasoning_effort"]) == (True, 2, "low")
    asked = Request(HI, thinking=True, sampling={"repetition_penalty": 1.1})
    body = json.loads(Http("http://127.0.0.1:9", "m", api="ollama").body(asked))
    assert (body["think"], body["options"]) == (True, {"repeat_penalty": 1.1})


@pytest.mark.parametrize(
    "settings", [{"thinking": True}, {"sampling": {"reasoning_effort": "low"}}, {"sampling": {"verbosity": "low"}}]
)
def test_a_wish_that_a_server_has_no_word_for_is_left_out_and_noted(settings: dict[str, Any]) -> None:
    request = Request(prompt="Hi", **settings)
    body = Http("http://127.0.0.1:9", "m", api="completions").body(request)
    assert body == Http("http://127.0.0.1:9", "m", api="completions").body(Request(prompt="Hi"))
    _, notes = without_unsupported(request, (), thinks=False)
    assert [note.rule for note in notes] == ["ignored"]


def test_a_provider_that_knows_no_switch_for_reasoning() -> None:
    groq = Http("http://127.0.0.1:9", "m", provider=PROVIDERS["groq"])
    assert groq.body(Request(HI, thinking=True)) == groq.body(Request(HI))
