"""A lock file with the tool definitions that were accepted from each source, so that none changes unnoticed.

A model acts on definitions that others write and may change at any time. So each definition is pinned when it is first
seen, with its digest and its text, in a JSON file that people can read and put under version control. A definition that
has changed is refused, with the difference, until it is accepted.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..files import replacing, settings_folder, take_lock, user_path
from ..schema.suggestions import listed

log = logging.getLogger(__name__)

FORM = 1
"""The version of the file's format."""
VARIABLE = "TOOLSPEAK_PINS"
ABOUT = "Definitions of tools as they were accepted; a changed one is refused. `toolspeak mcp accept` renews them."

MOST, LARGEST = 20_000, 20_000_000
"""The most definitions of a source, and the most characters of them. A server may rename its tools at any time."""

Definition = Mapping[str, Any]
"""A definition from its source, JSON data with a `name`: everything that a model may read of it."""


def default_path() -> Path | None:
    """Return the user's lock file: $TOOLSPEAK_PINS, else in the configuration folder; None if it is `off`."""
    return user_path(VARIABLE, settings_folder, "pins.json")


def digest(definition: Definition) -> str:
    """Return the SHA-256 of a definition's JSON with sorted keys."""
    text = json.dumps(definition, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def difference(old: Definition, new: Definition, lines: int = 40) -> str:
    """Return the difference between two definitions as a unified diff of at most `lines` lines, with nothing invisible."""
    before, after = (json.dumps(one, indent=1, sort_keys=True, ensure_ascii=True).splitlines() for one in (old, new))
    rows = [line[:400] for line in difflib.unified_diff(before, after, "accepted", "offered", lineterm="", n=1)]
    more = [f"… {len(rows) - lines} more lines"] if len(rows) > lines else []
    return "\n".join([*rows[:lines], *more])


def _is_pins(value: Any) -> bool:
    """Whether a file's content has the structure of pins: by source and name."""
    sources: Any = value.get("sources")
    return isinstance(sources, dict) and all(
        isinstance(tools, dict) and all(isinstance(one, dict) for one in cast("dict[str, Any]", tools).values())
        for tools in cast("dict[str, Any]", sources).values()
    )


class Pins:
    """The accepted definitions, by source and name, in the file `path`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser()

    def changed(self, source: str, offered: Sequence[Definition]) -> dict[str, str]:
        """Return the differences of changed definitions, by name. New definitions are pinned."""
        differences = self.differences(source, offered)
        if new := [one for one in offered if differences.get(one["name"]) == ""]:
            if source in self._read():
                log.warning("%s offers new tools, which were pinned: %s", source, listed([one["name"] for one in new]))
            self.accept(source, new)
        return {name: change for name, change in differences.items() if change}

    def differences(self, source: str, offered: Sequence[Definition]) -> dict[str, str]:
        """Return the differences of definitions that are not as accepted, by name; "" for a new one."""
        known = self._read().get(source, {})
        changes: dict[str, str] = {}
        for one in offered:
            pinned = known.get(one["name"])
            if pinned is None:
                changes[one["name"]] = ""
            elif pinned.get("digest") != digest(one):
                changes[one["name"]] = difference(pinned.get("definition", {}), one) or "(its digest alone)"
        return changes

    def accept(self, source: str, definitions: Sequence[Definition]) -> None:
        """Pin these definitions as they are now."""
        with self._writing():
            pins = self._read()
            pinned = pins.setdefault(source, {})
            for one in definitions:
                pinned[one["name"]] = {"digest": digest(one), "definition": one}
            if any((len(pinned) > MOST, len(json.dumps(pinned)) > LARGEST)):
                raise UsageError(
                    f"{source} has offered too many tools by now: {self.path} may have {MOST:,} definitions of it, with "
                    f"{LARGEST:,} characters. If that is right, remove its entry from the file"
                )
            self._write(pins)

    def adopt(self, old: str, new: str) -> None:
        """Move the pins of a source from its `old` name to its `new` one, if there are none under the new one yet."""
        if old == new or new in (known := self._read()) or old not in known:
            return
        with self._writing():
            pins = self._read()
            pins.setdefault(new, dict(pins.get(old, {})))
            self._write(pins)

    def known_as(self, source: str, resolved: Callable[[str], str]) -> str:
        """Return the name under which a source is pinned: its own, or one that resolves to the same."""
        known = self._read()
        if source in known:
            return source
        wanted = resolved(source)
        return next((name for name in known if resolved(name) == wanted), source)

    def forget(self, source: str) -> bool:
        """Delete the pins of a source. Return whether there were any."""
        with self._writing():
            pins = self._read()
            known = pins.pop(source, None) is not None
            if known:
                self._write(pins)
        return known

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            content = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise UsageError(f"the pins in {self.path} cannot be read: {error}. Repair or remove the file") from error
        if (
            not isinstance(content, dict)
            or cast("dict[str, Any]", content).get("form") != FORM
            or not _is_pins(content)
        ):
            raise UsageError(
                f"{self.path} is not a lock file of form {FORM}: expected an object with form and sources, and in "
                "these an object for each source with one for each tool"
            )
        return cast("dict[str, dict[str, Any]]", content["sources"])

    def _write(self, pins: Mapping[str, Any]) -> None:
        """Replace the file atomically."""
        text = json.dumps({"about": ABOUT, "form": FORM, "sources": pins}, indent=1, ensure_ascii=True)
        with replacing(self.path) as file:
            file.write(f"{text}\n".encode())

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        """Allow one writer at a time, across processes if the platform has file locks."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = self.path.with_name(self.path.name + ".lock").open("a")
        except OSError as error:
            raise UsageError(f"the pins cannot be kept in {self.path}: {error}") from error
        with lock:
            take_lock(lock, wait=True)
            yield
