"""What the embedded model has read is kept for other processes: counted in tokens that are evaluated, never in seconds."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolspeak.models.embedded import states, weights
from toolspeak.models.embedded.scoring import Llama
from toolspeak.models.embedded.states import LEAST, MOST, States

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
pytest.importorskip("numpy", reason="the extra `local` is not installed")
if not weights.present():
    pytest.skip("the embedded model was not fetched: make fetch", allow_module_level=True)

DECIDE = """
import json
import toolspeak as ts
from toolspeak.models.embedded.local import Local

def weather(city: str) -> str:
    "Get the current weather in a city."

def calculator(a: int, b: int) -> int:
    "Add two numbers."

llama = Local()._server().llama
loaded = llama.evaluated
seen = []
for question in ("What is the weather in Xiamen?", "How much is 383 plus 135721?"):
    before = llama.evaluated
    calls = ts.decide(question, tools=[weather, calculator], model="local").calls
    seen.append([llama.evaluated - before, [[call.name, call.arguments] for call in calls]])
print(json.dumps([loaded, *seen]))
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    (tmp_path / weights.SMOLLM2.file).symlink_to(weights.path_of())
    return tmp_path


def decide(cache: Path) -> list[Any]:
    """What a process of its own evaluates: on loading, for a first and for a second question, with the calls."""
    done = subprocess.run(
        [sys.executable, "-c", DECIDE],
        env={**os.environ, "TOOLSPEAK_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def files(cache: Path) -> list[Path]:
    return sorted((cache / "states").iterdir())


@pytest.mark.costly
def test_a_second_process_evaluates_none_of_the_examples(cache: Path) -> None:
    loaded, (first, calls), (warm, more) = decide(cache)
    (state,) = files(cache)
    examples = int(state.name.split("-")[1])
    assert LEAST <= examples < first
    assert calls == [["weather", {"city": "Xiamen"}]]
    again_loaded, (again, again_calls), (again_warm, again_more) = decide(cache)
    assert (again_loaded, again, again_warm) == (loaded, first - examples, warm)
    assert (again_calls, again_more) == (calls, more)
    assert files(cache) == [state]


@pytest.mark.costly
def test_likelihoods_are_the_same_with_and_without(cache: Path) -> None:
    xllamacpp = pytest.importorskip("xllamacpp")
    library, path = Path(xllamacpp.xllamacpp.__file__), weights.path_of()
    begin = "".join(f"{number}. Somebody asks for {number * 7} things.\n" for number in range(20))
    asked = [[" What is the weather in Lima?\n", " purple seven of\n"], [" Book a table\n"]]

    def scores(kept: States | None) -> tuple[list[float], int]:
        mind = Llama(library, path, 1024, 2, kept)
        found = [
            value
            for end, texts in zip(("One more:", "Then another:"), asked, strict=True)
            for value in mind.score(begin + end, texts) or ()
        ]
        return found, mind.evaluated

    kept = States(cache / "states", path, "1")
    plain, count = scores(None)
    assert scores(kept)[1] == count  # it is kept now
    again, fewer = scores(kept)
    (state,) = files(cache)
    assert count - fewer == int(state.name.split("-")[1])
    assert again == plain  # to the bit: what is not restored is read in the same pieces

    state.write_bytes(state.read_bytes()[:-1] + b"x")  # broken: ignored, and made anew
    assert scores(kept) == (plain, count)
    assert files(cache) == [state]
    assert scores(kept) == (plain, fewer)


# ------------------------------------------------------------------ the files


TOKENS = list(range(LEAST))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"weights")
    return path


def test_a_state_is_of_its_weights_its_library_and_its_tokens(tmp_path: Path, model: Path) -> None:
    home = tmp_path / "states"
    kept = States(home, model, "1.0")
    kept.write(TOKENS, b"state")
    assert (kept.longest([*TOKENS, 7]), kept.read(TOKENS)) == (LEAST, b"state")
    assert kept.longest(TOKENS[:-1]) == 0
    assert kept.longest([*TOKENS[:-1], 999, 7]) == 0
    assert States(home, model, "1.1").longest(TOKENS) == 0
    model.write_bytes(b"other weights")
    assert States(home, model, "1.0").longest(TOKENS) == 0


@pytest.mark.parametrize("content", [b"", b"x" * 10, b"x" * 1000])
def test_a_file_that_is_not_whole_is_removed(tmp_path: Path, model: Path, content: bytes) -> None:
    kept = States(tmp_path / "states", model, "1")
    kept.write(TOKENS, b"state")
    (path,) = files(tmp_path)
    path.write_bytes(content)
    assert kept.read(TOKENS) is None
    assert files(tmp_path) == []


def test_a_foreign_file_under_the_right_name_is_no_state(tmp_path: Path, model: Path) -> None:
    kept, other = (States(tmp_path / "states", model, library) for library in ("1", "2"))
    kept.write(TOKENS, b"one")
    (mine,) = files(tmp_path)
    other.write(TOKENS, b"two")
    (theirs,) = {*files(tmp_path)} - {mine}
    mine.write_bytes(theirs.read_bytes())
    assert kept.read(TOKENS) is None
    assert other.read(TOKENS) == b"two"


def test_their_number_is_bounded_and_what_is_used_stays(tmp_path: Path, model: Path) -> None:
    kept = States(tmp_path / "states", model, "1")
    kept.write(TOKENS, b"state")
    for i, path in enumerate(files(tmp_path)):
        os.utime(path, (i, i))
    for number in range(MOST + 2):
        assert kept.read(TOKENS) == b"state"
        kept.write([*TOKENS[1:], number], b"other")
        for i, path in enumerate(sorted(files(tmp_path), key=lambda one: one.stat().st_mtime_ns)):
            os.utime(path, (i, i))
    assert len(files(tmp_path)) == MOST


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path: Path, model: Path) -> None:
    (tmp_path / "states").write_text("a file")
    kept = States(tmp_path / "states", model, "1")
    kept.write(TOKENS, b"state")
    assert (kept.longest(TOKENS), kept.read(TOKENS)) == (0, None)


# ------------------------------------------------------------------ what a person sees


@pytest.mark.parametrize("logs", [False, True])
def test_a_person_is_shown_that_the_model_is_loaded(cache: Path, logs: bool) -> None:
    code = "import toolspeak as ts; ts.generate('local', 'Hi', max_tokens=1); ts.generate('local', 'Hi', max_tokens=1)"
    begin = "import logging; logging.basicConfig(filename='/dev/null'); " if logs else ""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", begin + code],
        env={**os.environ, "TOOLSPEAK_CACHE": str(cache)},
        stderr=theirs,
        stdout=subprocess.PIPE,
    ) as process:
        out, _ = process.communicate()
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        seen = os.read(ours, 10_000).decode()
    except OSError:  # nothing was written
        seen = ""
    os.close(ours)
    assert (process.returncode, out) == (0, b"")
    assert seen.count("Loading SmolLM2") == (0 if logs else 1)


def test_nothing_is_shown_where_nobody_looks(cache: Path) -> None:
    code = "import toolspeak as ts; ts.generate('local', 'Hi', max_tokens=1)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TOOLSPEAK_CACHE": str(cache)}, capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_where_states_are_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(cache))
    assert states.folder() == cache / "states"
