"""Stores an index in a file: its tools and their example questions, as JSON in a zip file.

Terms and weights are not stored. They are recomputed when the file is read, in about the time that reading them would
take. So an index gives the same results after loading, and a file cannot contain wrong weights.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..files import replacing
from ..schema.infer import AnyTool, as_tool
from ..toolbox import Toolbox
from .group_tree import Group

FORMAT, VERSION = "toolspeak-index", 1
MEMBER = "index.json"
MOST = 1 << 30
"""The most bytes of uncompressed text that are read: a small zip file can expand to far more."""
BROKEN = (OSError, LookupError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Errors from reading a file that is no zip file or is damaged (ValueError: its text is no JSON)."""


def write(
    path: Path, tools: Iterable[AnyTool], examples: Mapping[str, Iterable[str]], groups: Iterable[Group] = ()
) -> None:
    """Writes the file atomically."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "tools": [_tool_record(tool) for tool in tools],
        "examples": {name: list(questions) for name, questions in examples.items()},
    }
    if rows := [_group_record(group) for group in groups]:
        content["groups"] = rows
    try:
        _put(path, json.dumps(content))
    except OSError as error:
        raise UsageError(f"the index cannot be written to {path}: {error.strerror or error}") from error


def _put(path: Path, text: str) -> None:
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            zipfile.ZipInfo(MEMBER), text, zipfile.ZIP_DEFLATED
        )  # without a time, so that equal indexes give equal files


def read(path: Path, functions: Toolbox) -> tuple[list[AnyTool], dict[str, list[str]], tuple[Group, ...]]:
    """The tools, examples and groups in a file. Each tool gets the function of the tool of its name in `functions`."""
    content = _read_content(path)
    if content.get("format") != FORMAT:
        raise UsageError(f"{path} is no index of tools: ToolIndex.save writes one")
    if content.get("version") != VERSION:
        raise UsageError(
            f"{path} is an index of version {content.get('version')}, and this is read: {VERSION}. Build it again"
        )
    try:
        tools = [_tool(one, functions) for one in content["tools"]]
        examples = {str(name): [str(one) for one in questions] for name, questions in content["examples"].items()}
        groups = tuple(_group(one) for one in content.get("groups", ()))
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is a broken index: {error}. Build it again") from error
    return tools, examples, groups


def _read_content(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(MEMBER) as member:
            text = member.read(MOST + 1)
        if len(text) > MOST:
            raise UsageError(f"{path} holds more than {MOST >> 20} MB: that is no index of tools")
        content = json.loads(text)
    except FileNotFoundError:
        raise UsageError(f"there is no index {path}") from None
    except UsageError:
        raise
    except BROKEN as error:
        raise UsageError(f"{path} is no index of tools, or a broken one: {error}") from error
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def _tool_record(tool: AnyTool) -> dict[str, Any]:
    row: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    if tool.injected:
        row["injected"] = tool.injected
    if tool.timeout is not None:
        row["timeout"] = tool.timeout
    if tool.strict:
        row["strict"] = True
    return row


def _group_record(group: Group) -> dict[str, Any]:
    members = [_group_record(one) if isinstance(one, Group) else one for one in group.members]
    return {"name": group.name, "description": group.description, "members": members}


def _group(entry: Mapping[str, Any]) -> Group:
    members = tuple(one if isinstance(one, str) else _group(one) for one in entry["members"])
    return Group(str(entry["name"]), members, str(entry["description"]))


def _tool(entry: Mapping[str, Any], functions: Toolbox) -> AnyTool:
    tool = as_tool({key: entry[key] for key in ("name", "description", "parameters")})
    tool = replace(
        tool,
        injected=tuple(map(str, entry.get("injected", ()))),
        timeout=entry.get("timeout"),
        strict=entry.get("strict") is True,
    )
    if tool.name in functions:
        lent = functions[tool.name]
        tool = replace(tool, function=lent.function, build=lent.build, injected=lent.injected)
    return tool
