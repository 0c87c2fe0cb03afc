"""Requests a text from a model, and a text that passes a check.

A model is any object with `generate(system, prompt) -> LLMResult`. A toolspeak model can be used instead (`as_llm`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeGuard, cast, runtime_checkable

from ...drive import run_sync
from ...errors import Attempt, UsageError
from ...models.base import Model
from ...models.resolve import model as named_model
from ...types import Message, Reply, Request
from ...wire.reading.collect import collect
from .answer_values import loadch
from .results import GenerationError, LLMResult, TransformError
from .thinking import split_thoughts

Transform = Callable[[Any], Any]
"""Text → value. It fails by raising TransformError, or (as in the article) returns (value, True) or (None, False)."""


@runtime_checkable
class Generates(Protocol):
    """A model with the interface of this package."""

    def generate(self, system: str, prompt: str) -> LLMResult: ...


LLM = Generates | Model | str


class LLMMixin:
    """The methods that a model with `generate` gets: checked answers, and separation of thoughts.

    Thoughts are separated if both tags are set, on the class or on the instance.
    """

    THINK_OPEN: str | None = None
    THINK_CLOSE: str | None = None

    def generate(self, system: str, prompt: str, images: Any = None) -> LLMResult:
        raise NotImplementedError(f"{type(self).__name__} has no generate(system, prompt)")

    def generate_checked(
        self,
        transformFn: Transform,  # noqa: N803 - the name that programs use
        system: str,
        prompt: str,
        images: Any = None,
        retries: int = 5,
    ) -> LLMResult:
        """Ask until `transformFn` accepts the answer, at most `retries` times; see the function of that name."""
        return _checked(lambda: self._ask(system, prompt, images), transformFn, retries)

    def generate_json(self, system: str, prompt: str, images: Any = None, retries: int = 5) -> LLMResult:
        """Ask until the answer is one value that `loadch` can parse."""
        return _checked(lambda: self._ask(system, prompt, images), _plain(loadch), retries)

    def split_think_full(self, resp: str) -> tuple[str, str | None]:
        """Return the text without its thoughts, and the thoughts, None if there are none."""
        if not (self.THINK_OPEN and self.THINK_CLOSE):
            return resp, None
        return split_thoughts(resp, self.THINK_OPEN, self.THINK_CLOSE)

    def _ask(self, system: str, prompt: str, images: Any) -> LLMResult:
        return self.generate(system, prompt) if images is None else self.generate(system, prompt, images)


class ModelLLM(LLMMixin):
    """A toolspeak model with the interface of this package; `raw` is its whole Reply."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def generate(self, system: str, prompt: str, images: Any = None) -> LLMResult:
        """Return one answer. Images are not supported in this way."""
        if images is not None:
            raise UsageError("images go to a toolspeak model as content parts of a message: see toolspeak.generate")
        first: list[Message] = [{"role": "system", "content": system}] if system else []
        reply = run_sync(self._reply(Request(messages=[*first, {"role": "user", "content": prompt}])))
        return LLMResult(reply, reply.text.strip(), reply.thought or None)

    async def _reply(self, request: Request) -> Reply:
        return collect([event async for event in self.model.stream(request)])


def as_llm(llm: LLM) -> Generates:
    """Return a model with the interface of this package, wrapping a toolspeak model or the name of one."""
    if isinstance(llm, Generates):
        return llm
    if isinstance(llm, str | Model):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are untyped programs
        return ModelLLM(named_model(llm))
    raise TypeError(f"a model has generate(system, prompt) or stream(request); a {type(llm).__name__} has neither")


def generate(llm: LLM, system: str, prompt: str) -> LLMResult:
    """Return one answer as text."""
    return as_llm(llm).generate(system, prompt)


def generate_checked(llm: LLM, transform: Transform, system: str, prompt: str, retries: int = 5) -> LLMResult:
    """Return the first answer that `transform` accepts, with the transformed value as content. The prompt is always the
    same.

    If none of `retries` is accepted, the result is as the transform reports failure: GenerationError
    `failed-on-N-retries` if it raises TransformError, a content of None if it returns (None, False). Any other
    exception of the transform is passed on.
    """
    model = as_llm(llm)
    return _checked(lambda: model.generate(system, prompt), transform, retries)


def _checked(ask: Callable[[], LLMResult], transform: Transform, retries: int) -> LLMResult:
    attempts: list[Attempt] = []
    failure: TransformError | None = None
    raw: Any = None
    for _ in range(max(1, retries)):
        result = ask()
        raw = result.raw
        try:
            value = transform(result.content)
        except TransformError as error:
            failure = error
            attempts.append(Attempt(Reply(text=str(result.content or "")), str(error)))
            continue
        if not _is_maybe(value):
            return LLMResult(raw, value, result.scratchpad)
        if value[1]:
            return LLMResult(raw, value[0], result.scratchpad)
        failure = None
    if failure is None:
        return LLMResult(raw, None)
    raise GenerationError(f"failed-on-{retries}-retries", failure.raw, attempts=attempts) from failure


def _plain(transform: Transform) -> Transform:
    """Return a transform whose every value counts as success, even a pair that ends in a bool."""
    return lambda resp: (transform(resp), True)


def _is_maybe(value: Any) -> TypeGuard[tuple[Any, bool]]:
    if not isinstance(value, tuple) or len(cast("tuple[Any, ...]", value)) != 2:
        return False
    content, ok = cast("tuple[Any, Any]", value)
    return ok is True or (ok is False and content is None)
