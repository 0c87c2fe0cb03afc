"""A model in this process: llama.cpp, through the prebuilt wheels of xllamacpp (the `local` extra).

Everything goes through llama.cpp's documented server interface, called in process, but for likelihoods and the few
words of an argument, which `llama` reads several times as fast where it can. One server a file is shared by the whole
program; it keeps the state of earlier prompts, so that a turn costs its new tokens alone. Sampling is greedy unless a
request sets a temperature.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import json
import logging
import os
import secrets
import sys
import tempfile
import threading
import urllib.request
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from pathlib import Path
from typing import IO, Any

from ...api.completions.prompt_scoring import Token, read_tokens, weigh, write_tokens
from ...api.json_stream import paired, sound
from ...errors import BadRequest, MissingExtra, ModelError, ServerFailed, UsageError, WeightsError
from ...events import Event, Finished, Logprobs, Noted, TextDelta
from ...plan.attachment_marks import has_parts
from ...types import Finish, Reply, Request, Usage
from ..base import Capability
from ..context import checked_context
from ..sampling import NONE, Sampling
from ..strategy import Known
from ..unsupported_settings import without_unsupported
from . import gguf_header, scoring as llama, states, weights
from .llama_cpp_messages import SAMPLING, SHORT, body_of, is_short, raise_error, read_chunk, unused
from .scoring import Llama
from .states import States

CONTEXT = 4096
"""Tokens of context. The embedded model was trained on 8,192; half of it takes 300 MB, and 500 with `llama`."""


log = logging.getLogger(__name__)

SLOTS = 4
"""Prompts that are remembered side by side; they share the tokens of context."""

EMBEDDED_SYSTEM = "You are a helpful assistant."
"""What the embedded model is told where a conversation has no system message: with the one that its own template
puts there it greets in broken words, and says that the capital of France is L'Étoile."""
EMBEDDED = Known("SmolLM2-135M-Instruct", parameters=134_515_008, embedded=True, completes=True, scores=True)
"""What is known of the embedded model, whose template knows no tools."""


class Local:
    """A GGUF file, run by llama.cpp in this process; without a `path`, the embedded model (SmolLM2-135M).

    The file is loaded on the first request (0.5 s), and fetched before where it is the embedded one. A reply ends after
    512 tokens unless the request says otherwise. Raises MissingExtra without xllamacpp, WeightsError for a file that is
    missing or no GGUF. `defaults` are sampling settings for requests that have none.
    """

    capabilities: frozenset[Capability] = frozenset({"prompt", "schema", "enforced", "grammar", "free", "score"})

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, context: int = CONTEXT, defaults: Sampling = NONE
    ) -> None:
        self.path = Path(path).expanduser() if path else None
        self.context = checked_context(context) or CONTEXT
        self.defaults = defaults
        self.name = f"local:{self.path}" if self.path else "local"

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        if has_parts(request.messages):
            raise UsageError(
                "the local model takes text alone, and a message holds an image or another part that is none"
            )
        short = is_short(request)
        request = self.defaults.fill(request)
        request, notes = without_unsupported(request, SAMPLING, thinks=request.prompt is None, engine="llama.cpp")
        for note in (*notes, *unused(request)):
            yield Noted(note)
        body = body_of(request, EMBEDDED_SYSTEM if self.path is None else "")
        server = await asyncio.to_thread(self._server)
        if short and (written := await asyncio.to_thread(server.write, request)):
            yield TextDelta(written.text)
            yield Finished(written.finish, written.usage)
            return
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Any] | ModelError | None] = asyncio.Queue()
        stopped = threading.Event()

        def on_chunk(chunk: dict[str, Any] | ModelError | None) -> bool:
            if not stopped.is_set():
                with contextlib.suppress(RuntimeError):  # the loop has closed: nobody listens any more
                    loop.call_soon_threadsafe(queue.put_nowait, chunk)
            return stopped.is_set()

        def work() -> None:
            end: ModelError | None = ServerFailed("the local model broke off")
            try:
                server.ask(body, on_chunk, chat=request.prompt is None)
                end = None
            except ModelError as error:
                end = error
            finally:
                on_chunk(end)
                _replies.pop(threading.current_thread(), None)

        thread = threading.Thread(target=work, name="toolspeak-local", daemon=True)
        _replies[thread] = stopped
        thread.start()
        finish: Finish = "stop"
        usage = Usage()
        try:
            while (chunk := await queue.get()) is not None:
                if isinstance(chunk, ModelError):
                    raise chunk
                text, tokens, ended, spent = read_chunk(chunk, request.logprobs)
                if tokens:
                    yield Logprobs(tokens)
                if text:
                    yield TextDelta(text)
                finish, usage = ended or finish, spent or usage
        finally:
            stopped.set()
        yield Finished(finish, usage)

    async def load(self) -> None:
        """Loads the file now rather than on the first request. Raises MissingExtra, WeightsError."""
        await asyncio.to_thread(self._server)

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """log P(continuation | prompt) of each: read at once, or what llama.cpp tells of tokens that a grammar
        forces."""
        server = await asyncio.to_thread(self._server)
        return await asyncio.to_thread(server.scores, prompt, continuations)

    async def count(self, request: Request) -> int | None:
        """The tokens of the prompt, by the file's own template and tokenizer."""
        server = await asyncio.to_thread(self._server)
        body = body_of(request, EMBEDDED_SYSTEM if self.path is None else "")
        return await asyncio.to_thread(server.count, body)

    @functools.cached_property
    def known(self) -> Known:
        """What the file tells of itself. Reads its head and loads nothing. Raises WeightsError."""
        return gguf_header.known(self.path) if self.path else EMBEDDED

    def _server(self) -> LlamaServer:
        return _load(self.fetch(), self.context)

    def fetch(self) -> Path:
        """The file, downloaded if it is the embedded one and missing. Raises MissingExtra before that."""
        _library()
        return self.path or weights.ensure()


