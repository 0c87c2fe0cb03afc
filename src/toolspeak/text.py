"""Renders, parses and decodes text in a dialect, without a model. It converts the user's values for the core.

Tools may be functions, Tools or OpenAI-style dicts; a dialect may be given by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from .dialects import get as dialect, names as dialects
from .errors import UsageError
from .models.sampling import checked_function
from .schema.infer import as_tools
from .types import Message, Reply
from .wire import decode as decoding, render as rendering
from .wire.dialect import Dialect

if TYPE_CHECKING:
    from .wire.grammar import Form

CLOCK = re.compile(r"\bstrftime_now\b|\bdatetime\b").search
"""Whether a chat template uses the current time."""
Thoughts = Literal["split", "keep"]


class Decoder(decoding.Decoder):
    """Converts text to events: `feed(chunk)` and `close()` each return a list of events, independent of how the text
    is cut.

    `tools=None` accepts calls with any name; with `[]` nothing is a call. `prompt` is what the model continued: one
    that ends inside a thought makes the text start there. "" means there was none, None that it is unknown; then the
    text of a model that always thinks (`d.thinking.always`) starts inside a thought. `thoughts="keep"` leaves thoughts
    in the text with their markers; markers around texts are removed in any case. `ids` creates an id for a call
    without one. Never raises on a model's text.
    """

    def __init__(
        self,
        d: str | Dialect,
        tools: Any = None,
        prompt: str | None = None,
        thoughts: Thoughts = "split",
        ids: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(_dialect(d), as_tools(tools), prompt, thoughts, checked_function("ids", ids))


def parse(
    text: str, d: str | Dialect, tools: Any = None, prompt: str | None = None, thoughts: Thoughts = "split"
) -> Reply:
    """Converts a whole text to a Reply: `.text`, `.thought`, `.calls`, `.finish`, `.notes`. Never raises on a model's
    text.

    The parameters are those of `Decoder`. Parsing is decoding the text in one piece.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"text: expected what a model wrote, a str, received {type(text).__name__}")
    return decoding.parse(text, _dialect(d), as_tools(tools), prompt, thoughts)


def render(
    messages: str | Sequence[Message],
    tools: Any,
    d: str | Dialect,
    template: str | None = None,
    thinking: bool | None = None,
    now: datetime | None = None,
    continue_final: bool | None = None,
    variables: Mapping[str, Any] | None = None,
    choice: str = "auto",
) -> rendering.Rendered:
    """The prompt for a model: `.prompt` (the exact text), `.messages` (for a chat server), `.stop`, `.notes`.

    `template` is the model's own chat template (Jinja); without it the dialect's prompt is used. `variables` are
    passed to the template (bos_token, datetime, …). `now` is its clock (by default today, if it uses one). `thinking`
    switches the model's reasoning if that is possible. With `continue_final` the prompt ends in the last message, an
    assistant's, which the model continues; if that is only a thought (`reasoning_content`, or a text with an opener and
    no closer), the prompt ends inside the thought. Raises TemplateError if a template cannot render the messages.
    """
    if template is not None and now is None and CLOCK(template):
        now = datetime.now()
    conversation: Sequence[Message] = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    return rendering.render(
        conversation,
        as_tools(tools),
        _dialect(d),
        template=template,
        thinking=thinking,
        now=now,
        continue_final=continue_final,
        variables=variables,
        choice=choice,
    )


def grammar(
    d: str | Dialect,
    tools: Any,
    choice: str = "auto",
    form: Form = "lark",
    parallel: bool = True,
    prompt: str = "",
    thinking: bool = True,
) -> str | dict[str, Any]:
    """The grammar of a model's replies, for an engine with constrained sampling. `lark` (llguidance) and `gbnf`
    (llama.cpp) are texts, `json_schema` and `structural_tag` (xgrammar) are dicts.

    `choice` is "auto" (text, calls, or text and then calls), "required", the name of a tool, or "none". `parallel`
    allows several calls. A reply to a `prompt` that ends in `<think>` starts inside a thought; without `thinking` it
    may have none. Properties come in the order of their schema. Some keywords, such as `pattern` or `minimum`, are not
    enforced in each form: `toolspeak grammar` names them, and the check of a call finds what breaks them. Raises UsageError if the form cannot express the
    dialect.
    """
    from .wire import grammar as grammars

    return grammars.grammar(_dialect(d), as_tools(tools) or (), choice, form, parallel, prompt, thinking)


def _dialect(d: str | Dialect) -> Dialect:
    if isinstance(d, Dialect):
        from .wire.round_trip import readable

        return readable(d)
    if isinstance(d, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return dialect(d)
    raise UsageError(f"d: expected the name of a dialect or a Dialect, received {type(d).__name__}; see ts.dialects()")


__all__ = ["Decoder", "dialect", "dialects", "grammar", "parse", "render"]
