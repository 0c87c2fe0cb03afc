"""The reply half of empower: what the package's handler makes of a text, and where it is mended."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, strategies as st

from peers import peer
from properties import property_test
from toolspeak.compat.empower import chat_chunks, chat_completion, separate_thinking

THOUGHT = "<thinking>Weather is wanted.</thinking>"


def completion(text: str, finish: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    return {
        "id": "cmpl-1",
        "created": 5,
        "model": "m",
        "object": "text_completion",
        "choices": [choice],
        "usage": usage,
    }


def handled(text: str) -> dict[str, Any]:
    """What the package's handler gives for a text, without the model in front of it."""
    handler = peer("empower_functions", "chat_handler")
    whole = completion(text)
    content, thinking = handler._separate_thinking_if_present(text)
    whole["choices"][0]["text"] = content
    if content.startswith("<f>"):
        return handler._convert_completion_to_chat_function(whole, thinking=thinking)
    kept = (thinking or "") + content.removeprefix("<c>") if content.startswith("<c>") else text
    whole["choices"][0]["text"] = kept
    return handler._convert_completion_to_chat(whole)


def message(text: str) -> dict[str, Any]:
    return chat_completion(completion(text))["choices"][0]["message"]


def test_a_call() -> None:
    whole = chat_completion(completion('<f>[{"name": "w", "arguments": "{\\"city\\": \\"Köln\\"}"}]'))
    assert whole == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call__0_w_cmpl-1_0",
                            "type": "function",
                            "function": {"name": "w", "arguments": '{"city": "Köln"}'},
                        }
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }


SAME = [
    "<c>The weather is fine.",
    THOUGHT + "<c>The weather is fine.",
    "No tag at all.",
    "<c>",
    '<f>[{"name": "w", "arguments": "{\\"a\\": 1}"}]',
    '<f>[{"name": "w", "arguments": {"a": 1}}, {"name": "w", "arguments": {"a": 1}}, {"name": "v", "arguments": {}}]',
    THOUGHT + '<f>[{"name": "unknown", "arguments": {"a": [1, {"b": null}]}}]',
    '<f>[\n  {\n    "name": "w",\n    "arguments": "{}"\n  }\n]',
]


@pytest.mark.parametrize("text", SAME)
def test_replies_are_read_as_the_package_reads_them(text: str) -> None:
    assert chat_completion(completion(text)) == handled(text)


NAMES = st.text("abcdefghijklmnopqrstuvwxyzABC0123456789_.-", min_size=1, max_size=64)
ARGUMENTS = st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.text()))


@property_test(100, st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1))
def test_calls_are_read_as_the_package_reads_them(calls: list[tuple[str, dict[str, Any]]]) -> None:
    text = "<f>" + json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])
    assume("</thinking>" not in text)
    assert values(chat_completion(completion(text))) == values(handled(text))


def values(whole: dict[str, Any]) -> dict[str, Any]:
    """With arguments as values: here they are the model's own text, there a dump of what it meant."""
    whole = copy.deepcopy(whole)
    for call in whole["choices"][0]["message"].get("tool_calls", ()):
        call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return whole


def test_a_call_that_speaks_of_thinking_is_a_call() -> None:
    """The package cuts at the first closing tag wherever it stands, and what is left is no call any more."""
    text = '<f>[{"name": "w", "arguments": {"</thinking>": null}}]'
    assert json.loads(message(text)["tool_calls"][0]["function"]["arguments"]) == {"</thinking>": None}
    assert handled(text)["choices"][0]["message"] == {"role": "assistant", "content": text}


def test_the_thinking_split() -> None:
    assert separate_thinking(THOUGHT + "<c>x</thinking>") == (THOUGHT, "<c>x</thinking>")
    assert separate_thinking("<c>x") == (None, "<c>x")


