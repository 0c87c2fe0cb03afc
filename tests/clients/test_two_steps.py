"""Coding agents, frameworks and SDKs, each with a task of two steps by its own tools, in front of models of three dialects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from coding_agents import AGENTS, DIALECTS, Agent
from environments import Unavailable
from frameworks import FRAMEWORKS, Framework
from test_clients import HERE, started
from upstream import TOKEN

WHOLE = os.environ.get("CLIENTS") == "full"
FEW = [one for one in FRAMEWORKS if WHOLE or not one.slow]
MODEL = '[models.{0}]\nupstream = "http://127.0.0.1:{1}/v1#{0}"\nmode = "chat"\ndialect = "{0}"\n'
Came = dict[str, Any]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The configuration of a gateway in front of models of three dialects."""
    home = tmp_path_factory.mktemp("models")
    with started(home / "upstream.log", r"^(\d+)\n", str(HERE / "upstream.py")) as port:
        (home / "gateway.toml").write_text("".join(MODEL.format(one, port) for one in DIALECTS))
        yield home / "gateway.toml"
        assert "Traceback" not in (home / "upstream.log").read_text()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("client", "way"), [pytest.param(one, way, id=f"{one.name}-{way}") for one in AGENTS for way in one.ways]
)
def test_an_agent_as_it_is_launched(client: Agent, way: str, dialect: str, config: Path, tmp_path: Path) -> None:
    if "[edit]" in client.steps and dialect != DIALECTS[0]:
        pytest.skip("a text is the same in every dialect")
    try:
        done = client.play(tmp_path, config, dialect, way)
    except Unavailable as why:
        pytest.skip(f"{client.name}: {why}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "project" / "notes.txt").read_text().strip() == TOKEN, done.stdout + done.stderr
    assert TOKEN in done.stdout, done.stdout + done.stderr
    assert "failed:" not in done.stderr, done.stderr
    assert "repaired or noted:" not in done.stderr, done.stderr


@pytest.fixture(scope="module")
def played(config: Path) -> Iterator[Callable[[Framework], Came]]:
    """What came of each framework's task, played once."""
    seen: dict[str, Came] = {}
    command = ("-m", "toolspeak", "serve", "--config", str(config), "--port", "0")
    with started(config.with_name("gateway.log"), r"(http://127\.0\.0\.1:\d+)/v1", *command) as url:

        def play(client: Framework) -> Came:
            if client.name not in seen:
                try:
                    seen[client.name] = client.play(url, DIALECTS)
                except Unavailable as why:
                    pytest.skip(f"{client.name}: {why}")
            return seen[client.name]

        yield play
        assert "Traceback" not in config.with_name("gateway.log").read_text()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("client", "way"), [pytest.param(one, way, id=f"{one.name}-{way}") for one in FEW for way in one.ways]
)
def test_a_framework(client: Framework, way: str, dialect: str, played: Callable[[Framework], Came]) -> None:
    came = played(client)[f"{way}.{dialect}"]
    assert "failed" not in came, came["failed"]
    assert came["ran"] == ["weather Xiamen", "clock Xiamen"], came
    assert TOKEN in came["text"], came
