"""Sampling settings by the names that people use: for one request, or as a model's defaults.

`temperature` and `max_tokens` are fields of a Request. `top_p`, `top_k` and everything in `extra_body` go into
`Request.sampling`, which each API writes in its own fields or refuses. A default applies only if a request leaves a
setting open, so that the library's own requests (greedy, a few tokens) are not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, cast

from ..errors import UsageError
from ..schema.suggestions import did_you_mean, near
from ..types import Request

RANGES: Mapping[str, tuple[type, float, float, str]] = {
    "temperature": (float, 0, 2, "a number from 0 to 2"),
    "max_tokens": (int, 1, 10_000_000, "a whole number from 1"),
    "top_p": (float, 0, 1, "a number from 0 to 1"),
    "top_k": (int, -1, 100_000, "a whole number from -1"),
}
"""The valid values of each setting; the gateway has the same bounds."""
NUMBERS: dict[str, tuple[type, float, float, str]] = {
    **RANGES,
    "seed": (int, -(2**63), 2**63 - 1, "a whole number"),
    "tries": (int, 1, 1_000_000, "a whole number from 1"),
}
"""Those of all options that are numbers."""
NAMES = (*RANGES, "extra_body")
"""The settings of this module."""
WRITTEN = frozenset({
    "model", "messages", "prompt", "input", "instructions", "system", "stream", "stream_options", "tools", "tool_choice",
    "parallel_tool_calls", "functions", "function_call", "response_format", "text", "format", "n", "stop", "seed",
    "stop_sequences", "max_completion_tokens", "max_output_tokens", "logprobs", "top_logprobs", *RANGES,
})  # fmt: skip
"""Fields that the library writes, which `extra_body` must not replace."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of one request, or a model's defaults."""

    temperature: float | None = None
    max_tokens: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def fill(self, request: Request) -> Request:
        """Return the request with these settings, unless it has its own."""
        if self == NONE:
            return request
        return replace(
            request,
            temperature=self.temperature if request.temperature is None else request.temperature,
            max_tokens=self.max_tokens if request.max_tokens is None else request.max_tokens,
            sampling={**self.more, **request.sampling},
        )


NONE = Sampling()


def sampling(options: Mapping[str, Any]) -> Sampling:
    """Return the sampling settings among `options`. Raises UsageError for an invalid value."""
    settings = {name: checked_setting(name, options.get(name)) for name in RANGES}
    more = {name: settings[name] for name in ("top_p", "top_k") if settings[name] is not None}
    return Sampling(settings["temperature"], settings["max_tokens"], more | _extra(options.get("extra_body")))


def checked_setting(name: str, value: Any) -> Any:
    """Return the value of a setting. Raises UsageError for an invalid one."""
    kind, least, most, expected = NUMBERS[name]
    if value is None:
        return None
    fits = isinstance(value, int | kind) and not isinstance(value, bool) and isfinite(value) and least <= value <= most
    if not fits:
        raise UsageError(f"{name}: expected {expected}, received {value!r:.80}")
    return value


def _extra(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in cast("Mapping[Any, Any]", value)):
        raise UsageError(f'extra_body: expected a dict such as {{"min_p": 0.1}}, received {value!r:.80}')
    extra = {str(name): inner for name, inner in cast("Mapping[str, Any]", value).items()}
    if own := sorted(WRITTEN & extra.keys()):
        names = ", ".join(own)
        raise UsageError(f"extra_body: {names} cannot be set there: the library writes {names} from its own options")
    return extra


def check_options(options: Collection[str], known: Collection[str], who: str) -> None:
    """Raises UsageError for an option that `who` does not have, with a suggestion."""
    for name in options:
        if name not in known:
            meant = did_you_mean(near(name, known))
            raise UsageError(f"{name}: unknown option of {who}.{meant} The options are {', '.join(known)}")


def checked_flag(name: str, value: Any) -> bool:
    """The value of an option that is True or False. Raises UsageError for anything else."""
    if isinstance(value, bool):
        return value
    raise UsageError(f"{name}: expected True or False, received {value!r:.80}")


def checked_function(name: str, value: Any) -> Any:
    """The function in an option, None for none. Raises UsageError for anything else."""
    if callable(value):
        return value
    if value is None:
        return None
    raise UsageError(f"{name}: expected a function, received {value!r:.80}")


def check_settings(request: Request, who: str, known: Collection[str] | None, *, logprobs: bool = True) -> None:
    """Raises UsageError for settings that the API of `who` does not support, which would be dropped silently.

    `known` are the supported names of `Request.sampling`, None for all.
    """
    unknown = [] if known is None else [name for name in request.sampling if name not in known]
    if request.logprobs is not None and not logprobs:
        unknown.append("logprobs")
    if not unknown:
        return
    meant = did_you_mean(near(unknown[0], known or ())) if len(unknown) == 1 else ""
    takes = f" It takes {', '.join(sorted(known))}." if known else ""
    raise UsageError(f"{who} takes no {' and no '.join(unknown)}.{meant}{takes}")
