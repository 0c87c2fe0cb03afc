"""Profiles written by `toolspeak tune`: the best strategy for each model, a small JSON file each, in the user's
settings.

`ts.model` follows a profile where neither a dialect nor anything else says how the model is asked. They are no cache:
what they say changes what programs do. So they lie in $TOOLSPEAK_PROFILES, else in the platform's folder for settings;
TOOLSPEAK_PROFILES=off uses and keeps none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..api.json_stream import record
from ..dialects import get
from ..errors import ToolspeakError, UsageError
from ..files import replacing, settings_folder, user_path
from .base import Model
from .embedded import weights
from .strategy import WAYS, Strategy

log = logging.getLogger(__name__)

FORM = 2
"""Goes up when what is kept changes its form."""
VARIABLE = "TOOLSPEAK_PROFILES"
ENDS = 1 << 20
"""Bytes at either end of a model's file that it is told by."""
ABOUT = "How toolspeak asks this model, as `toolspeak tune` found best. `toolspeak tune --forget` removes this file."


@dataclass(frozen=True, slots=True)
class Profile:
    """The strategy that suits a model, by the name that it shows.

    `key` says which model exactly: the file's digest, or the server's address. `measured` is when, on what, and what
    came out, for people.
    """

    model: str
    key: str
    strategy: Strategy
    measured: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def path(self) -> Path:
        """Its file. Raises UsageError where profiles are switched off."""
        return path_of(self.model, self.key)

    def record(self) -> dict[str, Any]:
        """What its file holds."""
        chosen = self.strategy
        form = {"way": chosen.way, "dialect": chosen.named, "held": chosen.constrained, "server": dict(chosen.server)}
        return {"model": self.model, "key": self.key, "form": form, "measured": dict(self.measured)}


def folder() -> Path | None:
    """Where profiles lie; None where they are switched off."""
    return user_path(VARIABLE, settings_folder, "profiles")


def key_of(model: Model) -> str:
    """Which model this is exactly: by the digest of its file, or the address of its server."""
    server: Any = model
    if hasattr(model, "address"):
        return f"{server.api} {server.address.public}#{server.model or ''}"
    path: Path | None = getattr(model, "path", None)
    if path is not None:
        return f"file {_digest(path)}"
    return f"file {weights.SMOLLM2.file_sha256[:32]}" if model.name == "local" else model.name


def _digest(path: Path) -> str:
    try:
        info = path.stat()
        return _ends(path, info.st_size, info.st_mtime_ns)
    except OSError:
        return f"none at {path}"


@lru_cache(64)
def _ends(path: Path, size: int, _: int) -> str:
    """A digest of a file's size and both its ends: all of a large one would take minutes."""
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(ENDS))
        file.seek(max(0, size - ENDS))
        digest.update(file.read(ENDS))
    return digest.hexdigest()[:32]


def slug(model: str, key: str) -> str:
    """A name for files: readable, and no other model's."""
    readable = re.sub(r"[^\w.]+", "-", model)[-48:].strip("-.")
    return f"{readable}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def path_of(model: str, key: str) -> Path:
    """Where the profile of a model lies, or would. Raises UsageError where profiles are switched off."""
    where = folder()
    if where is None:
        raise UsageError(f"profiles are switched off: {VARIABLE}=off. Unset it, or give a folder")
    return where / f"{slug(model, key)}.json"


# ------------------------------------------------------------------ kept, read, forgotten


def save(profile: Profile) -> Path:
    """Keeps a profile, in a file that appears whole, and says where. Raises UsageError where it cannot be kept."""
    path = profile.path
    row = {"about": ABOUT, "version": FORM, **profile.record()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(f"{json.dumps(row, ensure_ascii=False, indent=1)}\n".encode())
    except OSError as error:
        raise UsageError(f"the profile cannot be kept at {path}: {error.strerror or error}. Set {VARIABLE}") from None
    return path


def read(path: Path) -> Profile:
    """The profile in a file. Raises UsageError for what is none, OSError for what cannot be read."""
    try:
        row = record(json.loads(path.read_text("utf-8")))
        if row.get("version") != FORM:
            raise UsageError(f"it is of version {row.get('version')!r}, expected {FORM}")
        chosen = _strategy(record(row["form"]), str(path))
        return Profile(str(row["model"]), str(row["key"]), chosen, record(row.get("measured", {})))
    except KeyError as error:
        raise UsageError(f"it says nothing of {error}") from None
    except (ValueError, TypeError, RecursionError, ToolspeakError) as error:
        raise UsageError(str(error)) from None


def _strategy(form: dict[str, Any], path: str) -> Strategy:
    """What a file says of how its model is asked."""
    way, dialect, grammar, server = form["way"], form.get("dialect"), form.get("held", True), form.get("server", {})
    if (type(grammar), type(server)) != (bool, dict):
        raise UsageError("form: expected way, dialect, held and server")
    if way not in WAYS:
        raise UsageError(f"way: expected {', '.join(WAYS)}, received {way!r}")
    spoken = get(dialect) if dialect else None
    return Strategy(
        way,
        f"as it was tuned: {path}",
        spoken,
        constrained=grammar,
        profile=path,
        server=record(server),
        explicit=spoken is not None,
    )


def recall(model: Model) -> Profile | None:
    """The profile of a model; None where there is none, or none that can be used, which is warned of."""
    where = folder()
    if where is None or not any(hasattr(model, name) for name in ("address", "path")):
        return None
    key = key_of(model)
    path = where / f"{slug(model.name, key)}.json"
    if not path.is_file():
        return None
    try:
        profile = read(path)
        if profile.key != key:
            raise UsageError(f"it is of another model, {profile.key}")
    except (UsageError, OSError) as error:
        warn(str(path), str(error))
        return None
    return profile


def every() -> list[Profile]:
    """All profiles that can be read, by their models' names; others are warned of."""
    where = folder()
    profiles: list[Profile] = []
    for path in sorted(where.glob("*.json")) if where else ():
        try:
            profiles.append(read(path))
        except (UsageError, OSError) as error:
            warn(str(path), str(error))
    return profiles


def forget(model: Model) -> Path | None:
    """Removes the profile of a model, also one that cannot be read; None where there is none."""
    path = path_of(model.name, key_of(model))
    if not path.is_file():
        return None
    try:
        path.unlink()
    except OSError as error:
        raise UsageError(f"{path} cannot be removed: {error.strerror or error}") from None
    return path


@lru_cache(256)
def warn(path: str, why: str) -> None:
    """Says once a process that a profile is of no use."""
    log.warning("the profile %s is ignored: %s. `toolspeak tune` makes a new one", path, why)
