"""Scores continuations of a prompt in batches through llama.cpp's C functions, and generates short texts.

Its server tells the likelihood of a token only as it makes it, one after another and under a grammar; read as part
of a prompt they all come at once, and what several texts begin with is read once (measured: `docs/explanation/performance.md`).
The functions are those of `llama.h`, in the library that the server comes with. What may differ between versions is
looked at, not trusted: where anything is not as known, there is no Llama, and the server is asked.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int8, c_int32, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ...api.completions.prompt_scoring import beginning
from ...types import Reply, Usage
from .states import LEAST, States

log = logging.getLogger(__name__)

CACHED = 6
"""Prompts that are remembered, the last ones; they share the room."""
ABREAST = 24
"""Texts that are read at once after one prompt."""
ROOM = 3072
"""Tokens of the context at most; what is longer the server reads. Of the embedded model each takes 23 kB."""
BATCH = 512
"""Tokens that are read at once."""
PIECE = 64
"""Tokens of a prompt that are read at once, from a multiple of it on."""
SCORED = 64
"""Of these those behind which likelihoods are told: each takes four bytes a word of the vocabulary."""
NO_ROOM = 1
"""What `llama_decode` says where the context has no room for a batch."""
LARGEST_FILE = 2**30
"""Bytes of a file that is loaded a second time."""
PROMPT, LIKELY, ABSURD = "The capital of France is", " Paris", " xylophone quarrel"
"""By what it is seen whether the likelihoods are right."""
NEAR = 1.0
"""Nats by which they may differ from the server's: a model computes a little otherwise in a batch."""
HEAD = (512, 2048, BATCH, 1)
"""How the default settings of a context begin: n_ctx, n_batch, n_ubatch, n_seq_max."""
SWITCHES = bytes((0, 1, 1, 1, 1, 0))
"""How they end: embeddings, offload_kqv, no_perf, op_offload, swa_full, and kv_unified, which is to be set."""


class Params(ctypes.Structure):
    """Room for settings whose size differs between versions: they are passed in memory, and what is too much is not
    read."""

    _fields_ = [("numbers", c_uint32 * 256)]


class Batch(ctypes.Structure):
    """`llama_batch`."""

    _fields_ = [
        ("count", c_int32),
        ("tokens", POINTER(c_int32)),
        ("embd", c_void_p),
        ("places", POINTER(c_int32)),
        ("lengths", POINTER(c_int32)),
        ("rows", POINTER(POINTER(c_int32))),
        ("told", POINTER(c_int8)),
    ]


@dataclass(slots=True)
class CachedPrompt:
    """The tokens of a prompt that a row of the context holds."""

    row: int
    tokens: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True)
class BatchToken:
    """A token to read: its place in its row, and whether to tell how likely each next one is."""

    token: int
    place: int
    row: int
    scored: bool = False


