"""The marks around a thought in each spelling: a model that thinks less may write other tags, with their own closers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from .dialect import Thinking


@lru_cache(256)
def thought_tags(thinking: Thinking) -> Mapping[str, str]:
    """Maps complete openers of a thought to their closers, both without whitespace: the dialect's own first, then those
    of `also` that are tags like its own. Beside `<think>` and `</think>`, `</ponder>` closes `<ponder>`."""
    word, close = thinking.open.strip(), thinking.close.strip()
    tags = filter(None, thinking.also) if word and close == f"</{word[1:]}" else ()
    return {word: close} | {tag: f"</{tag[1:]}" for tag in tags}
