"""The public names are what they say, whatever was imported before them."""

from __future__ import annotations

import importlib
import pkgutil
import types

import pytest

import toolspeak as ts


@pytest.mark.parametrize("module", ["toolspeak.dialects", "toolspeak.explain"])
def test_a_module_of_the_same_name_does_not_hide_a_function(module: str) -> None:
    assert isinstance(importlib.import_module(module), types.ModuleType)
    assert callable(getattr(ts, module.rpartition(".")[2]))


def test_no_public_name_is_a_module() -> None:
    for found in pkgutil.iter_modules(ts.__path__):
        if not found.name.startswith("_"):
            importlib.import_module(f"toolspeak.{found.name}")
    assert [name for name in ts.__all__ if isinstance(getattr(ts, name), types.ModuleType)] == []


def test_other_modules_are_reached_by_their_package() -> None:
    assert importlib.import_module("toolspeak.errors") is ts.errors  # type: ignore[attr-defined]