class Llama:
    """A second context of a GGUF file. One thread at a time may use it.

    `states` keeps the beginnings that its prompts share for other processes. `evaluated` counts the tokens that it
    read. Raises OSError, AttributeError, ImportError (of numpy) or ValueError where the library is none that it knows.
    """

    def __init__(self, library: Path, path: Path, context: int, threads: int, states: States | None = None) -> None:
        import numpy

        self.states = states
        self.context = context
        self.evaluated = 0
        self.numpy = numpy
        self.library = ctypes.CDLL(str(library))
        self.model = self._loaded(path)
        self.state = self._begun(context, threads)
        self.memory = self._call("llama_get_memory", c_void_p, c_void_p)(self.state)
        self.vocabulary = self._call("llama_model_get_vocab", c_void_p, c_void_p)(self.model)
        self.words: int = self._call("llama_vocab_n_tokens", c_int32, c_void_p)(self.vocabulary)
        self._tokenize = self._call(
            "llama_tokenize", c_int32, c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool
        )
        self._decode = self._call("llama_decode", c_int32, c_void_p, Batch)
        self._logits = self._call("llama_get_logits_ith", POINTER(c_float), c_void_p, c_int32)
        self._remove = self._call("llama_memory_seq_rm", c_bool, c_void_p, c_int32, c_int32, c_int32)
        self._copy = self._call("llama_memory_seq_cp", None, c_void_p, c_int32, c_int32, c_int32, c_int32)
        self._last = self._call("llama_memory_seq_pos_max", c_int32, c_void_p, c_int32)
        self._state_size = self._call("llama_state_seq_get_size", c_size_t, c_void_p, c_int32)
        self._get_state = self._call("llama_state_seq_get_data", c_size_t, c_void_p, c_char_p, c_size_t, c_int32)
        self._set_state = self._call("llama_state_seq_set_data", c_size_t, c_void_p, c_char_p, c_size_t, c_int32)
        self._ends = self._call("llama_vocab_is_eog", c_bool, c_void_p, c_int32)
        self._spell = self._call("llama_token_to_piece", c_int32, c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool)
        self.batch = self._call("llama_batch_init", Batch, c_int32, c_int32, c_int32)(BATCH, 0, 1)
        if self.batch.embd or not self.batch.told:
            raise ValueError("a batch is laid out otherwise")
        self.prompt_cache = [CachedPrompt(row) for row in range(CACHED)]

    def _loaded(self, path: Path) -> int:
        """The model, where what it has read can be taken back in part."""
        settings = self._call("llama_model_default_params", Params)()
        model = self._call("llama_model_load_from_file", c_void_p, c_char_p, Params)(str(path).encode(), settings)
        if not model:
            raise ValueError(f"{path} cannot be loaded")
        tells = {"llama_model_is_recurrent": c_bool, "llama_model_is_hybrid": c_bool, "llama_model_n_swa": c_int32}
        if kinds := [name for name, kind in tells.items() if self._call(name, kind, c_void_p)(model)]:
            self._call("llama_model_free", None, c_void_p)(model)
            raise ValueError(f"what it has read cannot be taken back in part: {kinds}")
        return model

    def _begun(self, context: int, threads: int) -> int:
        """A context of so many tokens, which all rows share."""
        settings = self._call("llama_context_default_params", Params)()
        switches = bytes(settings).rfind(SWITCHES)
        if tuple(settings.numbers[:4]) != HEAD or switches < 0:
            raise ValueError("the settings of a context are laid out otherwise")
        settings.numbers[0], settings.numbers[3] = context, CACHED + ABREAST
        ctypes.memset(ctypes.addressof(settings) + switches + len(SWITCHES) - 1, 1, 1)
        state = self._call("llama_init_from_model", c_void_p, c_void_p, Params)(self.model, settings)
        if not state:
            raise ValueError("there is no room for a context")
        rows = self._call("llama_n_seq_max", c_uint32, c_void_p)(state)
        own = self._call("llama_n_ctx_seq", c_uint32, c_void_p)(state)
        if rows != CACHED + ABREAST or own < context:
            raise ValueError(f"a context has {rows} rows of {own} tokens, not {CACHED + ABREAST} that share {context}")
        self._call("llama_set_n_threads", None, c_void_p, c_int32, c_int32)(state, threads, threads)
        return state

    def _call(self, name: str, result: Any, *takes: Any) -> Callable[..., Any]:
        function = getattr(self.library, name)
        function.restype, function.argtypes = result, takes
        return function

    def tokens(self, text: str) -> list[int]:
        """The numbers of a text's tokens."""
        encoded = text.encode("utf-8", "replace")  # half a surrogate pair is no text
        room = (c_int32 * (len(encoded) + 8))()
        count = self._tokenize(self.vocabulary, encoded, len(encoded), room, len(room), True, True)
        return room[: max(0, count)]

    def score(self, prompt: str, texts: Sequence[str]) -> list[float] | None:
        """log P(text | prompt) of each; None where they do not fit into the context."""
        if not texts:
            return []
        before = self.tokens(prompt)
        whole = [self.tokens(prompt + text) for text in texts]
        # The last token of a prompt may grow together with a text; and what follows a token is told at the token.
        starts = [beginning(before, one) for one in whole]
        if min(starts) < 1:
            return None
        trunk = before[: min(starts) - 1]
        chunks = [slice(first, first + ABREAST) for first in range(0, len(texts), ABREAST)]
        if any(self._exceeds(len(trunk), whole[chunk]) for chunk in chunks):
            return None
        totals: list[float] = []
        try:
            row = self._holding(trunk)
            for chunk in chunks:
                totals += self._texts(row, len(trunk), whole[chunk], starts[chunk])
        except Full:
            self._forget()
            return None
        return totals

    def write(self, prompt: str, stop: Sequence[str], most: int) -> Reply | None:
        """What the model goes on with, greedily, up to a text of `stop` or `most` tokens; None where it does not
        fit."""
        before = self.tokens(prompt)
        if not before or self._exceeds(0, [before]):
            return None
        written, text = b"", ""
        token, place = before[-1], len(before) - 1
        try:
            row = self._holding(before[:-1])
            self._copy(self.memory, row.row, CACHED, 0, place)
            for count in range(1, most + 1):
                self._read([BatchToken(token, place, CACHED, True)])
                token, place = int(self._logits_of(0).argmax()), place + 1
                if self._ends(self.vocabulary, token):
                    return Reply(written.decode("utf-8", "replace"), usage=Usage(len(before), count))
                written += self._piece(token)
                text = written.decode("utf-8", "ignore")
                if cut := [at for one in stop if (at := text.find(one)) >= 0]:
                    return Reply(text[: min(cut)], usage=Usage(len(before), count))
            return Reply(text, finish="length", usage=Usage(len(before), most))
        except Full:
            self._forget()
            return None
        finally:
            self._remove(self.memory, CACHED, -1, -1)

    def _exceeds(self, begun: int, whole: Sequence[list[int]]) -> bool:
        """Whether texts that share their first `begun` tokens do not fit into the context side by side."""
        return begun + sum(len(one) - 1 - begun for one in whole) > self.context

    def _piece(self, token: int) -> bytes:
        room = ctypes.create_string_buffer(256)
        count = self._spell(self.vocabulary, token, room, len(room), 0, False)
        return room.raw[: max(0, count)]

    def _holding(self, trunk: list[int]) -> CachedPrompt:
        """The row that holds these tokens now, and maybe others behind them."""
        best = max(self.prompt_cache, key=lambda one: beginning(one.tokens, trunk))
        shared = beginning(best.tokens, trunk)
        if self.states and len(trunk) - shared >= LEAST and (restored := self._restored(trunk, shared)):
            best, shared = restored, len(restored.tokens)
        elif self.states and LEAST <= shared < min(len(best.tokens), len(trunk)):
            self._store(best, shared - shared % PIECE)
        if shared < min(len(best.tokens), len(trunk)):  # it goes on otherwise: it stays as it is, beside the new one
            oldest = self.prompt_cache[0]
            self._cut(oldest, shared if oldest is best else 0)
            if oldest is not best:
                self._copy(self.memory, best.row, oldest.row, 0, shared)
                oldest.tokens = best.tokens[:shared]
            best = oldest
        self.prompt_cache.remove(best)
        self.prompt_cache.append(best)
        # In pieces that begin at the same places whatever was read before: a token that is read beside others comes out a
        # little otherwise, and what is restored must be what would have been read.
        while (place := len(best.tokens)) < len(trunk):
            piece = trunk[place : place - place % PIECE + PIECE]
            self._read([BatchToken(token, at, best.row) for at, token in enumerate(piece, place)])
            best.tokens += piece
        return best

    def _restored(self, trunk: list[int], shared: int) -> CachedPrompt | None:
        """A row that holds more than the first `shared` of these tokens, which another process has read; or None."""
        length = self.states.longest(trunk) if self.states else 0
        data = self.states.read(trunk[:length]) if self.states and length > shared else None
        if not self.states or not data:
            return None
        row = self.prompt_cache[0]
        self._cut(row, 0)
        took = self._set_state(self.state, data, len(data), row.row)
        if took != len(data) or self._last(self.memory, row.row) != length - 1:
            self._remove(self.memory, row.row, -1, -1)
            if not any(one.tokens for one in self.prompt_cache):  # it was not for want of room
                self.states.remove(trunk[:length])
            return None
        row.tokens = trunk[:length]
        return row

    def _store(self, row: CachedPrompt, shared: int) -> None:
        """Keeps what two prompts begin with, unless most of it is kept already."""
        tokens = row.tokens[:shared]
        if not self.states or shared - self.states.longest(tokens) < LEAST:
            return
        self._copy(self.memory, row.row, CACHED, 0, shared)
        try:
            room = ctypes.create_string_buffer(self._state_size(self.state, CACHED))
            if size := self._get_state(self.state, room, len(room), CACHED):
                self.states.write(tokens, room.raw[:size])
        finally:
            self._remove(self.memory, CACHED, -1, -1)

    def _texts(self, row: CachedPrompt, begun: int, whole: Sequence[list[int]], starts: Sequence[int]) -> list[float]:
        """The likelihoods of texts that go on from the first `begun` tokens of a row."""
        items: list[BatchToken] = []
        wanted: list[int] = []
        for i, (one, start) in enumerate(zip(whole, starts, strict=True)):
            self._copy(self.memory, row.row, CACHED + i, 0, begun)
            items += [
                BatchToken(one[place], place, CACHED + i, place >= start - 1) for place in range(begun, len(one) - 1)
            ]
            wanted += one[start:]
        logprobs = iter(self._read(items, wanted))
        for i in range(len(whole)):
            self._remove(self.memory, CACHED + i, -1, -1)
        return [math.fsum(islice(logprobs, len(one) - start)) for one, start in zip(whole, starts, strict=True)]

    def _read(self, items: Sequence[BatchToken], wanted: Sequence[int] = ()) -> list[float]:
        """Reads tokens into their rows; log P of each of the tokens `wanted`, each behind one that tells."""
        rows: list[float] = []
        for batch in _batches(items):
            self.evaluated += len(batch)
            self._fill(batch)
            while result := self._decode(self.state, self.batch):
                # There is no room: what was asked for longest ago gives way.
                old = next((one for one in self.prompt_cache[:-1] if one.tokens), None)
                if result != NO_ROOM or old is None:
                    raise Full
                self._cut(old, 0)
            for i, item in enumerate(batch):
                if item.scored and wanted:
                    rows.append(self._likelihood(i, wanted[len(rows)]))
        return rows

    def _fill(self, items: Sequence[BatchToken]) -> None:
        batch = self.batch
        batch.count = len(items)
        for i, item in enumerate(items):
            batch.tokens[i], batch.places[i], batch.told[i] = item.token, item.place, item.scored
            batch.lengths[i], batch.rows[i][0] = 1, item.row

    def _likelihood(self, i: int, token: int) -> float:
        """log P of a token behind the i-th of those that were read."""
        logits = self._logits_of(i)
        top = logits.max()
        return float(logits[token] - top - self.numpy.log(self.numpy.exp(logits - top).sum()))

    def _logits_of(self, i: int) -> Any:
        return self.numpy.ctypeslib.as_array(self._logits(self.state, i), (self.words,))

    def _cut(self, row: CachedPrompt, length: int) -> None:
        """Forgets what a row holds behind so many tokens."""
        if not self._remove(self.memory, row.row, length, -1):
            raise Full
        del row.tokens[length:]

    def _forget(self) -> None:
        for row in range(CACHED + ABREAST):
            self._remove(self.memory, row, -1, -1)
        for one in self.prompt_cache:
            one.tokens.clear()


