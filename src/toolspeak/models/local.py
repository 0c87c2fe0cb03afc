"""A model in this very process: llama.cpp, through the prebuilt wheels of xllamacpp (the `local` extra).

Everything goes through llama.cpp's documented server interface, called in process. One server a file
is shared by the whole program; it keeps the state of earlier prompts, so that a turn costs its new
tokens alone. Sampling is greedy unless a request sets a temperature.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import secrets
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import BadRequest, MissingExtra, ServerFailed, WeightsError
from ..events import Event, Finished, TextDelta
from ..types import Finish, Request, Usage
from . import weights
from .base import Capability

CONTEXT = 4096
"""Tokens of context. The embedded model was trained on 8,192; half of it keeps memory under 300 MB."""


class Local:
    """A GGUF file, run by llama.cpp in this process; without a `path`, the embedded model (SmolLM2-135M).

    The file is loaded on the first request (0.5 s), and fetched before where it is the embedded one.
    Raises MissingExtra without xllamacpp, WeightsError for a file that is missing or no GGUF.
    """

    capabilities: frozenset[Capability] = frozenset({"prompt", "schema", "grammar", "score"})

    def __init__(self, path: str | os.PathLike[str] | None = None, *, context: int = CONTEXT) -> None:
        self.path = Path(path).expanduser() if path else None
        self.context = context
        self.name = f"local:{self.path}" if self.path else "local"

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        server = await asyncio.to_thread(self._server)
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        stopped = threading.Event()

        def heard(chunk: dict[str, Any]) -> bool:
            if not stopped.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, chunk)
            return stopped.is_set()

        def work() -> None:
            try:
                server.ask(_body(request), heard, chat=request.prompt is None)
            finally:
                if not stopped.is_set():
                    loop.call_soon_threadsafe(queue.put_nowait, None)

        thread = threading.Thread(target=work, name="toolspeak-local", daemon=True)
        thread.start()
        finish: Finish = "stop"
        usage = Usage()
        try:
            while (chunk := await queue.get()) is not None:
                text, ended, spent = _read(chunk)
                if text:
                    yield TextDelta(text)
                finish, usage = ended or finish, spent or usage
        finally:
            stopped.set()
        yield Finished(finish, usage)

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """log P(continuation | prompt) of each: what llama.cpp tells of tokens that a grammar forces."""
        server = await asyncio.to_thread(self._server)
        return await asyncio.to_thread(lambda: [server.score(prompt, text) for text in continuations])

    @functools.cached_property
    def template(self) -> str:
        """The chat template in the file, "" where it holds none. Loads the file."""
        return str(self._server().properties().get("chat_template") or "")

    def _server(self) -> Server:
        path = self.path or weights.ensure()
        return _load(path, self.context)


class Server:
    """One loaded file, and the three things asked of it."""

    def __init__(self, path: Path, context: int) -> None:
        library = _library()
        params = library.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_parallel = 1
        params.warmup = False
        params.verbosity = -1
        params.ui = False
        threads = _threads()
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        # The library also listens on a loopback port, needed for /tokenize: nobody else shall use it.
        self.key = secrets.token_urlsafe(24)
        params.api_keys = [self.key]
        try:
            self.server = library.Server(params)
        except RuntimeError as error:
            raise WeightsError(f"llama.cpp cannot load {path}: {error}. Is it a whole GGUF file?") from error
        self.tokens = functools.lru_cache(4096)(self._tokens)

    def ask(self, body: dict[str, Any], heard: Callable[[dict[str, Any]], bool], *, chat: bool) -> None:
        """Runs one request to its end; `heard` gets each chunk and returns True to stop."""
        ask = self.server.handle_chat_completions if chat else self.server.handle_completions
        try:
            ask(body, heard)
        except RuntimeError as error:
            heard({"error": {"code": 500, "message": str(error)}})

    def score(self, prompt: str, text: str) -> float:
        """log P(text | prompt). The grammar forces the very tokens that the whole text has; what is told of them
        is their likelihood without it."""
        before, whole = self.tokens(prompt), self.tokens(prompt + text)
        same = next((i for i, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), len(before))
        forced = whole[same:]
        body = {
            "prompt": list(whole[:same]),
            "max_tokens": len(forced),
            "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in forced),
            "temperature": 0,
            "n_probs": 1,
            "cache_prompt": True,
        }
        answer = cast("dict[str, Any]", self.server.handle_completions(body))
        if "error" in answer:  # seen where a character spans several tokens: force the characters instead
            literal = json.dumps(text, ensure_ascii=False)
            body |= {"prompt": prompt, "grammar": f"root ::= {literal}", "max_tokens": 4 * len(text) + 8}
            answer = self.server.handle_completions(body)
        _raise(answer)
        told: list[dict[str, Any]] = (answer["choices"][0].get("logprobs") or {"content": []})["content"]
        return float(sum(token["logprob"] for token in told if token["token"]))

    def properties(self) -> dict[str, Any]:
        """What llama.cpp tells of the file: its chat template, its special tokens."""
        return self._http("/props")

    def _tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self._http("/tokenize", {"content": text, "add_special": False})["tokens"])

    def _http(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - this process's own loopback address
            self.server.listening_address + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
        )
        with OPENER.open(request, timeout=60) as response:
            return json.load(response)


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Loopback is never reached through a proxy."""


