"""The form of a call, for a model that wrote something else between the markers of a call."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from ...types import Tool, ToolCall
from ..dialect import Dialect
from .calls import write_calls
from .control_markers import cleaner
from .known_markers import control_markers

VALUE = "..."
"""What stands for a value."""
NAME = "NAME"
"""What stands for a name if no tools are known."""
PARAMETERS = 8
"""The most parameters in a form."""


def call_form(d: Dialect, tools: Mapping[str, Tool[..., Any]] | None) -> str:
    """A call of the first tool as the model should write it, without the control markers around it.

    "" if the dialect has such markers within a call: they would be broken in the prompt, and the model could copy them so.
    """
    if not tools:
        return _written(d, NAME, ())
    tool = next(iter(tools.values()))
    listed = (cast("list[Any] | dict[str, Any] | None", tool.parameters.get(key)) for key in ("required", "properties"))
    names = next((one for one in listed if isinstance(one, list | dict) if one), ())
    return _written(d, tool.name, tuple(map(str, names))[:PARAMETERS])


@lru_cache(256)
def _written(d: Dialect, name: str, parameters: Collection[str]) -> str:
    arguments = dict.fromkeys(parameters, VALUE)
    text = write_calls([ToolCall("", name, arguments, json.dumps(arguments))], d).strip()
    clean = cleaner(control_markers(d), [])
    words = " ".join((d.open, d.close, *(part for part in d.call if isinstance(part, str)))).split()
    form = _without(text, [word for word in words if clean(word) != word])
    halved = any((form.count("<") != form.count(">"), form.count("```") % 2))
    return "" if any((halved, clean(form) != form)) else form


def _without(text: str, markers: Sequence[str]) -> str:
    """The text without these markers around it."""
    while word := next((w for w in markers if text.startswith(w) or text.endswith(w)), ""):
        text = text.removeprefix(word).removesuffix(word).strip()
    return text
