"""Conversations on disk: one JSON file of messages each, in the user's state folder."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..files import replacing, state_folder
from ..types import Message


def folder() -> Path:
    """Return the folder of conversations: `chats` in the user's state folder."""
    return state_folder() / "chats"


def new() -> Path:
    """Return the path for a new conversation. The file is created with the first message."""
    now = time.time_ns()
    name = time.strftime("%Y%m%d-%H%M%S", time.localtime(now // 10**9))
    return folder() / f"{name}-{now % 10**9:09d}.json"


def latest() -> Path:
    """Return the file of the most recent conversation. Raises UsageError if there is none."""
    paths = sorted(folder().glob("*.json"), key=lambda path: (path.stat().st_mtime, path.name))
    if not paths:
        raise UsageError(f"there is no conversation to continue in {folder()}: start one with `toolspeak chat`")
    return paths[-1]


def read(path: Path) -> object:
    """Return the JSON in a file. Raises UsageError if it contains none."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be continued: {error}") from error


def messages(value: object, path: Path) -> list[Message]:
    """Return the messages of a conversation that was read from a file. Raises UsageError if it has none."""
    messages: Any = cast("dict[str, Any]", value).get("messages") if isinstance(value, dict) else value
    listed = cast("list[Any]", messages) if isinstance(messages, list) else [None]
    if not all(isinstance(one, dict) and isinstance(cast("dict[str, Any]", one).get("role"), str) for one in listed):
        raise UsageError(f"{path} cannot be continued: expected a list of messages, each with a role")
    return cast("list[Message]", listed)


def tools(value: object) -> tuple[str, ...]:
    """Return the sources of a conversation's tools, as `--tools` takes them."""
    listed: Any = cast("dict[str, Any]", value).get("tools") if isinstance(value, dict) else None
    return tuple(str(one) for one in cast("list[Any]", listed)) if isinstance(listed, list) else ()


def write(path: Path, messages: Sequence[Message], model: str, tools: Sequence[str] = ()) -> None:
    """Store a conversation atomically, readable by its owner alone. `tools` are the sources of its tools."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A lone surrogate, which a tool's JSON may contain, has no UTF-8 form. Escaped it is valid JSON.
    where = [str(Path(one).absolute()) if Path(one.partition(":")[0]).exists() else one for one in tools]
    text = json.dumps({"model": model, "tools": where, "messages": list(messages)}, ensure_ascii=False, indent=1)
    with replacing(path, mode=0o600) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
