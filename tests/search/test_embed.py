"""Embedders by name, and endpoints for embeddings: a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the extra dense is not installed")

import toolspeak as ts  # noqa: E402
from toolspeak.search.embedders import LENGTHS, TEXTS, Embedder, RemoteEmbedder, embedder  # noqa: E402

Answer = Callable[[dict[str, Any]], tuple[int, Any]]


class Endpoint:
    """A server in a thread: answers each request with `answer(body)`, a status and what becomes JSON."""

    def __init__(self, answer: Answer) -> None:
        self.seen: list[tuple[str, dict[str, Any], str | None]] = []
        told = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(200, {"data": [{"id": "the-only-one"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.seen.append((self.path, body, self.headers.get("Authorization")))
                self.reply(*answer(body))

            def reply(self, status: int, said: Any) -> None:
                raw = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def texts(self) -> list[list[str]]:
        return [body["input"] for _, body, _ in self.seen]

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], Endpoint]]:
    made: list[Endpoint] = []

    def start(answer: Answer) -> Endpoint:
        made.append(Endpoint(answer))
        return made[-1]

    yield start
    for endpoint in made:
        endpoint.close()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL")) or name == "OLLAMA_HOST":
            monkeypatch.delenv(name)


def vectors(body: dict[str, Any]) -> tuple[int, Any]:
    """(length, 1, 2) of each text, told out of order as a server may."""
    rows = [{"index": at, "embedding": [float(len(text)), 1.0, 2.0]} for at, text in enumerate(body["input"])]
    return 200, {"data": rows[::-1], "usage": {"prompt_tokens": 1}}


def refusal(message: str, status: int = 400) -> tuple[int, Any]:
    return status, {"error": {"message": message}}


# ------------------------------------------------------------------ what a name means


def test_an_embedder_is_itself() -> None:
    class Mine:
        name = "mine"

        def embed(self, texts: Any) -> Any:
            return np.ones((len(texts), 1), np.float32)

    mine = Mine()
    assert isinstance(mine, Embedder)
    assert embedder(mine) is mine


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        ("minilmm", ts.UnknownModel, "known are minilm, http://host/v1#MODEL"),
        ("local", ts.UnknownModel, "known are minilm"),
        ("anthropic:claude", ts.UsageError, "anthropic:claude has no embeddings: name minilm"),
        ("http://", ts.UsageError, "expected"),
        (7, ts.UsageError, "or an object with name and embed"),
    ],
)
def test_a_name_that_means_none(spec: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        embedder(spec)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    with pytest.raises(ts.MissingExtra, match=r"pip install 'toolspeak\[dense\]'"):
        embedder("minilm")


def test_providers_that_ts_model_knows(serve: Callable[[Answer], Endpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(vectors)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    one = embedder("openai:text-embedding-3-small")
    assert one.name == "openai:text-embedding-3-small"
    one.embed(["text"])
    path, body, key = server.seen[0]
    assert (path, body["model"], key) == ("/v1/embeddings", "text-embedding-3-small", "Bearer sk-of-the-environment")


def test_ollama_is_asked_in_its_own_way(serve: Callable[[Answer], Endpoint], monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(lambda body: (200, {"embeddings": [[0.0, 5.0]] * len(body["input"])}))
    monkeypatch.setenv("OLLAMA_HOST", server.url.removesuffix("/v1"))
    assert embedder("ollama:nomic-embed-text").embed(["a", "b"]).tolist() == [[0, 1], [0, 1]]
    assert server.seen[0][0] == "/api/embed"


# ------------------------------------------------------------------ asking


def test_rows_come_in_the_order_of_the_texts_and_have_length_one(serve: Callable[[Answer], Endpoint]) -> None:
    server = serve(vectors)
    texts = ["x" * (n % 50) for n in range(3 * TEXTS + 7)]
    rows = embedder(server.url + "#m").embed(texts)
    assert rows.dtype == np.float32
    assert np.abs(np.linalg.norm(rows, axis=1) - 1).max() < 1e-6
    expected = [max(1, len(text)) for text in texts]  # an empty text is sent as a blank
    assert np.rint(rows[:, 0] / rows[:, 1]).tolist() == expected
    assert sorted(map(len, server.texts())) == [7, TEXTS, TEXTS, TEXTS]
    assert embedder(server.url + "#m").embed([]).shape[0] == 0


def test_a_server_without_a_model_named_is_asked_for_the_one_it_has(serve: Callable[[Answer], Endpoint]) -> None:
    server = serve(vectors)
    one = embedder(server.url)
    assert one.name == f"{server.url}#the-only-one"
    one.embed(["text"])
    assert server.seen[0][1]["model"] == "the-only-one"


def test_in_a_running_loop_and_from_threads(serve: Callable[[Answer], Endpoint]) -> None:
    one = embedder(serve(vectors).url + "#m")

    async def inside() -> Any:
        return one.embed(["text"])

    expected = one.embed(["text"])
    assert np.array_equal(asyncio.run(inside()), expected)
    with ThreadPoolExecutor(8) as pool:
        assert all(np.array_equal(row, expected) for row in pool.map(one.embed, [["text"]] * 32))


@pytest.mark.parametrize(
    "refused",
    [
        refusal("too long"),
        refusal("input (992 tokens) is too large to process. increase the physical batch size", 500),
    ],
)
def test_a_text_that_is_too_long_for_the_model_is_cut(
    serve: Callable[[Answer], Endpoint], refused: tuple[int, Any]
) -> None:
    def strict(body: dict[str, Any]) -> tuple[int, Any]:
        return refused if max(map(len, body["input"])) > 2000 else vectors(body)

    server = serve(strict)
    one = embedder(server.url + "#m")
    rows = one.embed(["x" * 100_000, "short"])
    assert [max(map(len, texts)) for texts in server.texts()] == [LENGTHS[0], LENGTHS[1]]
    assert np.rint(rows[:, 0] / rows[:, 1]).tolist() == [LENGTHS[1], 5]
    one.embed(["x" * 100_000])  # what it takes is known now
    assert len(server.seen) == 3


def test_a_surrogate_does_not_reach_the_server(serve: Callable[[Answer], Endpoint]) -> None:
    server = serve(vectors)
    embedder(server.url + "#m").embed(["half \ud800"])
    assert server.texts() == [["half ?"]]


def test_a_row_of_zeros_stays_one(serve: Callable[[Answer], Endpoint]) -> None:
    server = serve(lambda _: (200, {"data": [{"index": 0, "embedding": [0.0, 0.0]}]}))
    assert embedder(server.url + "#m").embed(["text"]).tolist() == [[0, 0]]


def test_a_server_that_fails_once_is_asked_again(serve: Callable[[Answer], Endpoint]) -> None:
    failed: list[int] = []

    def once(body: dict[str, Any]) -> tuple[int, Any]:
        failed.append(1)
        return refusal("busy", 503) if len(failed) == 1 else vectors(body)

    server = serve(once)
    assert embedder(server.url + "#m").embed(["text"]).shape == (1, 3)
    assert len(server.seen) == 2


# ------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (lambda _: refusal("no such path", 404), ts.ModelError, "no such path"),
        (lambda _: refusal("wrong key", 401), ts.KeyRefused, "TOOLSPEAK_API_KEY"),
        (lambda _: refusal("this model has no embeddings"), ts.BadRequest, "this model has no embeddings"),
        (lambda _: (200, {"data": []}), ts.ServerFailed, "expected 2 vectors from the server, got 0"),
        (lambda _: (200, ["?"]), ts.ServerFailed, "expected 2 vectors"),
        (
            lambda body: (200, {"data": [{"index": at, "embedding": [1.0] * (at + 3)} for at in range(2)]}),
            ts.ServerFailed,
            "expected vectors of one width, got 3 and 4 numbers",
        ),
        (
            lambda _: (200, {"data": [{"index": at, "embedding": "no numbers"} for at in range(2)]}),
            ts.ServerFailed,
            "expected a vector of numbers",
        ),
    ],
)
def test_errors_say_what_came(
    serve: Callable[[Answer], Endpoint], answer: Answer, error: type[Exception], said: str
) -> None:
    server = serve(answer)
    with pytest.raises(error, match=said) as caught:
        embedder(server.url + "#m").embed(["one", "two"])
    assert server.url in str(caught.value)


def test_a_width_that_changes_is_an_error(serve: Callable[[Answer], Endpoint]) -> None:
    widths = iter([3, 4])
    server = serve(lambda _: (200, {"data": [{"index": 0, "embedding": [1.0] * next(widths)}]}))
    one = embedder(server.url + "#m")
    one.embed(["text"])
    with pytest.raises(ts.ServerFailed, match="got 3 and 4 numbers"):
        one.embed(["text"])


def test_nobody_there() -> None:
    with pytest.raises(ts.ModelUnreachable, match="check that it runs"):
        RemoteEmbedder(ts.model("http://127.0.0.1:9/v1#m", native=False, dialect=None, retries=0)).embed(["text"])  # type: ignore[arg-type]
