"""Writes requests to llama.cpp's server in this process, and reads its responses."""

from __future__ import annotations

from typing import Any, cast

from ...api.upstream_errors import prompt_too_long
from ...errors import BadRequest, ServerFailed
from ...types import Finish, Note, Request, Usage
from ..sampling import check_settings

LONGEST = 512
"""Tokens of a reply where the request gives no `max_tokens`: a weak model may never stop by itself."""
SHORT = 64
"""Tokens of a reply that is not worth a stream."""

SAMPLING = {
    "top_p": "top_p", "top_k": "top_k", "min_p": "min_p", "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty", "repetition_penalty": "repeat_penalty", "logit_bias": "logit_bias",
}  # fmt: skip
"""The settings of `Request.sampling` that llama.cpp takes, by its own names."""


def is_short(request: Request) -> bool:
    """Whether a request wants a few words, greedily, and nothing else."""
    plain = Request(prompt=request.prompt, stop=request.stop, max_tokens=request.max_tokens, temperature=0)
    return bool(request.prompt) and request == plain and 0 < (request.max_tokens or LONGEST) <= SHORT


RANDOM = ("top_p", "top_k", "min_p")
"""Settings that say nothing where sampling is greedy."""


def unused(request: Request) -> list[Note]:
    """A note of the settings that change nothing, because the request sets no temperature and sampling is greedy
    then."""
    names = [name for name in RANDOM if name in request.sampling]
    if request.temperature is not None or not names:
        return []
    return [Note("not-sampled", f"{', '.join(names)}: the local model takes the likeliest token without a temperature")]


def body_of(request: Request, system: str = "") -> dict[str, Any]:
    """The body of a request; `system` is the system message where the conversation has none. Raises UsageError."""
    body: dict[str, Any] = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_prompt": True,
        "temperature": request.temperature or 0,
    }
    body |= _input_of(request, system)
    check_settings(request, "the local model", SAMPLING)
    body |= {SAMPLING[name]: value for name, value in request.sampling.items()}
    if request.logprobs is not None:
        body |= _likelihoods(request.logprobs, chat=request.prompt is None)
    if request.thinking is not None:
        body["chat_template_kwargs"] = {"enable_thinking": request.thinking}
    optional = {"max_tokens": request.max_tokens or LONGEST, "seed": request.seed, "grammar": request.grammar}
    body |= {key: value for key, value in optional.items() if value is not None}
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        body["json_schema"] = dict(request.schema)
    return body


def _likelihoods(most: int, *, chat: bool) -> dict[str, Any]:
    """What asks for the `most` likeliest tokens; a completion takes their number. Without one llama.cpp reports no
    likelihood at all, so at least one is requested."""
    count = max(1, most)
    return {"logprobs": True if chat else count, "top_logprobs": count}


def _input_of(request: Request, system: str) -> dict[str, Any]:
    """The prompt, or the conversation with its system message."""
    if request.prompt is not None:
        return {"prompt": request.prompt}
    has_system = any(message.get("role") == "system" for message in request.messages)
    first = [{"role": "system", "content": system}] if system and not has_system else []
    return {"messages": [*first, *request.messages]}


def read_chunk(
    chunk: dict[str, Any], most: int | None
) -> tuple[str, list[dict[str, Any]], Finish | None, Usage | None]:
    """A chunk's text, the likelihoods of its tokens with at most `most` others each, why it ended, and what was spent."""
    raise_error(chunk)
    text, finish, usage = "", None, None
    tokens: list[dict[str, Any]] = []
    choices: list[dict[str, Any]] = chunk.get("choices") or []
    for choice in choices:
        delta: dict[str, Any] = choice.get("delta") or {}
        text += str(choice.get("text") or delta.get("content") or "")
        logprobs: dict[str, list[dict[str, Any]]] = choice.get("logprobs") or {}
        tokens += [_token(token, most) for token in logprobs.get("content") or ()]
        if reason := choice.get("finish_reason"):
            finish = "length" if reason == "length" else "stop"
    if spent := cast("dict[str, Any] | None", chunk.get("usage")):
        details: dict[str, int] = spent.get("prompt_tokens_details") or {}
        usage = Usage(spent["prompt_tokens"], spent["completion_tokens"], details.get("cached_tokens", 0))
    return text, tokens, finish, usage


def _token(token: dict[str, Any], most: int | None) -> dict[str, Any]:
    """A token in OpenAI's form: llama.cpp also tells its number."""
    others: list[dict[str, Any]] = token.get("top_logprobs") or []
    fields = {key: token[key] for key in ("token", "logprob", "bytes") if key in token}
    return {**fields, "top_logprobs": [{key: one[key] for key in one if key != "id"} for one in others[:most]]}


def raise_error(answer: dict[str, Any]) -> None:
    """Raises PromptTooLong, BadRequest or ServerFailed for an answer that is an error."""
    if error := answer.get("error"):
        message = f"the local model: {error.get('message') or error}"
        kind = BadRequest if error.get("code") == 400 else ServerFailed
        raise prompt_too_long(answer, message) or kind(message)