class LlamaServer:
    """One loaded file, and the three things asked of it."""

    def __init__(self, path: Path, context: int) -> None:
        library = _library()
        params = library.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        # Several memories of one whole: what is asked again and again stays read in one.
        params.n_parallel = SLOTS
        params.kv_unified = True
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
        self.path, self.context, self.threads = path, context, threads
        # One at a time: what is remembered gives way to a prompt that needs the room, what is being worked on cannot.
        self.turn = threading.Lock()
        self.reading = threading.Lock()
        self.tokens = functools.lru_cache(4096)(self._tokens)
        self.check_grammar = functools.lru_cache(256)(self._check_grammar)

    def ask(self, body: dict[str, Any], on_chunk: Callable[[dict[str, Any]], bool], *, chat: bool) -> None:
        """Runs one request to its end; `on_chunk` gets each chunk and returns True to stop."""
        ask = self.server.handle_chat_completions if chat else self.server.handle_completions
        if grammar := body.get("grammar"):
            self.check_grammar(grammar)
        try:
            with self.turn:
                ask(sound(body), on_chunk)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ServerFailed(f"the local model: {error}") from error

    @functools.cached_property
    def llama(self) -> Llama | None:
        """What reads texts at once; None where the library is not as it is known."""
        library = Path(_library().xllamacpp.__file__)
        return llama.load(library, self.path, self.context, self.threads, self.score, self._states)

    def _states(self) -> States:
        """Where what the file has read is kept for other processes."""
        return States(states.folder(), self.path, _library().__version__)

    def write(self, request: Request) -> Reply | None:
        """The reply to a request for a few words; None where it has to be asked for."""
        with self.reading:
            return self.llama and self.llama.write(request.prompt or "", request.stop, request.max_tokens or SHORT)

    def scores(self, prompt: str, texts: Sequence[str]) -> list[float]:
        """log P(text | prompt) of each."""
        with self.reading:
            if self.llama and (rows := self.llama.score(prompt, texts)):
                return rows
        return [self.score(prompt, text) for text in texts]

    def score(self, prompt: str, text: str) -> float:
        """log P(text | prompt). The grammar forces the very tokens that the whole text has; what is told of them
        is their likelihood without it."""
        steps = weigh(self.tokens(prompt), self.tokens(prompt + text), self.tokens(".")[-1][0])
        try:
            body = next(steps)
            while True:
                with self.turn:
                    answer: dict[str, Any] = self.server.handle_completions(body)
                raise_error(answer)
                body = steps.send(answer)
        except StopIteration as end:
            return end.value

    def count(self, body: dict[str, Any]) -> int:
        """The tokens of a request's prompt."""
        prompt = body.get("prompt")
        if prompt is None:
            prompt = self._http("/apply-template", {"messages": body["messages"]})["prompt"]
        return len(self._http("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})["tokens"])

    def _check_grammar(self, grammar: str) -> None:
        """Raises BadRequest for a grammar that llama.cpp cannot read, with what it says of it.

        It says so on the process's stderr alone, hence the detour; an empty prompt costs no time.
        """
        with _stderr() as stderr:
            answer = self.server.handle_completions({"prompt": "", "max_tokens": 1, "grammar": grammar})
            why = " ".join(stderr().split())[:300] or "it cannot be read"
        if "error" in answer:
            raise BadRequest(f"the local model takes no such grammar: {why}")

    def _tokens(self, text: str) -> tuple[Token, ...]:
        return read_tokens(self._http("/tokenize", write_tokens(text)))

    def _http(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - this process's own loopback address
            self.server.listening_address + path,
            data=None if body is None else paired(json.dumps(body)).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"},
        )
        with OPENER.open(request, timeout=60) as response:
            return json.load(response)


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Loopback is never reached through a proxy."""


_replies: dict[threading.Thread, threading.Event] = {}
"""What stops each reply that is being made."""


@atexit.register
def _stop_all() -> None:
    """Lets no reply outlive the program: a thread inside llama.cpp that Python takes down aborts the process."""
    for stopped in tuple(_replies.values()):
        stopped.set()
    for thread in tuple(_replies):
        thread.join(30)


_stderr_turn = threading.Lock()


@contextlib.contextmanager
def _stderr() -> Generator[Callable[[], str]]:
    """Keeps what the process writes to stderr, for the moment that it takes."""
    with _stderr_turn, tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: _read_back(file)
        finally:
            os.dup2(before, 2)
            os.close(before)


def _read_back(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


@functools.lru_cache(4)
def _load_once(path: Path, context: int, pid: int) -> LlamaServer:
    """One a process: the threads of a loaded model do not survive a fork."""
    _announce(path)
    return LlamaServer(path, context)


def _announce(path: Path) -> None:
    """Says that a file is loaded, which takes a while: to the log, or to a person whose program has none."""
    text = (
        f"Loading {path.name}"
        + ("" if any(states.folder().glob("*")) else "; its first answer here takes longest")
        + " …"
    )
    log.info(text)
    if sys.stderr and sys.stderr.isatty() and not log.hasHandlers():
        weights.say(text)


_loading = threading.Lock()


def _load(path: Path, context: int) -> LlamaServer:
    gguf_header.metadata(path)
    with _loading:  # two threads must not load the same file twice
        return _load_once(path.resolve(), context, os.getpid())


def _library() -> Any:
    # llama.cpp's threads meet some hundred times a token. Left to spin while they wait, two of them on two busy cores
    # took 18 times as long as one; sent to sleep at once, a token took 23 ms instead of 9 on a quiet machine. So they
    # spin for a moment. Read once, when the OpenMP library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
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
