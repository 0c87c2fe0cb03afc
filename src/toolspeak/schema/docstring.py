"""Reads the descriptions of a function and its parameters from a docstring, in any common style."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docstring_parser import Docstring


def read_docstring(doc: str | None) -> tuple[str, dict[str, str]]:
    """(description, {parameter: description}) from a docstring in Google, NumPy, Sphinx, Epydoc or plain style.

    The description is the text before the sections; a docstring in no known style is all description.
    """
    if not doc or not doc.strip():
        return "", {}
    from docstring_parser import ParseError, parse

    try:
        parsed = parse(doc)
    except ParseError:
        return inspect.cleandoc(doc), {}
    parameters = {p.arg_name.lstrip("*"): " ".join((p.description or "").split()) for p in parsed.params}
    return _description(parsed), {name: description for name, description in parameters.items() if description}


def _description(parsed: Docstring) -> str:
    parts = [part.strip() for part in (parsed.short_description, parsed.long_description) if part]
    return "\n\n".join(parts) if parsed.blank_after_short_description else "\n".join(parts)
