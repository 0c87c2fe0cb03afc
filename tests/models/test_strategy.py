"""How a model is asked, by what is known of it: the specification, and what holds for all templates."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from strategies import CASES, CHATML, HERMES, Case, header
from toolspeak.models import gguf
from toolspeak.models.abilities import Abilities, Finding
from toolspeak.models.adaptive import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.strategy import Known, strategy
from toolspeak.wire.detect import by_template

TEMPLATES = Path(__file__).resolve().parents[3] / "shared" / "templates"


def weather(city: str) -> str:
    """The weather."""
    return city


def model_of(case: Case, folder: Path) -> Any:
    """The model that a case speaks of, by public names."""
    if case.file:
        path = header(folder / "model.gguf", *case.file)
        wants = {"dialect": None, **case.wants}
        if way := wants.pop("way", None):
            return ts.Speaker(ts.Local(path), way=way)
        made = ts.model(f"local:{path}", dialect=wants["dialect"])
        return made if isinstance(made, ts.Speaker) else ts.Speaker(made)
    if case.model == "the embedded model":
        return ts.Speaker(ts.Local())
    if case.server is None:
        return ts.model(f"http://127.0.0.1:9/v1#{case.name}")
    told = dict(case.server)
    found = {name: Finding(*told.pop(name)) for name in ("tools", "chat", "completions")}
    abilities = Abilities("http://127.0.0.1:9/v1", case.name, "openai", found, **told)
    return Adaptive(Http("http://127.0.0.1:9/v1", case.name), abilities=abilities)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.model}: {case.known}")
def test_each_case_is_asked_as_the_table_says(case: Case, tmp_path: Path) -> None:
    model = model_of(case, tmp_path)
    assert model.strategy.line == f"{case.asked}: {case.why}"
    assert ("weighs" in model.capabilities) == (case.asked == "scored")


@pytest.mark.parametrize("case", [case for case in CASES if case.asked != "scored"], ids=lambda case: case.known)
def test_explain_shows_the_same_line_and_sends_nothing(case: Case, tmp_path: Path) -> None:
    told = ts.explain("Weather in Rome?", tools=[weather], model=model_of(case, tmp_path))
    assert told.strategy == f"{case.asked}: {case.why}"
    assert f"asked: {told.strategy}" in str(told)


def test_a_way_that_a_model_does_not_have_is_refused() -> None:
    with pytest.raises(ts.UsageError, match="no likelihoods"):
        ts.Speaker(ts.Scripted("x"), way="scored")
    with pytest.raises(ts.UsageError, match="way: expected native, prompted, scored"):
        ts.Speaker(ts.Scripted("x"), way="magic")  # type: ignore[arg-type]
    with pytest.raises(ts.UsageError, match="a way or a dialect"):
        ts.Speaker(ts.Local(), "hermes", way="scored")


def test_a_file_tells_its_parameters(tmp_path: Path) -> None:
    for parameters in (0, 1, 499_999_999, 500_000_000, 70_000_000_001):
        known = gguf.known(header(tmp_path / "m.gguf", "m", CHATML, parameters))
        assert abs(known.parameters - parameters) < 1000
    path = tmp_path / "cut.gguf"
    path.write_bytes((tmp_path / "m.gguf").read_bytes()[:-20])
    with pytest.raises(ts.WeightsError, match="cut or broken"):
        gguf.known(path)


def test_a_file_is_known_by_its_own_name_or_that_of_the_file(tmp_path: Path) -> None:
    assert gguf.known(header(tmp_path / "0123abcd.gguf", "Qwen2.5 7B Instruct", "", 7)).name == "Qwen2.5 7B Instruct"
    assert gguf.known(header(tmp_path / "LFM2-1.2B-Q8_0.gguf", "Model", "", 7)).name == "LFM2-1.2B-Q8_0"


SOURCES = {
    "a file": {"completes": True, "scores": True},
    "a server that drops tools": {"tools": False, "completes": True, "scores": True},
    "a server of chats alone": {"tools": False, "scores": True},
}
SIZES = {"unknown": 0, "500M": 500_000_000, "7B": 7_000_000_000}


@pytest.mark.parametrize("source", SOURCES)
def test_no_template_of_a_model_of_half_a_billion_weights_leads_to_scoring(source: str) -> None:
    """Templates of real models × where they are × their sizes: prompted, in the template's dialect where it tells one."""
    paths = sorted(TEMPLATES.glob("*.jinja"))
    if not paths:
        pytest.skip("the chat templates are not here: ../shared/templates")
    for text in (*(path.read_text("utf-8") for path in paths), CHATML, HERMES, ""):
        own = by_template(text, "mine") if text else None
        for size in SIZES.values():
            known = Known("mine", template=text, parameters=size, **SOURCES[source])
            chosen = strategy(known)
            assert chosen.way == "prompted"
            assert chosen.dialect is not None
            assert (chosen.dialect.name == "tool-json") == (own is None or own.name == "tool-json")
            assert bool(chosen.template) == (own is not None and known.completes)
        small = strategy(Known("mine", template=text, parameters=499_999_999, **SOURCES[source]))
        assert small.way == ("scored" if own is None else "prompted")


@pytest.mark.parametrize(
    ("url", "looks"), [("https://api.openai.com/v1", 0), ("https://api.anthropic.com", 0), ("http://127.0.0.1:9/v1", 1)]
)
def test_a_hosted_provider_is_never_looked_at(monkeypatch: pytest.MonkeyPatch, url: str, looks: int) -> None:
    seen: list[str] = []

    async def glance(server: Http) -> None:
        seen.append(server.address.shown)

    monkeypatch.setattr("toolspeak.models.adaptive.glance", glance)
    asyncio.run(Adaptive(Http(url, "m", key="sk-none-at-all-0123")).look())
    assert len(seen) == looks
