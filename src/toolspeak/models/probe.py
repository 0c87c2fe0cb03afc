"""Finding out what a server can do, by asking it: a handful of small requests, each bounded, side by side.

A server that takes a field need not hold to it: where it says that it does, it is asked for something that the model
would not write by itself. What one request is refused, or gets no answer to, says something of that one thing alone.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from ..api.failure import excerpt
from ..api.payloads import record, records
from ..dialects import get
from ..errors import BadRequest, KeyRefused, ModelError, ModelUnreachable, UsageError
from ..events import ArgumentsDelta, Event
from ..types import Message, Reply, Request, Tool
from ..wire.collect import collect
from ..wire.grammar import grammar
from .abilities import GRAMMAR_FIELDS, SCHEMA_FIELDS, TAG_FIELDS, Abilities, Finding, recall, remember
from .base import Capability
from .exchange import Timeouts
from .http import Http
from .likelihood import find_way
from .servers import parameters_of, program
from .text_calls import Listener, own_dialect

FIRST, EACH = 90.0, 60.0
"""Seconds for the first request, which may have to wait for a model to be loaded, and for each of the others."""
ABREAST = 3
"""Requests at once: a server of one's own may answer them one after another."""
LONGEST = 96
"""Tokens of the longest reply that is asked for."""

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Tool[..., Any] = Tool("get_weather", "The weather in a city, now.", CITY)
CLOCK: Tool[..., Any] = Tool("get_time", "The time in a city, now.", CITY)
WORD = "zq7"
SCHEMA = {"type": "object", "properties": {WORD: {"const": "kx4"}}, "required": [WORD], "additionalProperties": False}
QUESTION = "What is the weather in Paris? Use the tool."
HELLO = "Say hello to me in one short sentence."

NAMES = (
    "chat", "tools", "streamed tools", "required", "named", "parallel", "schema", "grammar", "tags", "system", "stop",
    "usage", "logprobs", "score", "completions", "embeddings", "template",
)  # fmt: skip
"""What is asked, in the order in which it is shown."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A reply, and the events that told it."""

    reply: Reply
    events: Sequence[Event] = field(default_factory=list[Event])

    @property
    def shown(self) -> str:
        """The reply in few words."""
        if calls := self.reply.calls:
            return "called " + ", ".join(f"{call.name}({excerpt(call.json, 60)})" for call in calls[:3])
        return f"said {excerpt(self.reply.text, 60)!r}" if self.reply.text else f"said nothing ({self.reply.finish})"


Judge = Callable[[Heard], Finding]


async def probe(model: Http) -> Abilities:
    """What a server can do. Raises ModelError where it cannot be asked at all, UnknownModel where it has several
    models and none was named."""
    name = model.model or await model.only_model()
    asked = model.able([*model.capabilities, "tools", "schema", "prompt"])
    asked.model, asked.retries, asked.timeouts = name, 1, Timeouts(5.0, FIRST, EACH)
    found, plain = await _first(asked)
    asked.timeouts = Timeouts(5.0, EACH, EACH)
    abreast = asyncio.Semaphore(ABREAST)

    async def one(work: Awaitable[Finding]) -> Finding:
        async with abreast:
            return await work

    work = _questions(asked, chats=bool(found["chat"]))
    server, template, slots = await program(asked)
    parameters = await parameters_of(asked) if server == "llama.cpp" else 0
    fields = GRAMMAR_FIELDS[server] if model.api in ("openai", "completions") else ()
    grammars = [_asked(*_by_grammar(asked, found, name)) for name in fields]
    beside = SCHEMA_FIELDS[server] if found["completions"] else ()
    schemas = [_asked(*_by_schema(asked, name)) for name in beside]
    tags = [_asked(*_by_tag(asked, found, name)) for name in TAG_FIELDS.get(server, ())]
    told, held, fitting, tagged, models, (way, seen) = await asyncio.gather(
        asyncio.gather(*(one(item) for item in work.values())),
        asyncio.gather(*(one(item) for item in grammars)),
        asyncio.gather(*(one(item) for item in schemas)),
        asyncio.gather(*(one(item) for item in tags)),
        _models(asked),
        find_way(asked),
    )
    found |= dict(zip(work, told, strict=True))
    found |= _grammar(fields, held)
    found["tags"] = tagged[0] if tagged else Finding("no", "not asked: the server is not known to take any")
    found["template"] = _yes(bool(template), "told by the server" if template else "not told")
    found["tools"] = _tools(found, plain)
    found["score"] = _yes(bool(way), seen)
    grammar_field, schema_field = _first_yes(fields, held), _first_yes(beside, fitting)
    return Abilities(
        model.address.shown, name, model.api, {name: found[name] for name in NAMES if name in found},
        server, models, template, grammar_field, time.time(),
        schema_field=schema_field, tag_field=_first_yes(TAG_FIELDS.get(server, ()), tagged), score_way=way or "", slots=slots,
        parameters=parameters,
    )  # fmt: skip


