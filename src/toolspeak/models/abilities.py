"""What a server was seen to be able to do, remembered in the user's cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from ..api.payloads import record
from ..files import replacing
from .base import Capability
from .strategy import Known
from .weights import cache_dir

Answer = Literal["yes", "no", "unclear"]

FORM = 3
"""Goes up when what is kept changes its form: what an older program kept is then asked anew."""
DAY = 86400.0
"""Seconds for which what was seen is believed: a server is started again with other settings."""

GRAMMAR_FIELDS: Mapping[str, tuple[str, ...]] = {
    "llama.cpp": ("grammar",),
    "vllm": ("structured_outputs", "guided_grammar"),
    "sglang": ("ebnf",),
    "ollama": (),
    "": ("grammar", "structured_outputs", "guided_grammar", "ebnf"),
}
"""Where servers take a grammar, the newer name first; a server that is not known is asked in each way."""

SCHEMA_FIELDS: Mapping[str, tuple[str, ...]] = {
    "llama.cpp": ("json_schema",),
    "vllm": ("response_format",),
    "sglang": ("response_format",),
    "ollama": (),
    "": ("response_format", "json_schema"),
}
"""Where servers take a JSON Schema beside a prompt."""

ENGINES: Mapping[str, str] = {"llama.cpp": "llama.cpp", "ollama": "llama.cpp", "vllm": "xgrammar", "sglang": "xgrammar"}
"""What servers hold their sampling with, by the names of `schema.portable`."""
TAG_FIELDS: Mapping[str, tuple[str, ...]] = {"vllm": ("response_format",), "sglang": ("response_format",)}
"""Where servers take a structural tag."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a server can do one thing, and what was seen of it."""

    answer: Answer
    evidence: str = ""

    def __bool__(self) -> bool:
        return self.answer == "yes"


UNKNOWN = Finding("unclear", "not asked")


@dataclass(frozen=True, slots=True)
class Abilities:
    """What one model of one server can do: each of `found` by its name, with what was seen.

    `api` is how it is asked, `server` the program where that is known, `template` the model's chat template where
    the server tells it, `grammar_field` where it takes a grammar, `at` when it was asked, in seconds since 1970,
    `schema_field` where it takes a schema beside a prompt, `tag_field` where a structural tag,
    `score_way` how it tells likelihoods (see `likelihood.Telling`), `slots` how many requests it works on at once, and
    `parameters` how many its model has, 0 where the server does not tell.
    """

    address: str
    model: str
    api: str
    found: Mapping[str, Finding] = field(default_factory=dict[str, Finding])
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

    def can(self, name: str) -> bool:
        """Whether it was seen to do that."""
        return bool(self.found.get(name, UNKNOWN))

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
        """Where it takes what holds its sampling, by the names of `apis.HELD`, and the `engine` that does."""
        return {
            "grammar_field": self.grammar_field, "schema_field": self.schema_field, "tag_field": self.tag_field,
            "engine": ENGINES.get(self.server, ""),
        }  # fmt: skip

    @property
    def known(self) -> Known:
        """What of it decides how the model is asked."""
        tools = self.found.get("tools", UNKNOWN)
        return Known(
            self.model, template=self.template, parameters=self.parameters, tools=bool(tools), seen=tools.evidence,
            chats=self.can("chat") or not self.can("completions"),
            completes=self.can("completions"), scores=bool(self.score_way),
        )  # fmt: skip


def recall(address: str, model: str, age: float = DAY) -> Abilities | None:
    """What was remembered of a model within the last `age` seconds, None where that is nothing."""
    try:
        kept = record(json.loads(_path(address, model).read_text("utf-8")))
        found = {name: Finding(**record(finding)) for name, finding in record(kept.pop("found")).items()}
        fits = kept.pop("form", None) == FORM
        told = Abilities(found=found, models=tuple(kept.pop("models")), **kept) if fits else None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if told is None or (told.address, told.model) != (address, model) or not 0 <= time.time() - told.at < age:
        return None
    return told


def remember(abilities: Abilities) -> None:
    """Keeps what was seen, in a file of its own that appears whole; where that cannot be, nothing is kept."""
    path = _path(abilities.address, abilities.model)
    text = json.dumps({"form": FORM, **asdict(abilities)}, ensure_ascii=False)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(text.encode())


def _path(address: str, model: str) -> Path:
    name = hashlib.sha256(f"{address}\n{model}".encode()).hexdigest()[:32]
    return cache_dir() / "probes" / f"{name}.json"
