"""What a chunk of a reply costs, counted in calls of functions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cost import calls
from toolspeak.api import anthropic, completions, ollama, openai_chat, openai_responses

CHUNKS = 100
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def chat(**delta: Any) -> dict[str, Any]:
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}


CASES = [
    (openai_chat.ReplyReader, chat(content=" word"), 10),
    (openai_chat.ReplyReader, chat(reasoning_content=" word"), 10),
    (completions.ReplyReader, {**HEAD, "choices": [{"index": 0, "text": " word", "logprobs": None}]}, 12),
    (openai_responses.ReplyReader, {"type": "response.output_text.delta", "item_id": "1", "output_index": 0, "delta": " word"}, 9),
    (anthropic.ReplyReader, {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " word"}}, 9),
    (ollama.ReplyReader, {"model": "m", "message": {"role": "assistant", "content": " word"}, "done": False}, 9),
]  # fmt: skip


@pytest.mark.parametrize(("reader", "payload", "most"), CASES)
def test_a_chunk_is_read_in_few_calls(reader: Any, payload: dict[str, Any], most: int) -> None:
    """All of them that arrive in one piece: nothing but reading the chunks takes more calls."""
    text = json.dumps(payload)
    chunk = f"{text}\n" if reader is ollama.ReplyReader else f"data: {text}\n\n"

    def cost(chunks: int) -> int:
        reading = reader()
        return calls(lambda: reading.feed((chunk * chunks).encode()))

    cost(1)
    assert cost(2 * CHUNKS) - cost(CHUNKS) <= most * CHUNKS
