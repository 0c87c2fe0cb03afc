"""Tuning keeps things: here in folders of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from one_dialect import OneDialect
from tuned_tools import TOOLS

from toolspeak import tuning


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of profiles."""
    monkeypatch.setenv("TOOLSPEAK_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.delenv("TOOLSPEAK_MODEL", raising=False)
    return tmp_path / "profiles"


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What servers can do is remembered elsewhere."""
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def speaks(own_cache: None) -> Iterator[Callable[[str], OneDialect]]:
    """`speaks("hermes")`: a server whose model is good in that dialect."""
    made: list[OneDialect] = []

    def start(dialect: str) -> OneDialect:
        made.append(OneDialect(dialect, [*tuning.questions(TOOLS)[0], *tuning.questions(TOOLS, 24)[0]]))
        return made[-1]

    yield start
    for one in made:
        one.shutdown()
        one.server_close()
