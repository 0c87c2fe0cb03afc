"""Programs that people use, each by its own means, against a gateway in front of a model that knows nothing of tools."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from asking import KEY
from environments import Unavailable
from roster import CLIENTS, Client
from upstream import SECRET

XIAMEN = ["weather", {"city": "Xiamen"}]
PARIS = ["weather", {"city": "Paris"}]
NOON = ["clock", {"city": "Xiamen"}]
HELLO = "Hello from a model."
TOLD = "The tools say: sunny in Xiamen"
Came = dict[str, Any]


# ------------------------------------------------------------------ what every client must be told

CALLS: dict[str, list[Any]] = {
    "plain": [],
    "stream": [],
    "call": [XIAMEN],
    "stream_call": [XIAMEN],
    "parallel": [XIAMEN, PARIS],
    "text_call": [XIAMEN],
    "required": [XIAMEN],
    "named": [NOON],
    "schema": [["Person", {"name": "Alice", "age": 31}]],
}
FINISHES = {"tool_calls", "tool-calls", "tool_use"}
ENDS = {"stop", "end_turn"}


def judge(name: str, came: Came) -> None:
    """Asserts that a scenario went as it should, as far as the client tells."""
    scenario = name.partition(".")[2]
    if scenario == "error":
        judge_error(came)
        return
    assert "failed" not in came, came["failed"]
    assert "error" not in came, came
    ran = "output" in came  # it runs the tools itself and asks again
    if scenario == "loop":
        assert TOLD in (came["output"] if ran else came["text"]), came
    else:
        assert came["calls"] == CALLS[scenario], came
    if scenario in ("plain", "stream"):
        assert came["text"] == HELLO, came
    if scenario == "text_call":
        assert came["text"].startswith("Let me look.") or came["text"] == "", came
        assert "<tool_call>" not in came["text"]
    if ran and scenario in ("call", "parallel", "text_call"):
        assert TOLD in came["output"], came
    judge_end(scenario, came)


def judge_end(scenario: str, came: Came) -> None:
    """What a client tells beside the answer: pieces, the word for the end, tokens spent."""
    if scenario == "stream":
        assert came["pieces"] > 1, came
    if "finish" in came:
        assert came["finish"] in (ENDS if scenario in ("plain", "stream", "loop") else FINISHES), came
    assert came.get("status") in (None, "completed"), came
    for told in ("usage", "ids", "counted"):
        assert came.get(told, True), came
    if "last" in came:
        assert came["last"] in ("response.completed", "message_stop"), came


def judge_error(came: Came) -> None:
    """A broken upstream is told as an error of the client's own, and nothing of the upstream is told."""
    assert "error" in came, came
    assert came["status"] in (None, 502, 503), came
    assert SECRET not in str(came), came
    assert "10.1.2.3" not in str(came), came


# ------------------------------------------------------------------ what is started


@contextlib.contextmanager
def started(log: Path, wanted: str, *command: str) -> Iterator[str]:
    """A process that writes into `log`; what the group of `wanted` finds there once it is."""
    with log.open("wb") as out:  # not a pipe, which would have to be emptied
        process = subprocess.Popen([sys.executable, *command], stdout=out, stderr=out)
    try:
        due = time.monotonic() + 60
        while not (found := re.search(wanted, said := log.read_text(errors="replace"), re.MULTILINE)):
            assert process.poll() is None, f"it ended: {said}"
            assert time.monotonic() < due, f"it does not start: {said}"
            time.sleep(0.02)
        yield found[1]
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


CONFIG = """
[models.scripted]
upstream = "http://127.0.0.1:{port}/v1#raw"
mode = "chat"
dialect = "hermes"

[models.local]
upstream = "local"
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a gateway, a process like any user's."""
    home = tmp_path_factory.mktemp("gateway")
    with started(home / "upstream.log", r"^(\d+)\n", str(HERE / "upstream.py")) as port:
        file = home / "gateway.toml"
        file.write_text(CONFIG.format(port=port), encoding="utf-8")
        command = ("-m", "toolspeak", "serve", "--config", str(file), "--port", "0")
        with started(home / "gateway.log", r"(http://127\.0\.0\.1:\d+)/v1", *command) as url:
            yield url
            told = (home / "gateway.log").read_text()
            assert KEY not in told
            assert "Traceback" not in told, told


Results = Callable[[Client], Came]


@pytest.fixture(scope="module")
def scripted(gateway: str) -> Results:
    """What came of each client's scenarios, played once."""
    seen: dict[str, Came] = {}

    def play(client: Client) -> Came:
        if client.name not in seen:
            try:
                seen[client.name] = client.play(gateway, "scripted")
            except Unavailable as why:
                pytest.skip(f"{client.name}: {why}")
        return seen[client.name]

    return play


@pytest.mark.parametrize(
    ("client", "name"), [pytest.param(one, name, id=f"{one.name}-{name}") for one in CLIENTS for name in one.scenarios]
)
def test_in_front_of_a_scripted_model(client: Client, name: str, scripted: Results) -> None:
    judge(name, scripted(client)[name])


@pytest.mark.parametrize("client", [pytest.param(one, id=one.name) for one in CLIENTS])
def test_every_scenario_is_judged(client: Client, scripted: Results) -> None:
    assert sorted(scripted(client)) == sorted(client.scenarios)


LOCAL = {"plain", "call", "named", "stream"}
"""What the embedded model is asked too. It is small and slow: what it says is not judged, that it is told well is."""


@pytest.mark.parametrize("client", [pytest.param(one, id=one.name) for one in CLIENTS])
def test_in_front_of_the_embedded_model(client: Client, gateway: str) -> None:
    try:
        came = client.play(gateway, "local", ",".join(sorted(LOCAL)))
    except Unavailable as why:
        pytest.skip(f"{client.name}: {why}")
    for name, one in came.items():
        assert "failed" not in one, (name, one["failed"])
        assert "error" not in one, (name, one)
        scenario = name.partition(".")[2]
        if scenario in ("plain", "stream"):
            assert one["text"].strip(), (name, one)
        if scenario == "call":
            assert one["calls"][:1] == [XIAMEN], (name, one)
        if scenario == "named":
            assert [call[0] for call in one["calls"][:1]] == ["clock"], (name, one)
