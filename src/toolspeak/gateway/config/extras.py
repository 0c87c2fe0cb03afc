"""Finds settings that have no effect because an extra is not installed."""

from __future__ import annotations

from importlib.util import find_spec

from .settings import GatewaySettings

SEARCH = ("numpy", "Stemmer")
"""The modules of the extra `search`."""


def missing_extras(settings: GatewaySettings) -> list[str]:
    """Return a line for each model whose settings select tools, if the library for that is not installed."""
    if all(map(find_spec, SEARCH)):
        return []
    return [
        f"note    {name}: `{'max_tools' if model.max_tools else 'context'}` cannot select tools without the extra `search`, "
        "so requests with many tools may be too long: pip install 'toolspeak[search]'"
        for name, model in settings.models.items()
        if any((model.max_tools, model.context))
    ]
