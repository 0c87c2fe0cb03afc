"""The pytest plugin of toolspeak: the fixture `toolspeak_replay`, a model that answers from a recording next to the
test.

    def test_it_looks_at_the_weather(toolspeak_replay):
        model = toolspeak_replay("ollama:NAME")
        assert packing_advice("Xiamen", model) == "Pack light clothes."

It is a separate package because pytest imports it in every run where toolspeak is installed. toolspeak itself is
imported only when the fixture is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from toolspeak import Model
    from toolspeak.models.recording import Mode

MODES = ("none", "once", "new", "all")
OPTION = "--toolspeak-record"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting for the record mode."""
    text = (
        "What toolspeak_replay asks a model: none: nothing, only recordings answer. once: what a test without a recording "
        "asks. new: what is not recorded yet. all: everything, recorded anew."
    )
    parser.getgroup("toolspeak").addoption(OPTION, choices=MODES, help=f"{text}  [default: none]")
    parser.addini("toolspeak_record", f"{text} The option {OPTION} counts before it.", default="none")


def _mode(config: pytest.Config) -> Mode:
    mode: Any = config.getoption(OPTION) or config.getini("toolspeak_record")
    if mode not in MODES:
        raise pytest.UsageError(f"toolspeak_record: expected {', '.join(MODES)}, received {mode!r:.40}")
    return mode


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """For a request that is not recorded, show the test's own lines, then the diff and how to record it again."""
    toolspeak = sys.modules.get("toolspeak")
    if call.excinfo and toolspeak and isinstance(call.excinfo.value, toolspeak.NotRecorded):
        if "toolspeak_replay" in getattr(item, "fixturenames", ()):
            call.excinfo.value.add_note(f"pytest '{item.nodeid}' {OPTION}=all")
        if not item.config.getoption("fulltrace"):
            own = _outside(call.excinfo.tb, Path(str(toolspeak.__file__)).parent)
            call.excinfo.traceback = type(call.excinfo.traceback)(own)
    return (yield)


def _outside(whole: TracebackType, folder: Path) -> TracebackType:
    """Return a traceback up to the first frame of a file in a folder."""
    frames: list[TracebackType] = []
    rest: TracebackType | None = whole
    while rest and folder not in Path(rest.tb_frame.f_code.co_filename).parents:
        frames.append(rest)
        rest = rest.tb_next
    chain: TracebackType | None = None
    for one in reversed(frames):
        chain = TracebackType(chain, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return chain or whole


@pytest.fixture
def toolspeak_replay(request: pytest.FixtureRequest) -> Callable[..., Model]:
    """`toolspeak_replay(model=None)`: the model (or the one of that name), answering from this test's recording.

    The recording is `recordings/FILE/TEST.jsonl` next to the test's file; for a second model in the same test,
    `TEST-2.jsonl`. `--toolspeak-record` says when the model itself is asked.
    """
    mode = _mode(request.config)
    numbers = count(1)

    def replaying(model: str | Model | None = None) -> Model:
        from toolspeak import record
        from toolspeak.models.recording import path_of_test

        path = path_of_test(request.path, request.node.nodeid.partition("::")[2], next(numbers))
        if mode == "none" and not path.exists():
            hint = f"record it with a model: pytest '{request.node.nodeid}' {OPTION}=once (=all where the server fails: once does not record that)"
            pytest.fail(f"there is no recording {path}; {hint}", pytrace=False)
        return record(model, path, mode=mode)

    return replaying
