"""A dialect on text, without a model: render, parse, decode. What people have becomes what the core takes.

Tools may be functions, Tools, OpenAI-style dicts; a dialect may be given by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from .dialects import get as dialect, names as dialects
from .errors import UsageError
from .schema.infer import as_tools
from .types import Message, Reply
from .wire import decode as decoding, render as rendering
from .wire.dialect import Dialect

if TYPE_CHECKING:
    from .wire.grammar import Form

CLOCK = re.compile(r"\bstrftime_now\b|\bdatetime\b").search
"""Where a chat template asks for the time."""
Thoughts = Literal["split", "keep"]


class Decoder(decoding.Decoder):
    """Text in, events out: `feed(chunk)` and `close()` each return a list of events, the same at every cut.

    `tools=None` takes any name for a call, `[]` none: then nothing is a call. `prompt` is what the generation began
    with (one that ends inside a thought starts there): None where nobody knows it, "" where there was nothing. Of a
    model that always thinks (`d.thinking.always`) None starts inside a thought. `thoughts="keep"` leaves them in the
    text with their own marks; marks around texts go either way. `ids` mints an id for a call that has none. Never
    raises on a model's text.
    """

    def __init__(
        self,
        d: str | Dialect,
        tools: Any = None,
        prompt: str | None = None,
        thoughts: Thoughts = "split",
        ids: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(_dialect(d), as_tools(tools), prompt, thoughts, ids)


def parse(
    text: str, d: str | Dialect, tools: Any = None, prompt: str | None = None, thoughts: Thoughts = "split"
) -> Reply:
    """The Reply that a whole text is: `.text`, `.thought`, `.calls`, `.finish`, `.notes`. Never raises on a model's
    text.

    The parameters are those of `Decoder`; parsing is feeding it in one piece.
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
    """What a model is sent: `.prompt` (the exact text), `.messages` (for a chat server), `.stop`, `.notes`.

    `template` is the model's own chat template (Jinja); without it the dialect's own prompt is used.
    `variables` go to the template (bos_token, datetime, …), `now` is its clock (today where it
    asks for the time and none is given), `thinking` switches the
    model's reasoning where it can be. Raises TemplateError where a template cannot take the messages.
    """
    if template is not None and now is None and CLOCK(template):
        now = datetime.now()
    given: Sequence[Message] = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    return rendering.render(
        given,
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
    """What a model may write, for an engine that samples under a grammar: `lark` (llguidance) and `gbnf` (llama.cpp)
    are texts, `json_schema` and `structural_tag` (xgrammar) are dicts.

    `choice` is "auto" (a text, calls, or a text and then calls), "required", the name of a tool, or "none"; `parallel`
    allows several calls; a reply to a `prompt` that ends in `<think>` starts inside a thought; without `thinking` none
    may come. Properties come in the order of their schema. Raises UsageError where the form cannot say what the dialect
    writes.
    """
    from .wire import grammar as grammars

    return grammars.grammar(_dialect(d), as_tools(tools) or (), choice, form, parallel, prompt, thinking)


def _dialect(d: str | Dialect) -> Dialect:
    if isinstance(d, str | Dialect):  # pyright: ignore[reportUnnecessaryIsInstance]
        return dialect(d)
    raise UsageError(f"d: expected the name of a dialect or a Dialect, received {type(d).__name__}; see ts.dialects()")


__all__ = ["Decoder", "dialect", "dialects", "grammar", "parse", "render"]
