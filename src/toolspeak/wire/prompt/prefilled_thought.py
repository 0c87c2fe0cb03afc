"""Continues an assistant's message that so far is only a thought: the prompt ends inside that thought.

Templates render a thought as complete, or drop it. So they render the conversation before it, and the thought is
written after the opener that the prompt ends with. If it ends with none, or with an empty thought, which tells the model
not to think, the dialect's opener is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...types import Message
from ..dialect import Dialect
from ..reading.lexicon import THINK, program
from ..thought_tags import thought_tags
from .turns import Turn


def prefilled_thought(turns: Sequence[Turn], d: Dialect) -> str:
    """The thought with which the conversation ends, if its last turn, an assistant's, has nothing else; otherwise "".

    It may be apart, or be a text with the dialect's opener and no closer.
    """
    match turns:
        case [_, *_, Turn("assistant", text, thought, ())]:
            if thought:
                return "" if text.strip() else thought * bool(_opener(d))
            return _unclosed(text.lstrip(), d)
        case _:
            return ""


def _unclosed(text: str, d: Dialect) -> str:
    """The text after the opener of a thought that does not close."""
    tags = thought_tags(d.thinking) if d.thinking else dict[str, str]()
    for opener in filter(text.startswith, filter(None, tags)):
        thought = text.removeprefix(opener).lstrip()
        return "" if (tags[opener] or "\n") in thought else thought
    return ""


def with_thought(prompt: str, thought: str, d: Dialect) -> str:
    """The prompt of a new message, with this thought begun in it."""
    if program(d, True).begins(prompt) == THINK:
        return prompt + thought
    opener, start = _opener(d), d.header.start if d.header else ""
    if prompt.rstrip().endswith(start.strip()):
        opener = opener.removeprefix(start)
    return _without_empty_thought(prompt, d) + opener + thought


def begun_messages(thought: str, d: Dialect) -> list[Message]:
    """The message with the thought as far as it is written, for a chat server or a layout; none without a thought."""
    return [{"role": "assistant", "content": _opener(d) + thought}] if thought else []


def _opener(d: Dialect) -> str:
    if d.header and d.header.thought:
        return d.header.start + d.header.thought + d.header.stop
    return d.thinking.open if d.thinking else ""


def _without_empty_thought(prompt: str, d: Dialect) -> str:
    """The prompt without a closed thought at its end that has no text, or without a closer alone."""
    words = (d.thinking.close.strip(), d.thinking.open.strip()) if d.thinking else ()
    for word in filter(None, words):
        before = prompt.rstrip()
        if not before.endswith(word):
            break
        prompt = before.removesuffix(word)
    return prompt
