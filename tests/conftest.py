"""What holds for every test: no network but loopback, no settings of whoever runs them, and nothing left to chance."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from properties import SEED, is_fast, register_profiles
from toolspeak.models.embedded.package_download import cache_dir

GUARD = Path(__file__).parent / "loopback_only"


def _keep_to_loopback() -> None:
    # By path: some systems have a sitecustomize of their own, which would be found in our place.
    spec = importlib.util.spec_from_file_location("loopback_only", GUARD / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(GUARD), os.environ.get("PYTHONPATH")]))


def _forget_settings() -> None:
    proxies = ("http_proxy", "https_proxy", "all_proxy")
    for name in list(os.environ):
        if name == "TOOLSPEAK_MODEL" or name.endswith("_API_KEY") or name.lower() in proxies:
            del os.environ[name]


def _follow_no_profiles() -> None:
    """Whoever runs this may have tuned a model: here each is asked as it is; nor does it matter which tools they accepted."""
    os.environ["TOOLSPEAK_PROFILES"] = "off"
    os.environ["TOOLSPEAK_PINS"] = "off"
    os.environ["TOOLSPEAK_LOGINS"] = "off"
    os.environ["TOOLSPEAK_APPROVALS"] = str(Path(tempfile.gettempdir()) / f"toolspeak-tests-{os.getpid()}.sqlite")


def _own_cache() -> Path:
    """A cache folder for this process. Ports come again within a day, and a test would believe what another run, or another
    test, found out about a server there. What was fetched is shared: it is not fetched again."""
    shared = cache_dir()
    folder = Path(tempfile.mkdtemp(prefix="toolspeak-tests-cache-"))
    for one in shared.iterdir() if shared.is_dir() else ():
        if one.name != "probes":
            (folder / one.name).symlink_to(one.resolve())
    os.environ["TOOLSPEAK_CACHE"] = str(folder)
    return folder


def _one_thread_for_a_product() -> None:
    """Tests run in more processes than there are cores: threads of numpy and llama.cpp would wait for each other, spinning."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_THREAD_LIMIT", "1")


def _hear_ctrl_c() -> None:
    """A shell without job control has what it starts in the background ignore Ctrl-C, and so would the programs here."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _our_loggers() -> dict[logging.Logger, tuple[int, list[logging.Handler], bool]]:
    """Our loggers, with what is set of them."""
    loggers = [
        one
        for name, one in list(logging.root.manager.loggerDict.items())
        if name.startswith("toolspeak") and isinstance(one, logging.Logger)
    ]
    return {log: (log.level, log.handlers[:], log.propagate) for log in loggers}


@pytest.fixture(autouse=True)
def _nothing_probed() -> None:  # pyright: ignore[reportUnusedFunction]
    """No test knows what another one found out about a server."""
    shutil.rmtree(CACHE / "probes", ignore_errors=True)


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """What a test sets of our loggers, as `--verbose` does, the next one does not find."""
    before = _our_loggers()
    yield
    for log, after in _our_loggers().items():
        if after != (
            was := before.get(log, (logging.NOTSET, [], True))
        ):  # setting a level empties every logger's cache
            log.setLevel(was[0])
            log.handlers[:] = was[1]
            log.propagate = was[2]


BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, help="skip what has not begun after so many minutes")


def pytest_unconfigure() -> None:
    shutil.rmtree(CACHE, ignore_errors=True)
    approvals = Path(os.environ["TOOLSPEAK_APPROVALS"])
    for file in approvals.parent.glob(f"{approvals.name}*"):  # with what SQLite keeps beside it
        file.unlink(missing_ok=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("minutes")
    if minutes is not None and time.monotonic() - BEGAN > 60 * minutes:
        pytest.skip(f"the {minutes:g} minutes of --minutes are over")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Costly tests are left to the full profile, and begin first there, for `--minutes` ends it."""
    if is_fast():
        for item in items:
            if item.get_closest_marker("costly"):
                item.add_marker(pytest.mark.skip(reason="costly: .ci/run, or --hypothesis-profile=full"))
    else:
        items.sort(key=lambda item: item.get_closest_marker("costly") is None)


def pytest_collection() -> None:
    gc.disable()  # what is loaded and made for the list of tests stays: there is no garbage to find


def pytest_collection_finish() -> None:
    """Looking for garbage was a tenth of the processor time. What was loaded stays, so it is not looked through again."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def pytest_report_header() -> str:
    return f"properties: new inputs of seed {SEED}"


# Now rather than in a fixture: a test module that asks the network while it is loaded is caught too.
_keep_to_loopback()
_forget_settings()
_follow_no_profiles()
CACHE = _own_cache()
_one_thread_for_a_product()
_hear_ctrl_c()
register_profiles()
