"""Finds out what a server can do, by a handful of small, bounded, concurrent requests.

A server that accepts a field may still ignore it. So the probe requests something that the model would not write by
itself. If a request is refused or not answered, this is evidence about its one feature only.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ...api.json_stream import record, records
from ...api.upstream_errors import excerpt
from ...dialects import get
from ...errors import BadRequest, KeyRefused, ModelError, ModelUnreachable, UsageError
from ...events import ArgumentsDelta, Event
from ...types import Message, Request, Tool
from ...wire.grammar import grammar
from ...wire.reading.collect import collect
from ..calls_in_text import Listener
from ..http import Http
from ..http.apis import able_by
from ..http.timeouts import Timeouts
from ..offload import offloaded
from ..strategy import by_its_name
from .capabilities import Finding, ServerCapabilities, recall, remember
from .logprob_scorer import find_score_method
from .self_description import described
from .tool_evidence import CLOCK, WEATHER, ProbeReply, tools_reach

T = TypeVar("T")
FIRST, EACH = 90.0, 60.0
"""Seconds for the first request, which may have to wait for a model to be loaded, and for each of the others."""
WHOLE = 180.0
"""Seconds after which a probe ends: a slow server would be busy for many minutes. A model that is given longer than usual to
begin a reply is given as many times these three."""
SLOW = Finding("unclear", "not found out: the server answers too slowly")
ABREAST = 3
"""Requests at once: a server of one's own may answer them one after another."""
LONGEST = 96
"""Tokens of the longest reply that is asked for."""
ROOM = 64
"""Tokens for an object that fits SCHEMA: its grammar allows blanks between all its parts, and weak models write many."""

WORD = "zq7"
SCHEMA = {"type": "object", "properties": {WORD: {"const": "kx4"}}, "required": [WORD], "additionalProperties": False}
QUESTION = "What is the weather in Paris? Use the tool."
ZEBRA: Message = {"role": "system", "content": "Answer everything with the one word zebra."}
HELLO = "Say hello to me in one short sentence."

NAMES = (
    "chat", "tools", "streamed tools", "required", "named", "parallel", "schema", "grammar", "tags", "system", "stop",
    "usage", "logprobs", "score", "completions", "embeddings", "template",
)  # fmt: skip
"""What is asked, in the order in which it is shown."""
DECISIVE = frozenset(("streamed tools", "system", "stop"))
"""Those that are asked first: they show whether tools reach the model, and whether the server's counts depend on the text."""


Judge = Callable[[ProbeReply], Finding]
Decided = Callable[[ServerCapabilities], Awaitable[None]]


async def probe(model: Http, decided: Decided | None = None) -> ServerCapabilities:
    """What a server can do; `decided` gets what is known as soon as that shows whether tools reach the model. Raises
    ModelError where it cannot be asked at all, UnknownModel where it has several models and none was named."""
    name = model.model or await model.only_model()
    server = model.able([*model.capabilities, "tools", "schema", "prompt"])
    patience = max(1.0, model.timeouts.first / Timeouts().first)
    server.model, server.retries, server.timeouts = name, 1, Timeouts(5.0, FIRST * patience, EACH * patience)
    server.in_pieces = True
    one = _InTime(asyncio.get_running_loop().time() + WHOLE * patience).one
    findings, plain = await _first(server)
    server.timeouts = Timeouts(5.0, EACH * patience, EACH * patience)
    seen, chats = await described(server), bool(findings["chat"])
    replies: dict[str, ProbeReply] = {}
    work = _work(server, replies, chats=chats)

    async def answers(names: Collection[str]) -> dict[str, Finding]:
        rows = await asyncio.gather(*(one(work[name], SLOW) for name in names))
        return dict(zip(names, rows, strict=True))

    findings["template"] = _yes(bool(seen.template), "told by the server" if seen.template else "not told")
    findings |= await answers(sorted(DECISIVE & work.keys()))
    if decided:
        await decided(replace(seen, findings={**findings, "tools": tools_reach(findings, replies, plain)}))

    async def enforced(option: str, fields: Sequence[str]) -> tuple[str, Finding]:
        trials = (one(partial(_in_field, server, option, field, chats), SLOW) for field in fields)
        return _enforced(fields, await asyncio.gather(*trials))

    by_name, by_grammar, by_schema, by_tag, (way, score) = await asyncio.gather(
        answers(sorted(work.keys() - findings.keys())),
        enforced("grammar_field", seen.program.grammar if model.api in ("openai", "completions") else ()),
        enforced("schema_field", seen.program.schema if findings["completions"] else ()),
        enforced("tag_field", seen.program.tag),
        one(partial(find_score_method, server), (None, SLOW)),
    )
    findings |= by_name | {"grammar": by_grammar[1], "tags": by_tag[1]}
    findings["tools"] = tools_reach(findings, replies, plain)
    findings["score"] = score
    return replace(
        seen, findings={name: findings[name] for name in NAMES if name in findings}, at=time.time(), score_way=way or "",
        grammar_field=by_grammar[0], schema_field=by_schema[0], tag_field=by_tag[0],
    )  # fmt: skip


