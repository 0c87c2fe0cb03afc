"""`toolspeak probe`, as people meet it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from world import Cli


@pytest.fixture
def url(serve: Callable[..., str]) -> str:
    return serve(models=("plain",), refusal="this model does not support tools \x1b[31m")


def test_a_table_and_what_it_means(cli: Cli, url: str, place: Path) -> None:
    done = cli("probe", url, TOOLSPEAK_CACHE=str(place / "cache"))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"{url}  plain"
    assert "✓ chat            said 'hello'" in lines
    assert any(line.startswith("✗ tools") and "does not support tools" in line for line in lines)
    assert lines[-1].startswith("asked: prompted in tool-json in messages: ")
    (kept,) = (place / "cache" / "probes").iterdir()
    assert lines[-2].startswith("saved: until ")
    assert lines[-2].endswith(f"delete {kept}")
    assert "\x1b" not in done.stdout
    assert len(list((place / "cache" / "probes").iterdir())) == 1

    told = json.loads(cli("probe", url, "--json", TOOLSPEAK_CACHE=str(place / "cache")).stdout)
    assert (told["way"], told["found"]["chat"]["answer"], told["model"]) == ("prompted", "yes", "plain")
    assert told["strategy"] == lines[-1].removeprefix("asked: ")


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("http://127.0.0.1:9/v1", 1, "http://127.0.0.1:9/v1: no answer from the server"),
        ("localhost:9", 1, "no answer from the server"),
        ("local", 2, "local runs in this process"),
        ("olama:m", 2, "did you mean ollama"),
        ("http://", 2, "expected an address"),
    ],
)
def test_a_wrong_address_is_one_line(cli: Cli, name: str, code: int, words: str) -> None:
    done = cli("probe", name)
    assert done.returncode == code
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not done.stdout
