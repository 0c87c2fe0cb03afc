"""Tuning finds the form that a model is good in, goes on after an end of any kind, and keeps what it found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from one_dialect import MARKS, OneDialect

import toolspeak as ts
from conftest import TOOLS
from toolspeak import tuning
from toolspeak.models.forms import Form

Speaks = Callable[[str], OneDialect]


@pytest.mark.parametrize("dialect", [name for name in MARKS if name != "tool-json"])
def test_the_one_dialect_that_a_model_speaks_is_found(speaks: Speaks, dialect: str, tmp_path: Path) -> None:
    server = speaks(dialect)
    outcome = tuning.tune(server.name, TOOLS, tmp_path / "out")
    assert outcome.chosen.form == Form("dialect", dialect)
    assert outcome.usual.form.dialect == "tool-json"
    assert outcome.chosen.accuracy.value == 1
    assert "more than noise" in outcome.verdict
    assert "tool-json, the usual form" in outcome.verdict
    outcome.save()
    model = ts.model(server.name)
    assert isinstance(model, ts.Speaker)
    assert model.dialect.name == dialect
    reply = ts.decide("Get the current weather in Lisbon.", tools=TOOLS, model=server.name, tries=1)
    assert [call.arguments for call in reply.calls] == [{"city": "Lisbon"}]
