"""Reads an OpenAPI document from a file, a URL or a dict, checks its version, and resolves its references."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from ...display import on_one_line
from ...drive import run_sync
from ...errors import UsageError
from ...files import read_text
from ...schema.phrases import clipped, short
from ...schema.value_count import has_more

LARGEST = 64_000_000
"""The most bytes of a document."""
MOST = 5_000_000
"""The most values of a document, also after expansion of YAML's aliases."""
HOPS = 20
"""The longest chain of references."""


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """A document's `data`. `name` is its name in messages; `url` is where it was fetched from, "" for none.

    `old`: it has version 3.0, whose schemas are not JSON Schema yet.
    """

    data: Mapping[str, Any]
    name: str
    url: str = ""
    old: bool = False

    def __repr__(self) -> str:
        return f"Document({self.name!r})"

    def error(self, where: str, what: str) -> UsageError:
        """Return the error for a place of the document, on one line whatever the names in the document contain."""
        return UsageError(on_one_line(f"{self.name}, at {clipped(where, 300)}: {what}"))

    def follow(self, node: Any, where: str) -> Mapping[str, Any]:
        """Return the object that `node` is or refers to. Raises UsageError."""
        for _ in range(HOPS):
            if not isinstance(node, Mapping):
                raise self.error(where, f"expected an object, got {short(node)}")
            here = cast("Mapping[str, Any]", node)
            if "$ref" not in here:
                return here
            node = self.at(here["$ref"], where)
        raise self.error(where, "its references go round in a circle")

    def at(self, ref: Any, where: str) -> Any:
        """Return the target of a reference inside the document. Raises UsageError if it is elsewhere or missing."""
        if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
            raise self.error(
                where,
                f"the reference {short(ref)} leaves the document, and nothing is fetched for it. "
                "Bundle the files into one first, for example with `redocly bundle`",
            )
        here: Any = self.data
        for part in ref.split("/")[1:]:
            part = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(here, Mapping) and part in here:
                here = cast("Mapping[str, Any]", here)[part]
            elif isinstance(here, list) and part.isdecimal() and int(part) < len(cast("list[Any]", here)):
                here = cast("list[Any]", here)[int(part)]
            else:
                raise self.error(where, f"the reference {short(ref)} points to nothing")
        return here


def load(source: Any, timeout: float, headers: Mapping[str, str], *, allow_private: bool = False) -> Document:
    """Return the document in a dict, a path or a URL, which is requested with `headers`. Raises UsageError, which says
    what is wrong with it."""
    if isinstance(source, Mapping):
        try:
            data: Any = json.loads(json.dumps(source, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the document is not JSON: {error}") from None
        return _checked(data, "the document")
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        from .fetching import fetch

        url, address, text = run_sync(fetch(source, timeout, LARGEST, headers, allow_private=allow_private))
        return _checked(_read(text, address), address, url)
    if not isinstance(source, (str, Path)):
        raise UsageError(f"an OpenAPI document is a path, a URL or a dict; got {type(source).__name__}")
    path = Path(source).expanduser()
    if path.is_file() and path.stat().st_size > LARGEST:
        raise UsageError(f"{path} has {path.stat().st_size:,} bytes; at most {LARGEST:,} are read")
    return _checked(_read(read_text(path), str(path)), str(path))


def _read(text: str, name: str) -> Any:
    """Parse a text: as JSON if it starts like it, else as YAML."""
    if not text.lstrip().startswith("{"):
        from .yamltext import read_yaml

        return read_yaml(text, name, MOST)
    if has_more(text, MOST):
        raise UsageError(f"{name} has more than {MOST:,} values")
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise UsageError(f"{name}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} cannot be read as JSON: {error}") from None


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _checked(data: Any, name: str, url: str = "") -> Document:
    if not isinstance(data, dict):
        raise UsageError(f"{name} is not an OpenAPI document: expected an object, got {short(data)}")
    document = cast("dict[str, Any]", data)
    if "swagger" in document:
        raise UsageError(
            f"{name} is Swagger {short(document['swagger'])}, which came before OpenAPI; versions 3.0 and later are read. "
            "Convert it first, for example with `npx swagger2openapi`"
        )
    version = document.get("openapi")
    if isinstance(version, float):  # without quotes: what was meant is plain
        version = str(version)
    if not isinstance(version, str):
        raise UsageError(f"{name} is not an OpenAPI document: it has no `openapi: 3…`")
    if not version.startswith("3."):
        raise UsageError(f"{name} is OpenAPI {short(version)}; versions 3.0 and later are read")
    if not isinstance(document.get("paths", {}), dict):
        raise UsageError(f"{name}, at #/paths: expected an object, got {short(document['paths'])}")
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError) as error:
        what = "half a character" if isinstance(error, UnicodeEncodeError) else "parts that are nested too deep"
        raise UsageError(f"{name} holds {what}") from None
    return Document(document, name, url, old=version.startswith("3.0"))
