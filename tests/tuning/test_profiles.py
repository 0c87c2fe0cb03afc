"""Profiles: followed by whoever names the model, unless told otherwise; never in the way where they are no good."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tuned_tools import TOOLS

import toolspeak as ts
from toolspeak import evals
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import build as served
from toolspeak.models import tuned_profiles
from toolspeak.models.embedded.local import Local
from toolspeak.models.fallback import Adaptive
from toolspeak.models.resolve import bare
from toolspeak.models.servers.logprob_scorer import LogprobScorer
from toolspeak.models.strategy import Strategy, Way
from toolspeak.models.tuned_profiles import Profile

SERVER = "http://127.0.0.1:9/v1#m"


def form(way: Way, dialect: str = "", *, held: bool = True, server: dict[str, object] | None = None) -> Strategy:
    return Strategy(way, dialect=ts.dialect(dialect) if dialect else None, constrained=held, server=server or {})


def keep(name: str, chosen: Strategy) -> Path:
    model = bare(name)
    return tuned_profiles.save(Profile(model.name, tuned_profiles.key_of(model), chosen, {"at": "today"}))


def dialect_of(model: ts.Model) -> str:
    model = model.model if isinstance(model, Adaptive) else model
    assert isinstance(model, ts.Speaker)
    return model.dialect.name


def test_a_profile_is_followed_by_name_alone(kept: Path) -> None:
    assert isinstance(ts.model("local"), Local)
    path = keep("local", form("prompted", "hermes"))
    assert path.parent == kept
    assert dialect_of(ts.model("local")) == "hermes"
    assert dialect_of(ts.model("local", dialect="react")) == "react"
    assert isinstance(ts.model("local:other.gguf"), Local), "another model"
    read = tuned_profiles.recall(bare("local"))
    assert read is not None
    assert (read.strategy, read.measured) == (replace(form("prompted", "hermes"), profile=str(path)), {"at": "today"})
    assert tuned_profiles.every() == [read]
    assert tuned_profiles.forget(bare("local")) == path
    assert tuned_profiles.forget(bare("local")) is None
    assert isinstance(ts.model("local"), Local)


def test_a_server_has_a_profile_by_its_address_and_model() -> None:
    keep(SERVER, form("prompted", "hermes", server={"grammar_field": "grammar"}))
    model = ts.model(SERVER)
    assert dialect_of(model) == "hermes"
    assert "grammar" in model.capabilities
    assert dialect_of(ts.model(SERVER, timeout=5, key="k")) == "hermes"
    assert isinstance(ts.model("http://127.0.0.1:9/v1#other"), Adaptive)
    assert isinstance(ts.model("http://127.0.0.1:10/v1#m"), Adaptive)
    assert isinstance(ts.model(SERVER, native=True), Adaptive)
    keep(SERVER, form("native"))
    assert isinstance(ts.model(SERVER), Adaptive)
    keep(SERVER, form("scored", server={"score_way": "echo", "slots": 2}))
    likely = ts.model(SERVER)
    assert isinstance(likely, Adaptive)
    assert isinstance(likely.model, ts.Speaker)
    assert isinstance(likely.model.model, LogprobScorer)
    assert "scored" in likely.capabilities


def test_no_profile_holds_a_password() -> None:
    path = keep("http://user:secret@127.0.0.1:9/v1?token=hidden#m", form("prompted", "hermes"))
    assert "secret" not in path.name + path.read_text("utf-8")
    assert "hidden" not in path.name + path.read_text("utf-8")


def test_a_file_is_told_by_what_is_in_it(tmp_path: Path) -> None:
    one = tmp_path / "one.gguf"
    one.write_bytes(b"GGUF" + bytes(100))
    keep(f"local:{one}", form("prompted", "hermes"))
    assert dialect_of(ts.model(f"local:{one}")) == "hermes"
    one.write_bytes(b"GGUF" + bytes(99) + b"x")
    assert isinstance(ts.model(f"local:{one}"), Local), "another file of the same size and name"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text[:40], "Unterminated|Expecting|Invalid"),
        (lambda _: "[]", "version None"),
        (lambda _: "\xff", "Expecting value"),
        (lambda text: text.replace('"version": 2', '"version": 99'), "version 99, expected 2"),
        (lambda text: text.replace("hermes", "hermse"), "no dialect is called 'hermse'"),
        (lambda text: text.replace('"way": "prompted"', '"way": "magic"'), "way: expected native, prompted"),
        (lambda text: text.replace('"held": true', '"held": "yes"'), "expected way, dialect, held and server"),
        (lambda text: text.replace('"file ', '"file x'), "it is of another model"),
        (lambda text: text.replace('"key"', '"kee"'), "it says nothing of 'key'"),
        (lambda text: text.replace('"way": "prompted"', '"way": "native"'), "cannot be asked in the form 'native'"),
    ],
)
def test_what_cannot_be_used_is_warned_of(
    change: Callable[[str], str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = keep("local", form("prompted", "hermes"))
    path.write_text(change(path.read_text("utf-8")), "utf-8")
    with caplog.at_level(logging.WARNING):
        assert isinstance(ts.model("local"), Local)
        assert isinstance(ts.model("local"), Local)
    (said,) = caplog.messages
    assert str(path) in said
    assert "is ignored" in said

    assert re.search(why, said)
    assert tuned_profiles.forget(bare("local")) == path


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    keep("local", form("prompted", "hermes"))
    monkeypatch.setenv("TOOLSPEAK_PROFILES", "off")
    assert isinstance(ts.model("local"), Local)
    assert tuned_profiles.every() == []
    with pytest.raises(ts.UsageError, match="switched off"):
        keep("local", form("scored"))


def test_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("TOOLSPEAK_PROFILES", str(tmp_path / "file" / "in"))
    with pytest.raises(ts.UsageError, match=r"cannot be kept at .*Set TOOLSPEAK_PROFILES"):
        keep("local", form("scored"))
    assert isinstance(ts.model("local"), Local)


def test_explain_names_it() -> None:
    assert ts.explain("Hi", tools=TOOLS, model=SERVER).profile == ""
    path = keep(SERVER, form("prompted", "hermes"))
    told = ts.explain("Hi", tools=TOOLS, model=SERVER)
    assert told.profile == str(path)
    assert f"as it was tuned: {path}" in str(told)
    handed_over = ts.explain("Hi", tools=TOOLS, model=ts.Http("http://127.0.0.1:9/v1", "m"))
    assert (handed_over.profile, handed_over.strategy) == (told.profile, told.strategy)
    assert "<tool_call>" in str(told)


def test_evaluations_and_the_gateway_follow_it() -> None:
    keep(SERVER, form("prompted", "hermes"))
    assert dialect_of(evals.Contender(SERVER).build()) == "hermes"

    def upstream(**settings: object) -> object:
        pool = served(ModelSettings(name="m", upstreams=(SERVER,), **settings)).model  # type: ignore[arg-type]
        return pool.upstreams[0].model  # type: ignore[attr-defined]

    assert dialect_of(upstream()) == "hermes"  # type: ignore[arg-type]
    assert dialect_of(upstream(mode="chat", dialect="react")) == "react"  # type: ignore[arg-type]
    assert upstream(mode="native").strategy.way == "native"  # type: ignore[attr-defined]


def test_what_is_kept_can_be_read(kept: Path) -> None:
    path = keep(SERVER, form("prompted", "hermes", held=False, server={"slots": 4}))
    told = json.loads(path.read_text("utf-8"))
    assert told["form"] == {"way": "prompted", "dialect": "hermes", "held": False, "server": {"slots": 4}}
    assert told["model"] == "http://127.0.0.1:9/v1#m"
    assert "toolspeak tune --forget" in told["about"]
    assert [one.name for one in kept.iterdir()] == [path.name]