@functools.lru_cache(4)
def _load_once(path: Path, context: int) -> Server:
    return Server(path, context)


_loading = threading.Lock()


def _load(path: Path, context: int) -> Server:
    if not path.is_file():
        raise WeightsError(f"there is no model file {path}. Expected: the path of a GGUF file")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise WeightsError(f"{path} is no GGUF file: it does not begin with the letters GGUF")
    with _loading:  # two threads must not load the same file twice
        return _load_once(path.resolve(), context)


def _library() -> Any:
    # llama.cpp's threads meet some hundred times a token. Left to spin while they wait, two of them on two busy
    # cores took 18 times as long as one; read once, when the OpenMP library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise MissingExtra(
            "the embedded model needs llama.cpp: pip install 'toolspeak[local]' (or name a server: ollama:gemma3, http://…)"
        ) from error
    return xllamacpp


def _threads() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _body(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_prompt": True,
        "temperature": request.temperature or 0,
    }
    if request.prompt is None:
        body["messages"] = list(request.messages)
    else:
        body["prompt"] = request.prompt
    optional = {"max_tokens": request.max_tokens, "seed": request.seed, "grammar": request.grammar}
    body |= {key: value for key, value in optional.items() if value is not None}
    if request.stop:
        body["stop"] = list(request.stop)
    if request.schema is not None:
        body["json_schema"] = dict(request.schema)
    return body


def _read(chunk: dict[str, Any]) -> tuple[str, Finish | None, Usage | None]:
    """A chunk's text, why it ended, and what was spent."""
    _raise(chunk)
    text, finish, usage = "", None, None
    choices: list[dict[str, Any]] = chunk.get("choices") or []
    for choice in choices:
        delta: dict[str, Any] = choice.get("delta") or {}
        text += str(choice.get("text") or delta.get("content") or "")
        if reason := choice.get("finish_reason"):
            finish = "length" if reason == "length" else "stop"
    if told := cast("dict[str, Any] | None", chunk.get("usage")):
        details: dict[str, int] = told.get("prompt_tokens_details") or {}
        usage = Usage(told["prompt_tokens"], told["completion_tokens"], details.get("cached_tokens", 0))
    return text, finish, usage


def _raise(answer: dict[str, Any]) -> None:
    if error := answer.get("error"):
        message = str(error.get("message") or error)
        if error.get("type") == "exceed_context_size_error":
            message += ". Give fewer tools or messages, or Local(path, context=…) more room"
        raise (BadRequest if error.get("code") == 400 else ServerFailed)(f"the local model: {message}")