class Full(Exception):
    """There is no room for what is to be read."""


def _batches(items: Sequence[BatchToken]) -> Iterator[list[BatchToken]]:
    """Items by as many as may be read at once."""
    batch: list[BatchToken] = []
    scored = 0
    for item in items:
        if len(batch) == BATCH or scored + item.scored > SCORED:
            yield batch
            batch, scored = [], 0
        batch.append(item)
        scored += item.scored
    if batch:
        yield batch


def load(
    library: Path,
    path: Path,
    context: int,
    threads: int,
    sure: Callable[[str, str], float],
    states: Callable[[], States] | None = None,
) -> Llama | None:
    """A Llama whose likelihoods are those that `sure` tells; None where there is none, and for a large file: that would
    be in memory twice."""
    if path.stat().st_size > LARGEST_FILE:
        return None
    try:
        llama = Llama(library, path, min(context, ROOM), threads)
        logprobs = llama.score(PROMPT, [LIKELY, ABSURD])
    except (OSError, AttributeError, ImportError, ValueError) as error:
        log.info("likelihoods are told one by one: %s", error)
        return None
    known = [sure(PROMPT, text) for text in (LIKELY, ABSURD)]
    if logprobs is None or any(abs(one - other) > NEAR for one, other in zip(logprobs, known, strict=True)):
        log.info("likelihoods are told one by one: at once they are %s, not %s", logprobs, known)
        return None
    if states:
        with contextlib.suppress(OSError):
            llama.states = states()
    return llama