class _InTime:
    """Asks a few questions at once, none after the time `due`."""

    def __init__(self, due: float) -> None:
        self._abreast = asyncio.Semaphore(ABREAST)
        self._due = due

    async def one(self, ask: Callable[[], Awaitable[T]], late: T) -> T:
        try:
            async with asyncio.timeout_at(self._due), self._abreast:
                await asyncio.sleep(0)  # nothing is sent after that time
                return await ask()
        except TimeoutError:
            return late


def _work(server: Http, replies: dict[str, ProbeReply], *, chats: bool) -> dict[str, Callable[[], Awaitable[Finding]]]:
    """The questions that have one finding each, by its name; their replies go to `replies`."""

    def keeping(name: str, judge: Judge) -> Judge:
        def judged(answer: ProbeReply) -> Finding:
            replies[name] = answer
            return judge(answer)

        return judged

    work: dict[str, Callable[[], Awaitable[Finding]]] = {"embeddings": partial(_embeddings, server)}
    for name, (request, judge) in _questions().items() if chats else ():
        work[name] = partial(_finding, server, request, keeping(name, judge))
    return work


async def _first(model: Http) -> tuple[dict[str, Finding], ProbeReply | None]:
    """Whether it answers a conversation, and continues a prompt: what everything else stands upon."""
    findings: dict[str, Finding] = {}
    plain = refused = None
    try:
        plain = await _ask(model, Request(_user(QUESTION), max_tokens=16))
        findings["chat"] = Finding("yes", plain.brief)
        findings["usage"] = _counted(plain)
    except (KeyRefused, ModelUnreachable):
        raise
    except (ModelError, UsageError) as error:  # the latter for an API that continues prompts alone
        refused = error
        findings["chat"] = _refused(error)
    try:
        findings["completions"] = await _finding(
            model.completing(), Request(prompt="1, 2, 3, 4,", max_tokens=4), _spoke
        )
    except UsageError as error:
        findings["completions"] = _refused(error)
    if isinstance(refused, ModelError) and not findings["completions"]:
        raise refused
    return findings, plain


def _questions() -> dict[str, tuple[Request, Judge]]:
    """What is asked side by side in conversations, by its name, and who judges the reply."""
    tools, both = (WEATHER,), (WEATHER, CLOCK)
    return {
        "streamed tools": (Request(_user(QUESTION), tools, max_tokens=LONGEST), _streamed),
        "required": (Request(_user(HELLO), tools, choice="required", max_tokens=LONGEST), _called("get_weather")),
        "named": (Request(_user(QUESTION), both, choice="get_time", max_tokens=LONGEST), _called("get_time")),
        "parallel": (
            Request(_user("What is the weather in Paris and in Rome? Ask for both at once."), both, max_tokens=LONGEST),
            _several,
        ),
        "schema": (Request(_user(HELLO), schema=SCHEMA, max_tokens=ROOM), _fits),
        "system": (Request([ZEBRA, *_user("Hello")], max_tokens=16), _followed),
        "stop": (Request(_user("Write exactly this line: alpha beta gamma delta"), stop=("gamma",), max_tokens=32), _stopped),
        "logprobs": (Request(_user(HELLO), logprobs=1, max_tokens=4), _scored),
    }  # fmt: skip


async def _finding(model: Http, request: Request, judge: Judge) -> Finding:
    """What one request shows; a refusal and a silence show something too."""
    try:
        return judge(await _ask(model, request))
    except (ModelError, UsageError) as error:
        return _refused(error)


async def _ask(model: Http, request: Request) -> ProbeReply:
    listener = Listener(request, by_its_name(model.model))
    events: list[Event] = []
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            events += await offloaded(listener.cost(event), listener.hear, event)
    return ProbeReply(collect(events), events)


def _refused(error: ModelError | UsageError) -> Finding:
    """What an error says of the thing that was asked for; a UsageError, that the API has no word for it."""
    evidence = excerpt((error.reason if isinstance(error, ModelError) else "") or str(error), 160)
    return Finding("no" if isinstance(error, BadRequest | UsageError) else "unclear", evidence)


