"""A model served by Ollama, through its own API and the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...errors import BadRequest, KeyRefused, ModelError, ModelUnreachable, RateLimited, ServerFailed, UsageError
from .llm import LLMMixin
from .results import LLMResult


class Response:
    """A server's response."""

    def __init__(self, status_code: int, body: bytes) -> None:
        self.status_code = status_code
        self.content = body

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        return json.loads(self.content)

    def __repr__(self) -> str:
        return f"<Response [{self.status_code}]>"


class Ollama(LLMMixin):
    """One model of a server, used through `/api/generate`, with thoughts separated.

    The constructor sends nothing; the first request shows whether the server and the model exist. `timeout` is in
    seconds. `skip_healthcheck` is accepted for programs that pass it, and ignored.
    """

    THINK_OPEN = "<think>"
    THINK_CLOSE = "</think>"

    def __init__(
        self,
        model: str,
        ollama_server: str | None = None,
        timeout: float | None = 300.0,
        skip_healthcheck: bool = True,
        open_think: str | None = None,
        close_think: str | None = None,
    ) -> None:
        self.model = model
        self.server = (ollama_server or "http://localhost:11434").rstrip("/")
        self.timeout = timeout
        if urlsplit(self.server).scheme not in ("http", "https"):
            raise UsageError(f"a server's address begins with http:// or https://, not {ollama_server!r}")
        if open_think is not None:
            self.THINK_OPEN = open_think  # pyright: ignore[reportConstantRedefinition] - the package's name
        if close_think is not None:
            self.THINK_CLOSE = close_think  # pyright: ignore[reportConstantRedefinition]

    def generate(self, system: str, prompt: str, images: Sequence[bytes | Path] | None = None) -> LLMResult:
        """Return one answer. Raises a ModelError with the server's message if there is none."""
        body: dict[str, Any] = {
            "model": self.model,
            "stream": False,
            "prompt": f"SYSTEM PROMPT: {system} PROMPT: {prompt}",
        }
        if images is not None:
            body["images"] = [_base64(image) for image in images]
        response = _post(f"{self.server}/api/generate", body, self.timeout)
        try:
            text = response.json()["response"]
        except (ValueError, KeyError, TypeError) as error:
            came = response.text[:200]
            raise ServerFailed(
                f"{self.server} is no Ollama server: expected {{'response': ...}}, got {came!r}"
            ) from error
        content, thought = self.split_think_full(str(text).strip())
        return LLMResult(response, content, thought)


def _post(url: str, body: dict[str, Any], timeout: float | None) -> Response:
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked where the address is given
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            return Response(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(url, Response(error.code, error.read())) from None
    except (OSError, http.client.HTTPException) as error:  # a URLError is an OSError
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise ModelUnreachable(f"no answer from {url}: {reason}. Is the server running (`ollama serve`)?") from error


def _refusal(url: str, response: Response) -> ModelError:
    """Return the error for a status other than 200, with the server's message."""
    try:
        message = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        message = response.text[:200]
    text = f"{url} answered {response.status_code}: {message}"
    if response.status_code == 404:
        return BadRequest(f"{text} (a model that is not there yet comes with `ollama pull`)")
    if response.status_code in (401, 403):
        return KeyRefused(text)
    if response.status_code == 429:
        return RateLimited(text)
    return ServerFailed(text) if response.status_code >= 500 else BadRequest(text)


def _base64(image: bytes | Path) -> str:
    if isinstance(image, Path):
        image = image.read_bytes()
    if not isinstance(image, bytes):  # pyright: ignore[reportUnnecessaryIsInstance] - callers are untyped programs
        raise UsageError(f"an image is bytes or a Path, not {type(image).__name__}")
    return base64.b64encode(image).decode()