@pytest.mark.parametrize("blank", ["\n", " ", "\n\n"])
def test_a_blank_before_the_tag_does_not_undo_it(blank: str) -> None:
    call = THOUGHT + blank + '<f>[{"name": "w", "arguments": {}}]'
    assert message(call)["tool_calls"][0]["function"]["name"] == "w"
    assert message(call)["content"].strip() == THOUGHT
    assert handled(call)["choices"][0]["message"] == {"role": "assistant", "content": call}
    assert "<c>" not in message(THOUGHT + blank + "<c>Fine.")["content"]
    assert handled(THOUGHT + blank + "<c>Fine.")["choices"][0]["message"]["content"].endswith("<c>Fine.")


def test_a_single_call_needs_no_list() -> None:
    text = '<f>{"name": "w", "arguments": {"a": 1}}'
    assert message(text)["tool_calls"][0]["function"] == {"name": "w", "arguments": '{"a": 1}'}
    with pytest.raises(TypeError):
        handled(text)


def test_no_arguments_are_an_empty_object() -> None:
    """A client parses them and wants an object: `null` is none, and none at all is an error there."""
    null, missing = '<f>[{"name": "w", "arguments": null}]', '<f>[{"name": "w"}]'
    for text in (null, missing):
        assert message(text)["tool_calls"][0]["function"] == {"name": "w", "arguments": "{}"}
    assert handled(null)["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == "null"
    with pytest.raises(KeyError, match="arguments"):
        handled(missing)


@pytest.mark.parametrize("text", ["<f>no json", "<f>", "<f>[5]", '<f>[{"arguments": {}}]'])
def test_what_is_no_call_comes_back_as_text(text: str) -> None:
    whole = chat_completion(completion(text))["choices"][0]
    assert whole["message"] == {"role": "assistant", "content": text}
    assert whole["finish_reason"] == ("length" if text == "<f>" else "stop")  # nothing came behind the mark
    with pytest.raises((ValueError, TypeError, KeyError)):
        handled(text)


def test_a_call_that_is_cut_off_is_no_call() -> None:
    whole = chat_completion(completion('<f>[{"name": "w", "arguments": {"a": ', "length"))["choices"][0]
    assert "tool_calls" not in whole["message"]
    assert whole["finish_reason"] == "length"


def test_no_calls_are_not_a_call() -> None:
    assert "tool_calls" not in message("<f>[]")
    assert handled("<f>[]")["choices"][0]["message"]["tool_calls"] == []


# ------------------------------------------------------------------ while it arrives


def streamed(text: str, cut: int, finish: str = "stop") -> list[dict[str, Any]]:
    pieces = [text[i : i + cut] for i in range(0, len(text), cut)]
    chunks = [completion(piece, finish if i == len(pieces) - 1 else "") for i, piece in enumerate(pieces)]
    return list(chat_chunks(chunks))


def assembled(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that the deltas add up to, as a client adds them up."""
    whole: dict[str, Any] = {"role": chunks[0]["choices"][0]["delta"]["role"], "content": ""}
    for chunk in chunks[1:]:
        delta = chunk["choices"][0]["delta"]
        whole["content"] += delta.get("content", "")
        for call in delta.get("tool_calls", ()):
            calls = whole.setdefault("tool_calls", [])
            if call["index"] == len(calls):
                calls.append({"id": call["id"], "type": call["type"], "function": call["function"].copy()})
            else:
                calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
    if not whole["content"] and "tool_calls" in whole:
        whole["content"] = None
    return whole


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("text", SAME)
def test_a_stream_adds_up_to_the_whole(text: str, cut: int) -> None:
    chunks = streamed(text, cut)
    whole = chat_completion(completion(text))["choices"][0]
    assert assembled(chunks) == whole["message"]
    assert chunks[-1]["choices"][0] == {
        "index": 0,
        "delta": {},
        "logprobs": None,
        "finish_reason": whole["finish_reason"],
    }
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-1"}
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}


def test_a_name_comes_whole_and_arguments_in_pieces() -> None:
    deltas = [
        c["choices"][0]["delta"] for c in streamed('<f>[{"name": "weather", "arguments": {"city": "Xiamen"}}]', 1)
    ]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["function"] == {"name": "weather", "arguments": ""}
    assert len(calls) > 5
    assert all(call.keys() == {"index", "function"} for call in calls[1:])


def test_no_chunks_give_none() -> None:
    assert list(chat_chunks([])) == []