async def _first(model: Http) -> tuple[dict[str, Finding], Heard | None]:
    """Whether it answers a conversation, and continues a prompt: what everything else stands upon."""
    found: dict[str, Finding] = {}
    plain: Heard | None = None
    refused: ModelError | None = None
    try:
        plain = await _ask(model, Request(_said(QUESTION), max_tokens=16))
        found["chat"] = Finding("yes", plain.shown)
        found["usage"] = _counted(plain)
    except (KeyRefused, ModelUnreachable):
        raise
    except UsageError as error:  # an API that continues prompts alone
        found["chat"] = Finding("no", str(error))
    except ModelError as error:
        refused = error
        found["chat"] = _refused(error)
    try:
        found["completions"] = await _asked(model.completing(), Request(prompt="1, 2, 3, 4,", max_tokens=4), _spoke)
    except UsageError as error:
        found["completions"] = Finding("no", str(error))
    if refused and not found["completions"]:
        raise refused
    return found, plain


def _questions(model: Http, *, chats: bool) -> dict[str, Awaitable[Finding]]:
    """What is asked side by side, by its name."""
    work: dict[str, Awaitable[Finding]] = {"embeddings": _embeddings(model)}
    if not chats:
        return work
    tools, both = (WEATHER,), (WEATHER, CLOCK)
    table: dict[str, tuple[Request, Judge]] = {
        "streamed tools": (Request(_said(QUESTION), tools, max_tokens=LONGEST), _streamed),
        "required": (Request(_said(HELLO), tools, choice="required", max_tokens=LONGEST), _called("get_weather")),
        "named": (Request(_said(QUESTION), both, choice="get_time", max_tokens=LONGEST), _called("get_time")),
        "parallel": (
            Request(_said("What is the weather in Paris and in Rome? Ask for both at once."), both, max_tokens=LONGEST),
            _several,
        ),
        "schema": (Request(_said(HELLO), schema=SCHEMA, max_tokens=32), _fits),
        "system": (Request([_system("Answer everything with the one word zebra."), *_said("Hello")], max_tokens=16), _followed),
        "stop": (Request(_said("Write exactly this line: alpha beta gamma delta"), stop=("gamma",), max_tokens=32), _stopped),
        "logprobs": (Request(_said(HELLO), logprobs=1, max_tokens=4), _weighed),
    }  # fmt: skip
    return work | {name: _asked(model, request, judge) for name, (request, judge) in table.items()}


async def _asked(model: Http, request: Request, judge: Judge) -> Finding:
    """What one request shows; a refusal and a silence show something too."""
    try:
        return judge(await _ask(model, request))
    except UsageError as error:  # the API has no word for it
        return Finding("no", str(error))
    except ModelError as error:
        return _refused(error)


async def _ask(model: Http, request: Request) -> Heard:
    listener = Listener(request, own_dialect(None, model.model))
    events: list[Event] = []
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            events += listener.hear(event)
    return Heard(collect(events), events)


def _refused(error: ModelError) -> Finding:
    said = excerpt(error.reason or str(error), 160)
    if isinstance(error, BadRequest):
        return Finding("no", said)
    return Finding("unclear", said)


