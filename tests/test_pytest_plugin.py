"""The pytest plugin: a test that was recorded with a model passes without it, and costs nothing who does not use it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import preloaded

SRC = Path(__file__).resolve().parents[1] / "src"
TESTS = '''
import pytest
import toolspeak as ts


def weather(city: str) -> str:
    """Get the current weather in a city."""
    return f"Sunny in {city}"


@pytest.mark.parametrize("city", ["Xiamen"])
def test_a_run(toolspeak_replay, city):
    model = toolspeak_replay("scripted:script.jsonl")
    assert ts.run(f"Weather in {city}?", tools=[weather], model=model).text == "It is sunny."


def test_two_models(toolspeak_replay):
    models = [toolspeak_replay(f"scripted:I am {n}.") for n in (1, 2)]
    assert [ts.generate(model, "Who are you?") for model in models] == ["I am 1.", "I am 2."]
'''
SCRIPT = ['{"tool": "weather", "tool_input": {"city": "Xiamen"}}', "It is sunny."]

WITH_PLUGIN = ["-p", "pytest_toolspeak", "-p", "no:cacheprovider", "-W", "error"]
ENV = {
    **os.environ,
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # loading other plugins takes longer than the tests
    "PYTHONPATH": os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")]),
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def pytest_in(tmp_path: Path) -> Run:
    """Runs pytest with the plugin, warnings being errors, in a folder with a file of tests."""
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        done = preloaded.run([*WITH_PLUGIN, *args], b"", ENV, 300, main="pytest:console_main", cwd=tmp_path)
        out, err = done.stdout.decode(), done.stderr.decode()
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


NAMESAKES = """
import pytest
import toolspeak as ts


def ask(model, question):
    assert ts.decide(question, model=model("scripted:Hello.")).text == "Hello."


class TestOne:
    def test_same(self, toolspeak_replay):
        ask(toolspeak_replay, "one?")


class TestOther:
    def test_same(self, toolspeak_replay):
        ask(toolspeak_replay, "other?")


@pytest.mark.parametrize("word", ["a b", "a/b"])
def test_words(toolspeak_replay, word):
    ask(toolspeak_replay, word)
"""


def counts(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    last = done.stdout.strip().splitlines()[-1]
    return {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", last)}


def test_recorded_once_and_replayed_without_the_model(tmp_path: Path, pytest_in: Run) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(reply) + "\n" for reply in SCRIPT))
    missing = pytest_in()
    assert counts(missing) == {"failed": 2}
    assert "pytest 'test_it.py::test_a_run[Xiamen]' --toolspeak-record=once" in missing.stdout
    assert counts(pytest_in("--toolspeak-record=once")) == {"passed": 2}
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("recordings/**/*.jsonl"))
    assert files == [
        f"recordings/test_it/{name}.jsonl"
        for name in ("test_a_run-Xiamen-74d94ec3", "test_two_models-2", "test_two_models")
    ]
    script.unlink()
    assert counts(pytest_in()) == {"passed": 2}


def test_no_two_tests_share_a_recording(tmp_path: Path, pytest_in: Run) -> None:
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in SCRIPT))
    (tmp_path / "test_it.py").write_text(NAMESAKES, "utf-8")
    assert counts(pytest_in("--toolspeak-record=all")) == {"passed": 4}
    assert len(list(tmp_path.glob("recordings/**/*.jsonl"))) == 4
    assert counts(pytest_in()) == {"passed": 4}


def test_a_changed_prompt_fails_with_a_diff(tmp_path: Path, pytest_in: Run) -> None:
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in SCRIPT))
    pytest_in("-k", "a_run", "--toolspeak-record=all")
    file = tmp_path / "test_it.py"
    file.write_text(TESTS.replace("Weather in", "How is the weather in"), "utf-8")
    changed = pytest_in("-k", "a_run")
    assert counts(changed) == {"failed": 1}
    for line in ("-user: Weather in Xiamen?", "+user: How is the weather in Xiamen?"):
        assert line in changed.stdout
    assert "pytest 'test_it.py::test_a_run[Xiamen]' --toolspeak-record=all" in changed.stdout
    assert "tools=[weather], model=model" in changed.stdout  # the test's own line
    assert "replay.py" not in changed.stdout
    assert "replay.py" in pytest_in("-k", "a_run", "--full-trace").stdout
    assert counts(pytest_in("-k", "a_run", "--toolspeak-record=new")) == {"passed": 1}
    assert len((tmp_path / "recordings/test_it/test_a_run-Xiamen-74d94ec3.jsonl").read_text().splitlines()) == 4
    pytest_in("-k", "a_run", "--toolspeak-record=all")
    assert len((tmp_path / "recordings/test_it/test_a_run-Xiamen-74d94ec3.jsonl").read_text().splitlines()) == 2


def test_a_setting_says_the_mode(tmp_path: Path, pytest_in: Run) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntoolspeak_record = once\n")
    assert counts(pytest_in("-k", "two_models")) == {"passed": 1}
    (tmp_path / "pytest.ini").write_text("[pytest]\ntoolspeak_record = sometimes\n")
    wrong = pytest_in("-k", "two_models")
    assert "expected none, once, new, all, received 'sometimes'" in wrong.stdout


def test_it_loads_nothing_of_toolspeak(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n    assert 'pytest_toolspeak' in sys.modules\n"
        "    assert not [name for name in sys.modules if name.partition('.')[0] in ('toolspeak', 'pydantic', 'aiohttp')]\n"
    )
    command = [sys.executable, "-m", "pytest", *WITH_PLUGIN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=ENV)
    assert counts(done) == {"passed": 1}
