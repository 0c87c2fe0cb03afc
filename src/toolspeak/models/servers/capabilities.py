"""Remembers what a server can do, in the user's cache, and lists the request fields of known programs (llama.cpp, vLLM)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ...api.json_stream import record
from ...files import replacing
from ..base import Capability
from ..embedded.weights import cache_dir
from ..strategy import Known

Answer = Literal["yes", "no", "unclear"]

FORM = 3
"""Goes up when what is kept changes its form: what an older program kept is then asked anew."""
DAY = 86400.0
"""Seconds for which what was seen is believed: a server is started again with other settings."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A program that serves models.

    It answers at `path` with an object that has the field `key`. `grammar`, `schema` and `tag` are the fields in which it
    takes a grammar, a JSON Schema beside a prompt, and a structural tag, the newer name first; `engine` is what holds its
    sampling to them, by the names of `schema.portable`.
    """

    path: str = ""
    key: str = ""
    grammar: tuple[str, ...] = ()
    schema: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    engine: str = ""


FORMAT = ("response_format",)
OTHER = Engine(
    grammar=("grammar", "structured_outputs", "guided_grammar", "ebnf"), schema=("response_format", "json_schema")
)
"""A program that is not known is asked in each way."""
PROGRAMS: Mapping[str, Engine] = {
    "llama.cpp": Engine("/props", "default_generation_settings", ("grammar",), ("json_schema",), (), "llama.cpp"),
    "sglang": Engine("/get_model_info", "model_path", ("ebnf",), FORMAT, FORMAT, "xgrammar"),
    "toolspeak": replace(OTHER, path="/api/version", key="toolspeak"),
    "ollama": Engine("/api/version", "version", engine="llama.cpp"),
    "vllm": Engine("/version", "version", ("structured_outputs", "guided_grammar"), FORMAT, FORMAT, "xgrammar"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a server can do one thing, and what was seen of it."""

    answer: Answer
    evidence: str = ""

    def __bool__(self) -> bool:
        return self.answer == "yes"


UNKNOWN = Finding("unclear", "not asked")


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """What one model of one server can do: each of `findings` by its name, with what was seen.

    `api` is how it is asked, `server` the program where that is known, `template` the model's chat template where
    the server tells it, `grammar_field` where it takes a grammar, `at` when it was asked, in seconds since 1970,
    `schema_field` where it takes a schema beside a prompt, `tag_field` where a structural tag,
    `score_way` how it tells likelihoods (see `logprobs.ScoreMethod`), `slots` how many requests it works on at once, and
    `parameters` how many its model has, 0 where the server does not tell. `context` is how many tokens its model reads and
    writes at once, 0 where the server does not tell; it is not remembered.
    """

    address: str
    model: str
    api: str
    findings: Mapping[str, Finding] = field(default_factory=dict[str, Finding])
    server: str = ""
    models: tuple[str, ...] = ()
    template: str = ""
    grammar_field: str = ""
    at: float = 0.0
    schema_field: str = ""
    tag_field: str = ""
    score_way: str = ""
    slots: int = 1
    parameters: int = 0
    context: int = field(default=0, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Its fields as JSON values; the findings are at `found`."""
        fields = asdict(self)
        return {"found": fields.pop("findings"), **fields}

    @property
    def program(self) -> Engine:
        """The program that serves it."""
        return PROGRAMS.get(self.server, OTHER)

    def can(self, name: str) -> bool:
        """Whether it was seen to do that."""
        return bool(self.findings.get(name, UNKNOWN))

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The same in the words of the models' protocol."""
        seen: dict[Capability, bool] = {
            "tools": self.can("tools"),
            "required": self.can("required") and self.can("named"),
            "schema": self.can("schema"),
            "grammar": bool(self.grammar_field),
            "free": self.grammar_field == "grammar",
            "tags": bool(self.tag_field),
            "score": bool(self.score_way),
        }
        return frozenset(capability for capability, is_seen in seen.items() if is_seen)

    @property
    def fields(self) -> dict[str, str]:
        """Where it takes what holds its sampling, by the names of `apis.CONSTRAINTS`, and the `engine` that does."""
        return {
            "grammar_field": self.grammar_field, "schema_field": self.schema_field, "tag_field": self.tag_field,
            "engine": self.program.engine,
        }  # fmt: skip

    @property
    def known(self) -> Known:
        """What of it decides how the model is asked."""
        tools = self.findings.get("tools", UNKNOWN)
        return Known(
            self.model, template=self.template, parameters=self.parameters, tools=bool(tools), seen=tools.evidence,
            chats=self.can("chat") or not self.can("completions"),
            completes=self.can("completions"), scores=bool(self.score_way),
        )  # fmt: skip


def recall(address: str, model: str | None, age: float = DAY) -> ServerCapabilities | None:
    """What was seen of a model within the last `age` seconds, None where that is nothing. Without a name, of the only
    model that the server had then."""
    paths = [_path(address, model)] if model else [*_folder().glob("*.json")]
    seen = [one for one in map(_read, paths) if one and one.address == address and 0 <= time.time() - one.at < age]
    fit = [one for one in seen if (one.model == model if model else len(one.models) == 1)]
    return max(fit, key=lambda one: one.at, default=None)


def _read(path: Path) -> ServerCapabilities | None:
    try:
        row = record(json.loads(path.read_text("utf-8")))
        findings = {name: Finding(**record(finding)) for name, finding in record(row.pop("found")).items()}
        fits = row.pop("form", None) == FORM and None not in row.values()
        return ServerCapabilities(findings=findings, models=tuple(row.pop("models")), **row) if fits else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def remember(seen: ServerCapabilities) -> None:
    """Keeps what was seen, in a file of its own that appears whole; where that cannot be, nothing is kept."""
    path = _path(seen.address, seen.model)
    text = json.dumps({"form": FORM, **seen.as_dict(), "context": 0}, ensure_ascii=False)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(text.encode())


def saved(seen: ServerCapabilities) -> str:
    """Until when and where the result of a probe is kept, and how to forget it."""
    path = _path(seen.address, seen.model)
    if not path.exists():
        return f"nothing, since {path} cannot be written"
    until = time.strftime("%Y-%m-%d %H:%M", time.localtime(seen.at + DAY))
    return f"until {until} all your programs ask this model as found here; to forget it, delete {path}"


def _folder() -> Path:
    return cache_dir() / "probes"


def _path(address: str, model: str) -> Path:
    name = hashlib.sha256(f"{address}\n{model}".encode()).hexdigest()[:32]
    return _folder() / f"{name}.json"