def _said(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


def _system(text: str) -> Message:
    return {"role": "system", "content": text}


# ------------------------------------------------------------------ what a reply shows


def _yes(seen: bool, evidence: str) -> Finding:
    return Finding("yes" if seen else "no", evidence)


def _spoke(heard: Heard) -> Finding:
    return Finding("yes" if heard.reply.text else "unclear", heard.shown)


def _counted(heard: Heard) -> Finding:
    usage = heard.reply.usage
    told = f"{usage.prompt_tokens} and {usage.completion_tokens} tokens"
    return _yes(usage.prompt_tokens > 0, told if usage.prompt_tokens else "no tokens were told")


def _streamed(heard: Heard) -> Finding:
    pieces = sum(isinstance(event, ArgumentsDelta) for event in heard.events)
    if not heard.reply.calls:
        tokens = heard.reply.usage.prompt_tokens
        return Finding("unclear", f"{heard.shown}; {tokens} tokens read" if tokens else heard.shown)
    if any(note.rule == "call-in-text" for note in heard.reply.notes):
        return Finding("no", f"the server left the call in the text, where it can be read: {heard.shown}")
    return _yes(pieces > 1, f"{heard.shown}, in {pieces} piece{'s' * (pieces != 1)}")


def _called(name: str) -> Judge:
    def judge(heard: Heard) -> Finding:
        calls = heard.reply.calls
        if not calls and heard.reply.finish == "length":
            return Finding("unclear", heard.shown)
        return _yes(bool(calls) and all(call.name == name for call in calls), heard.shown)

    return judge


def _several(heard: Heard) -> Finding:
    return Finding("yes" if len(heard.reply.calls) > 1 else "unclear", heard.shown)


def _fits(heard: Heard) -> Finding:
    try:
        return _yes(json.loads(heard.reply.text) == {WORD: "kx4"}, heard.shown)
    except ValueError:
        return Finding("no", heard.shown)


def _followed(heard: Heard) -> Finding:
    followed = "zebra" in heard.reply.text.lower()
    return Finding("yes", f"taken{' and followed' if followed else ', not followed'}: {heard.shown}")


def _stopped(heard: Heard) -> Finding:
    text = heard.reply.text
    if "gamma" in text:
        return Finding("no", heard.shown)
    return Finding("yes" if "alpha" in text else "unclear", heard.shown)


def _weighed(heard: Heard) -> Finding:
    count = len(heard.reply.logprobs)
    return _yes(bool(count), f"of {count} tokens" if count else "taken, and none came")


def _by_grammar(model: Http, found: dict[str, Finding], name: str) -> tuple[Http, Request, Judge]:
    """One way of asking for a grammar."""
    wanted = f"{WORD}-{len(name)}"
    request = Request(_said(HELLO), grammar=f'root ::= "{wanted}"', max_tokens=16)
    asked, request = _in_field(model, found, request, "grammar", grammar_field=name)
    return asked, request, lambda heard: _yes(heard.reply.text.strip() == wanted, heard.shown)


def _by_schema(model: Http, name: str) -> tuple[Http, Request, Judge]:
    """One way of asking for a schema beside a prompt."""
    request = Request(prompt="Hello", schema=SCHEMA, max_tokens=32)
    return model.able(model.capabilities, schema_field=name).completing(), request, _fits


def _by_tag(model: Http, found: dict[str, Finding], name: str) -> tuple[Http, Request, Judge]:
    """One way of asking for a structural tag: that of a call, for it is calls that are asked for so."""
    tool: Tool[..., Any] = Tool(f"{WORD}_tool", "A tool.", SCHEMA)
    tag = record(grammar(get("hermes"), [tool], "required", "structural_tag"))
    request = Request(_said(HELLO), tag=tag, max_tokens=LONGEST)
    asked, request = _in_field(model, found, request, "tags", tag_field=name)
    return asked, request, lambda heard: _yes(tool.name in heard.reply.text, heard.shown)


def _in_field(
    model: Http, found: dict[str, Finding], request: Request, capability: Capability, **field: str
) -> tuple[Http, Request]:
    """What asks for something that the server takes in this field, if it does; without a conversation where it has none."""
    if not found["chat"]:
        model, request = model.completing(), replace(request, prompt="Hello", messages=())
    return model.able({capability, *model.capabilities}, **field), request


def _first_yes(fields: Sequence[str], findings: Sequence[Finding]) -> str:
    return next((name for name, finding in zip(fields, findings, strict=True) if finding), "")


def _grammar(fields: Sequence[str], held: Sequence[Finding]) -> dict[str, Finding]:
    for name, finding in zip(fields, held, strict=True):
        if finding:
            return {"grammar": Finding("yes", f"held to, in the field {name}")}
    unclear = next((finding for finding in held if finding.answer == "unclear"), None)
    return {
        "grammar": unclear or Finding("no", f"none of {', '.join(fields)} is held to" if fields else "the API has none")
    }


def _tools(found: dict[str, Finding], plain: Heard | None) -> Finding:
    """Whether tools reach the model: calls came, or at least the prompt has grown."""
    asked = [found[name] for name in ("streamed tools", "named", "required", "parallel") if name in found]
    for finding in asked:
        if "called " in finding.evidence:
            return Finding("yes", finding.evidence)
    if not asked:
        return Finding("no", "it answers no conversation")
    first = asked[0]
    before = plain.reply.usage.prompt_tokens if plain else 0
    read = first.evidence.rpartition("; ")[2].removesuffix(" tokens read")
    if first.answer == "unclear" and before and read.isdigit():
        more = int(read) - before
        if more > 8:
            return Finding("yes", f"the model reads them ({more} more tokens), though it called none")
        return Finding("no", "they are taken and dropped: the model reads no more tokens than without")
    return first


# ------------------------------------------------------------------ what a server tells of itself


async def _models(model: Http) -> tuple[str, ...]:
    try:
        return tuple(await model.models())
    except (ModelError, UsageError):
        return ()


async def _embeddings(model: Http) -> Finding:
    if model.api not in ("openai", "completions"):
        return Finding("unclear", "not asked: it is no part of this API")
    try:
        told = await model.fetch("/embeddings", {"model": model.model, "input": "hello"}, seconds=EACH)
    except ModelError as error:
        return _refused(error)
    rows = records(told.get("data"))
    return _yes(bool(rows and rows[0].get("embedding")), "they come" if rows else "none came")


async def abilities(model: Http, *, anew: bool = False) -> Abilities:
    """What the server can do, as it was found within a day, else by a probe, which is remembered."""
    name = model.model or await model.only_model()
    if not anew and (known := recall(model.address.shown, name)):
        return known
    known = await probe(model)
    await asyncio.to_thread(remember, known)
    return known
