"""Shows the first request to a model, byte for byte, and the grammar that constrains its output. It sends nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Unpack, runtime_checkable

from .display import LONGEST, cut, text_html, visible
from .models.base import Around, Model
from .models.fallback import Adaptive
from .models.speaker import Speaker
from .models.strategy import Strategy
from .models.wrapper import within
from .plan.effects import Ask, Score
from .policy.content_origin import for_model
from .types import Message, Request, Schema
from .verbs import Options, Prompt, job


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The first request to a model. `print` it to read it.

    `body` is the exact body for an HTTP server at `url`. `prompts` are the exact texts that a model would continue;
    with `continuations`, those whose likelihood it would compute. `messages` is the conversation for a chat model.
    `again` are the re-asking strategies for a wrong reply, without those that cannot change anything for this model.
    `strategy` says how the model is asked and why, "" for one with native tool calling. `profile` is the file of the
    profile that decides this, "" for none; see `toolspeak tune`. `unnamed`: the model's name in `body` is empty, because
    the address has none; the server is asked for it before the request.
    """

    model: str
    url: str = ""
    body: bytes = b""
    prompts: tuple[str, ...] = ()
    continuations: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    stop: tuple[str, ...] = ()
    schema: Schema | None = None
    grammar: str | None = None
    again: tuple[str, ...] = ()
    profile: str = ""
    strategy: str = ""
    unnamed: bool = False

    @property
    def prompt(self) -> str:
        """The first prompt."""
        return self.prompts[0] if self.prompts else ""

    def _texts(self) -> Sequence[str]:
        """The prompts, each with its continuation if the model scores continuations."""
        if not self.continuations:
            return self.prompts
        texts = map("".join, zip(self.prompts, self.continuations, strict=True))
        head = f"asks how likely each of {len(self.prompts)} texts is:"
        return [head, *(f"--- {i}\n{text}" for i, text in enumerate(texts, 1))]

    def __repr__(self) -> str:
        return f"Explanation of {cut(visible(str(self)), 4 * LONGEST)}"

    def _repr_html_(self) -> str:
        return text_html(str(self))

    def __str__(self) -> str:
        parts = [f"model: {self.model}"]
        if self.strategy:
            parts.append(f"asked: {self.strategy}")
        if self.unnamed:
            parts.append(
                "the address names no model: before the request, the server is asked for the name of its only one"
            )
        if self.url:
            parts.append(f"POST {self.url}\n{self.body.decode()}")
        parts += self._texts()
        if not self.body:
            parts += [f"{message.get('role')}:\n{message.get('content')}" for message in self.messages]
        if self.stop:
            parts.append(f"stop: {json.dumps(self.stop, ensure_ascii=False)}")
        if self.schema is not None:
            parts.append(f"held to the JSON Schema: {json.dumps(self.schema, ensure_ascii=False)}")
        if self.grammar:
            parts.append(f"held to the grammar:\n{self.grammar}")
        if self.again:
            parts.append(f"asked again, were the reply wrong: {', '.join(self.again)}")
        return "\n\n".join(parts)


def explain(prompt: Prompt, *, tools: Any = (), **options: Unpack[Options]) -> Explanation:
    """The first request to the model, to the byte. Nothing is sent, and no model is loaded.

    The parameters are those of `run`. Only the first request can be shown, since later ones depend on the reply.
    """
    prepared = job(prompt, tools, options)
    model, request = prepared.model, replace(prepared.request, messages=for_model(prepared.request.messages))
    while isinstance(model, ToolSelector):
        request, model = model.narrowed_now(request), model.model
    chosen: Strategy | None = getattr(model, "strategy", None)
    line, profile = (chosen.line, chosen.profile) if chosen else ("", "")
    again = tuple(strategy.name for strategy in prepared.reask.strategies if request.tools and not strategy.idle)
    model = model.now(request) if isinstance(model, Adaptive) else model
    if isinstance(model, Speaker):
        effect = model.plan(request).send(None)
        model = model.model
        if isinstance(effect, Score):
            prompts, texts = zip(*effect.pairs, strict=True)
            return Explanation(
                model.name, prompts=prompts, continuations=texts, again=again, profile=profile, strategy=line
            )
        if not isinstance(effect, Ask):
            raise AssertionError(f"a reply begins with a question, not {effect!r}")
        request = effect.request
    return replace(_sent(model, request), again=again, profile=profile, strategy=line)


def _sent(model: Model, request: Request) -> Explanation:
    """The explanation of a request for this model, without any wrappers around it."""
    remote = within(model, Remote)
    body = remote.body(request) if remote else b""
    return Explanation(
        model.name,
        url=remote.endpoint if remote else "",
        body=body,
        unnamed=bool(body) and json.loads(body).get("model") == "",
        prompts=() if request.prompt is None else (request.prompt,),
        messages=tuple(request.messages) if request.prompt is None else (),
        stop=request.stop,
        schema=request.schema,
        grammar=request.grammar,
    )


@runtime_checkable
class ToolSelector(Around, Protocol):
    """A model wrapper that passes on only some of a request's tools."""

    def narrowed_now(self, request: Request) -> Request:
        """The first request that the inner model gets."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A model that can show what it would send to its server."""

    @property
    def endpoint(self) -> str:
        """The URL of a request, without credentials."""
        ...

    def body(self, request: Request) -> bytes:
        """The exact body of a request."""
        ...
