"""The identity of an MCP server in the lock file: the program that is run, independent of how its command is written.

Options before the program do not count, and neither do `env` and the version of an interpreter: dropping them only means
that definitions are compared that need not be. Links are followed only to recognize a server that is known under another
path (`resolved`). Its name keeps the path as written, because an update may point a link elsewhere, and must not make an
unknown server of a known one.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

_SOURCE = re.compile(r"mcp:(?!https?://)(.+?)(?: \(in (.*)\))?", re.DOTALL)
_INTERPRETER = re.compile(r"(python|pypy|node|ruby|perl|php|deno|bun)w?[\d.]*t?(?:\.exe)?", re.IGNORECASE)
_PATH = re.compile(r"\.{1,2}|.*[/\\].*", re.DOTALL)
_FLAGS = "-[bBdEhiIOPqRsSuvVx?]*"
_ANY = re.compile(r"-.*", re.DOTALL)
_NONE = re.compile(r"(?!)")
_OPTIONS = {
    "env": (re.compile(r"-.*|\w+=.*", re.DOTALL), re.compile(r"-u|-C|--unset|--chdir"), _NONE),
    "python": (_ANY, re.compile(rf"{_FLAGS}[WX]|--check-hash-based-pycs"), re.compile(rf"{_FLAGS}[mc](.*)", re.DOTALL)),
    "node": (_ANY, re.compile(r"-r|-C|--(?:require|import|loader|conditions|env-file|title)"), _NONE),
}
"""The options of a program before the program that it runs, those of them whose value is the next word, and the last one."""
_UNKNOWN = (re.compile(r"-[^=]*"), _NONE, _NONE)


def identity(
    command: Sequence[str], cwd: str | None, folder: Path, follow: Callable[[str], str] = os.path.normpath
) -> str:
    """Return the identity of a command; paths inside `folder` become relative.

    A program in a folder of programs is identified by its name. A file or folder is identified by its path, without one
    by the working folder.
    """
    here = follow(os.path.abspath(os.path.expanduser(cwd or ".")))
    base = os.path.join(follow(os.path.abspath(folder)), "")

    def label(word: str) -> str:
        place = _place(word, here, follow)
        return place.removeprefix(base) if place else word

    program, words = _unwrapped(command)
    if words and name(program) in ("python", "pypy"):
        words[0] = _module_path(words[0], here)
    among_programs = os.path.basename(os.path.dirname(program)).lower() in ("", "bin", "sbin", "scripts")
    known = shlex.join([name(program) if among_programs else label(program), *map(label, words)])
    has_place = any(_place(word, here, follow) for word in words)
    return known if cwd is None or has_place else f"{known} (in {here.removeprefix(base)})"


def resolved(source: str, folder: Path) -> str:
    """Return a source of the lock file in `folder` with all links followed, to compare it with another one."""
    if not (match := _SOURCE.fullmatch(source)):
        return source
    command, cwd = match.groups("")
    try:
        return identity(shlex.split(command), os.path.join(folder, cwd), folder, os.path.realpath)
    except ValueError:  # quotes that do not close
        return source


def name(program: str) -> str:
    """Return the name of a program, without its folder and an interpreter's version."""
    last = os.path.basename(program)
    interpreter = _INTERPRETER.fullmatch(last)
    return interpreter[1].lower() if interpreter else last


def _unwrapped(command: Sequence[str]) -> tuple[str, list[str]]:
    """Return the program that is started, without `env` before it, and the words from what it runs on."""
    program, *words = command
    runs = _without_options(name(program), words)
    if not runs:
        return program, words
    return _unwrapped(runs) if name(program) == "env" else (program, runs)


def _without_options(program: str, words: Sequence[str]) -> list[str]:
    """Return the words without the program's own options before them."""
    switch, valued, last = _OPTIONS.get(program, _UNKNOWN)
    rest = iter(words)
    for word in rest:
        if match := last.fullmatch(word):
            return [*filter(None, match.groups()), *rest]
        if not switch.fullmatch(word):
            return [word, *rest]
        if valued.fullmatch(word):
            next(rest, None)
    return []


def _module_path(word: str, here: str) -> str:
    """Return the path of a Python module in the working folder (`-m a.server`); what is none stays as it is."""
    path = os.path.join(*word.split("."))
    paths = (f"{path}.py", os.path.join(path, "__main__.py")) if re.fullmatch(r"\w+(\.\w+)*", word) else ()
    return next((one for one in paths if os.path.isfile(os.path.join(here, one))), word)


def _place(word: str, here: str, follow: Callable[[str], str]) -> str:
    """Return the path of the file, or of the folder, that a word names; "" if it names none."""
    place = follow(os.path.join(here, os.path.expanduser(word)))
    is_there = os.path.exists if _PATH.fullmatch(word) else os.path.isfile
    return place if is_there(place) else ""


def plain_url(url: str) -> str:
    """Return an address in its normal form: scheme, host, port and path."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else str(parts.hostname)
    usual = parts.port in (None, {"http": 80, "https": 443}.get(parts.scheme.lower()))
    port = "" if usual else f":{parts.port}"
    return urlunsplit((parts.scheme.lower(), host.rstrip(".") + port, parts.path.rstrip("/"), "", ""))
