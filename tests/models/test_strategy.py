"""How a model is asked, by what is known of it: the specification, and what holds for all templates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from properties import rotated
from strategies import CASES, CHATML, HERMES, NO, Case, header
from toolspeak.evals.trace import recorded
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import build
from toolspeak.models.embedded import gguf_header
from toolspeak.models.fallback import Adaptive, look
from toolspeak.models.http import Http
from toolspeak.models.reask_policy import reask_policy
from toolspeak.models.servers.capabilities import Finding, ServerCapabilities
from toolspeak.models.strategy import Known, Strategy, strategy
from toolspeak.models.tool_calling import as_tuned, calling
from toolspeak.search.router import ToolRouter
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
    server_capabilities = ServerCapabilities("http://127.0.0.1:9/v1", case.name, "openai", found, **told)
    return Adaptive(Http("http://127.0.0.1:9/v1", case.name), server_capabilities=server_capabilities)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.model}: {case.known}")
def test_each_case_is_asked_as_the_table_says(case: Case, tmp_path: Path) -> None:
    model = model_of(case, tmp_path)
    assert model.strategy.line == f"{case.asked}: {case.why}"
    assert ("scored" in model.capabilities) == (case.asked == "scored")


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
        known = gguf_header.known(header(tmp_path / "m.gguf", "m", CHATML, parameters))
        assert abs(known.parameters - parameters) < 1000
    path = tmp_path / "cut.gguf"
    path.write_bytes((tmp_path / "m.gguf").read_bytes()[:-20])
    with pytest.raises(ts.WeightsError, match="cut or broken"):
        gguf_header.known(path)


def test_a_file_is_known_by_its_own_name_or_that_of_the_file(tmp_path: Path) -> None:
    assert (
        gguf_header.known(header(tmp_path / "0123abcd.gguf", "Qwen2.5 7B Instruct", "", 7)).name
        == "Qwen2.5 7B Instruct"
    )
    assert gguf_header.known(header(tmp_path / "LFM2-1.2B-Q8_0.gguf", "Model", "", 7)).name == "LFM2-1.2B-Q8_0"


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
    for text in (*(path.read_text("utf-8") for path in rotated(paths, 3)), CHATML, HERMES, ""):
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


def strategy_of(model: Any) -> Strategy:
    """How a model is asked, whatever is put around it."""
    while not isinstance(model, Adaptive | ts.Speaker):
        model = getattr(model, "upstreams", None) or model.model
        model = model[0].model if isinstance(model, list | tuple) else model
    return model.strategy


FILE_DOORS: dict[str, Callable[[str], Any]] = {
    "its name": lambda path: calling(ts.model(f"local:{path}")),
    "ts.Local": lambda path: calling(ts.Local(path)),
    "ts.model(ts.Local)": lambda path: calling(ts.model(ts.Local(path))),
    "ts.Speaker": lambda path: ts.Speaker(ts.Local(path)),
    "a recorder": lambda path: recorded(ts.Local(path)),
    "many tools": lambda path: ToolRouter(ts.Local(path), strict=False),
    "the gateway": lambda path: build(ModelSettings("m", (f"local:{path}",))).model,
    "asked again": lambda path: reask_policy([f"model:local:{path}"], ts.Speaker(ts.Scripted("x"))).others.popitem()[1],
    "asked again in a dialect": lambda path: reask_policy(["dialect"], calling(ts.Local(path))).others.popitem()[1],
}
"""The ways of handing over a file that say nothing of how it is asked."""
SERVER_DOORS: dict[str, Callable[[ServerCapabilities], Any]] = {
    "looked at": lambda seen: Adaptive(Http(seen.address, seen.model), server_capabilities=seen),
    "refusing tools": lambda seen: refusing(Http(seen.address, seen.model), seen),
    "the gateway's modes": lambda seen: [
        build(ModelSettings("m", (f"{seen.address}#m",), mode=mode)).model for mode in ("auto", "native", "chat", "raw")
    ],
}


def refusing(http: Http, seen: ServerCapabilities) -> Adaptive:
    model = Adaptive(http, look=False)
    model.refused = "it refused them"
    model._settle(seen)
    return model


@pytest.mark.parametrize("parameters", [0, 500_000_000, 3_000_000_000])
@pytest.mark.parametrize("template", [CHATML, HERMES, ""])
def test_no_door_scores_a_model_of_half_a_billion_weights_unless_it_is_chosen(
    parameters: int, template: str, tmp_path: Path
) -> None:
    path = str(header(tmp_path / "m.gguf", "mine", template, parameters or 7_000_000_000))
    for name, door in FILE_DOORS.items():
        model = door(path)
        assert strategy_of(model).way == "prompted", name
        assert "scored" not in model.capabilities, name
    found = {name: Finding("yes") for name in ("chat", "completions")} | {"tools": Finding("no", NO)}
    seen = ServerCapabilities("http://127.0.0.1:9/v1", "m", "openai", found, "llama.cpp", template=template, score_way="forced",
                     parameters=parameters)  # fmt: skip
    for name, door in SERVER_DOORS.items():
        models = door(seen)
        for model in models if isinstance(models, list) else [models]:
            assert strategy_of(model).way != "scored", name
    chosen = [
        ts.Speaker(ts.Local(path), way="scored"),
        as_tuned(ts.Local(path), Strategy("scored")),
        as_tuned(Http(seen.address, "m"), Strategy("scored", server={"score_way": "forced"})),
    ]
    assert [strategy_of(model).way for model in chosen] == ["scored"] * 3


@pytest.mark.parametrize(
    ("url", "looks"), [("https://api.openai.com/v1", 0), ("https://api.anthropic.com", 0), ("http://127.0.0.1:9/v1", 1)]
)
def test_a_hosted_provider_is_never_looked_at(monkeypatch: pytest.MonkeyPatch, url: str, looks: int) -> None:
    seen: list[str] = []

    async def quick_look(server: Http, *, scoring: bool) -> None:
        seen.append(server.address.public)

    monkeypatch.setattr("toolspeak.models.fallback.quick_look", quick_look)
    http = Http(url, "m", key="sk-none-at-all-0123")
    for model in (Adaptive(http), ts.model(http, dialect="hermes")):
        asyncio.run(look(model))
    assert len(seen) == 2 * looks
