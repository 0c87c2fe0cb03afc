"""The marks around a thought in each spelling: a model that thinks less may write other tags, with their own closers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from .dialect import Thinking

_NAMES = (
    *("think", "thinking", "thought", "thoughts", "thought_process", "inner_thought", "inner_thoughts"),
    *("reason", "reasoning", "rationale", "analysis", "reflection", "self_reflection", "scratchpad", "ponder"),
    *("monologue", "inner_monologue", "internal_monologue", "deliberation", "contemplation", "contemplator"),
    *("brainstorm", "brainstorming", "chain_of_thought", "cot"),
)
_OTHER_NAMES = ("antThinking", "seed:think", "mm:think", "longcat_think", "think:opensource")
_SPELLED = (*(spelled for name in _NAMES for spelled in (name, name.capitalize(), name.upper())), *_OTHER_NAMES)
THOUGHT_TAGS: Mapping[str, str] = {
    **{f"<{name}>": f"</{name}>" for name in _SPELLED},
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
}
"""Maps openers of thoughts to their closers: tags that models write in any dialect, because a prompt or a later training
asks for them."""


@lru_cache(256)
def spellings(closer: str) -> tuple[str, ...]:
    """The closer in each spelling: a thought may open in capital letters, and close in others."""
    return tuple(tag for tag in THOUGHT_TAGS.values() if tag.lower() == closer.lower())


@lru_cache(256)
def thought_tags(thinking: Thinking) -> Mapping[str, str]:
    """Maps complete openers of a thought to their closers, both without whitespace: the dialect's own first, then those
    of `also` that are tags like its own. Beside `<think>` and `</think>`, `</ponder>` closes `<ponder>`."""
    word, close = thinking.open.strip(), thinking.close.strip()
    tags = filter(None, thinking.also) if word and close == f"</{word[1:]}" else ()
    return {word: close} | {tag: f"</{tag[1:]}" for tag in tags}