def _user(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


# ------------------------------------------------------------------ what a reply shows


def _yes(seen: bool, evidence: str) -> Finding:
    return Finding("yes" if seen else "no", evidence)


def _spoke(answer: ProbeReply) -> Finding:
    return Finding("yes" if answer.reply.text else "unclear", answer.brief)


def _counted(answer: ProbeReply) -> Finding:
    usage = answer.reply.usage
    counts = f"{usage.prompt_tokens} and {usage.completion_tokens} tokens"
    return _yes(usage.prompt_tokens > 0, counts if usage.prompt_tokens else "no tokens were told")


def _streamed(answer: ProbeReply) -> Finding:
    pieces = sum(isinstance(event, ArgumentsDelta) for event in answer.events)
    if not answer.reply.calls:
        tokens = answer.reply.usage.prompt_tokens
        return Finding("unclear", f"{answer.brief}; {tokens} tokens read" if tokens else answer.brief)
    if {call.name for call in answer.reply.calls} != {WEATHER.name}:
        return Finding("no", f"{WEATHER.name} was offered, and it {answer.brief}")
    if any(note.rule == "call-in-text" for note in answer.reply.notes):
        return Finding("no", f"the server left the call in the text, where it can be read: {answer.brief}")
    return _yes(pieces > 1, f"{answer.brief}, in {pieces} piece{'s' * (pieces != 1)}")


def _called(name: str) -> Judge:
    def judge(answer: ProbeReply) -> Finding:
        calls = answer.reply.calls
        if not calls and answer.reply.finish == "length":
            return Finding("unclear", answer.brief)
        right = {call.name for call in calls} == {name}
        return _yes(right, answer.brief if right else f"a call of {name} was required, and it {answer.brief}")

    return judge


def _several(answer: ProbeReply) -> Finding:
    several = len(answer.reply.calls) > 1
    return Finding("yes", answer.brief) if several else Finding("unclear", f"asked for two calls, it {answer.brief}")


def _fits(answer: ProbeReply) -> Finding:
    text = answer.reply.text.strip()
    try:
        fits = json.loads(text) == {WORD: "kx4"}
    except ValueError:
        fits = False
        if answer.reply.finish == "length" and text.startswith("{"):
            return Finding("unclear", f"cut before its end: it {answer.brief}")
    return _yes(fits, answer.brief if fits else f"not held to the schema, it {answer.brief}")


def _followed(answer: ProbeReply) -> Finding:
    if "zebra" in answer.reply.text.lower():
        return Finding("yes", f"followed: it {answer.brief}")
    return Finding("unclear", f"taken without an error, and not followed: it {answer.brief}")


def _stopped(answer: ProbeReply) -> Finding:
    text = answer.reply.text
    if "gamma" in text:
        return Finding("no", f"it wrote the stop string: {answer.brief}")
    return Finding("yes" if "alpha" in text else "unclear", answer.brief)


def _scored(answer: ProbeReply) -> Finding:
    count = len(answer.reply.logprobs)
    return _yes(bool(count), f"of {count} tokens" if count else "taken, and none came")


def _with_grammar(field: str) -> tuple[Request, Judge]:
    wanted = f"{WORD}-{len(field)}"
    request = Request(_user(HELLO), grammar=f'root ::= "{wanted}"', max_tokens=16)
    return request, lambda answer: _yes(answer.reply.text.strip() == wanted, answer.brief)


def _with_schema(_: str) -> tuple[Request, Judge]:
    return Request(prompt="Hello", schema=SCHEMA, max_tokens=ROOM), _fits


def _with_tag(_: str) -> tuple[Request, Judge]:
    """The structural tag of a call, since tags are used for calls."""
    tool: Tool[..., Any] = Tool(f"{WORD}_tool", "A tool.", SCHEMA)
    tag = record(grammar(get("hermes"), [tool], "required", "structural_tag"))
    request = Request(_user(HELLO), tag=tag, max_tokens=LONGEST)
    return request, lambda answer: _yes(tool.name in answer.reply.text, answer.brief)


CONSTRAINED = {"grammar_field": _with_grammar, "schema_field": _with_schema, "tag_field": _with_tag}
"""The request for each constraint, by the option that names the server's field, and the judge of its reply."""


def _in_field(model: Http, option: str, field: str, chats: bool) -> Awaitable[Finding]:
    """Whether the server enforces the constraint in this field. A server without a conversation continues a prompt."""
    request, judge = CONSTRAINED[option](field)
    if not chats or request.prompt is not None:
        model, request = model.completing(), replace(request, prompt="Hello", messages=())
    return _finding(model.able(model.capabilities | able_by({option: field}), **{option: field}), request, judge)


def _enforced(fields: Sequence[str], seen: Sequence[Finding]) -> tuple[str, Finding]:
    """The first of these fields that the server enforces, "" for none, and what was seen."""
    if works := next((field for field, finding in zip(fields, seen, strict=True) if finding), ""):
        return works, Finding("yes", f"held to, in the field {works}")
    none = f"none of {', '.join(fields)} is held to" if fields else "not asked: no field for it is known"
    return "", next((finding for finding in seen if finding.answer == "unclear"), Finding("no", none))


async def _embeddings(model: Http) -> Finding:
    if model.api not in ("openai", "completions"):
        return Finding("unclear", "not asked: it is no part of this API")
    try:
        body = await model.fetch("/embeddings", {"model": model.model, "input": "hello"}, seconds=EACH)
    except ModelError as error:
        return _refused(error)
    rows = records(body.get("data"))
    return _yes(any(row.get("embedding") for row in rows[:1]), "they come" if rows else "none came")


async def server_capabilities(model: Http, *, anew: bool = False, decided: Decided | None = None) -> ServerCapabilities:
    """What the server can do, as it was found within a day, else by a probe, which is remembered; see `probe`."""
    name = model.model or await model.only_model()
    if not anew and (known := recall(model.address.public, name)):
        return known
    known = await probe(model, decided)
    await asyncio.to_thread(remember, known)
    return known
