"""Tool calling for a model that only writes text: how to ask it, by what it can do.

A model that is scored decides by likelihoods (`choose`, `fill`); any other is shown the tools in its
dialect, and what it writes is read by the same dialect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import reduce
from typing import Any

from ..errors import UsageError
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta
from ..schema.check import check
from ..schema.near import listed
from ..types import Message, Note, Request, Tool, Usage
from ..wire.collect import add_usage
from ..wire.decode import Decoder
from ..wire.markers import was_broken
from ..wire.render import Rendered, render
from ..wire.restoring import Restorer
from ..wire.syntax import Dialect, When
from .choose import choose
from .conclude import conclude
from .effects import Ask, Plan, spending, tell
from .formed import in_words
from .held import held
from .late import apart
from .parts import has_parts, put_back, taken_out
from .several import calls_for
from .stops import Stops
from .stray_markers import StrayMarkers

Reads = Callable[[Event | None], Iterable[Event]]
"""What reads the events of a model's text; None ends it."""


def speak(
    request: Request,
    dialect: Dialect,
    can: Collection[str],
    *,
    template: str | None = None,
    variables: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    ids: Callable[[], str] | None = None,
    raw: bool = False,
    scored: bool = False,
) -> Plan[None]:
    """Tells the events of the reply to a request with tools. `template` is the model's own chat template,
    where that knows tools; `raw` is for a model that continues prompts and answers no conversation; `scored` for one
    whose calls are decided by likelihood."""
    if request.prompt is not None and not request.tools:  # the very bytes to continue
        yield Ask(request, live=True, kept=False)
        return
    tools = offered(request)
    if not tools and not raw:
        yield from _words(request, dialect, can, ids)
        return
    raw = raw or bool(template)
    _speakable(request, bool(tools), raw or scored)
    if tools and scored:
        yield from _weighed(request, tools, dialect, can, ids or _counted())
    else:
        request = request if request.schema is None else in_words(request, request.schema)
        request = _thoughtful(request, dialect, template)
        yield _told(request, tools, dialect, can, template, variables, now, ids, raw)


def _told(
    request: Request,
    tools: Sequence[Tool[..., Any]],
    dialect: Dialect,
    can: Collection[str],
    template: str | None,
    variables: Mapping[str, Any] | None,
    now: datetime | None,
    ids: Callable[[], str] | None,
    raw: bool,
) -> Ask:
    """The question with the tools told in the dialect."""
    listed, messages = apart(request.messages, tools, request.late)
    messages, parts = taken_out(messages) if has_parts(messages) else (messages, ())
    rendered = render(messages, listed, dialect, template, request.thinking, now, None, variables, request.choice, raw)
    if parts:
        rendered = replace(rendered, messages=put_back(rendered.messages, parts))
    prompt = rendered.prompt if raw else ""
    callable_too = request.hidden if request.choice in ("auto", "required") else ()
    reads = _read_by(Decoder(dialect, (*tools, *callable_too), prompt, ids=ids))
    if not raw and was_broken(rendered.messages):  # a decoder sees by itself what was broken in its prompt
        reads = _restored(reads)
    asked = _asked(request, rendered, reads, raw)
    if request.thinking is not None and _says_thinking(dialect, template):
        asked = replace(asked, request=replace(asked.request, thinking=None))
    held_to = held(replace(asked.request, choice=request.choice), tools, dialect, can, prompt, bool(template))
    return replace(asked, request=replace(held_to, choice="auto"))


def _thoughtful(request: Request, dialect: Dialect, template: str | None) -> Request:
    """The request with what the prompt can say of reasoning as `thinking` alone: prompts know some and none. What it
    cannot say is left for the model's server."""
    if not _says_thinking(dialect, template) or "reasoning_effort" not in request.sampling:
        return request
    sampling = dict(request.sampling)
    effort = sampling.pop("reasoning_effort", None)
    asked = effort != "none" if effort is not None and request.thinking is None else request.thinking
    return replace(request, sampling=sampling, thinking=asked)


def _says_thinking(dialect: Dialect, template: str | None) -> bool:
    """Whether the prompt says how much to reason."""
    opening = dialect.speech.opening
    return bool(template) or any(isinstance(part, When) and part.what == "thinking" for part in opening)


def _speakable(request: Request, tools: bool, text: bool) -> None:
    """Raises UsageError for what cannot be had from a model whose tools stand in its prompt."""
    if request.logprobs is not None and tools:
        raise UsageError("logprobs cannot be told together with tools: this model writes its calls as text")
    if text and has_parts(request.messages):
        raise UsageError("this model takes text alone, and a message holds an image or another part that is none")


def offered(request: Request) -> tuple[Tool[..., Any], ...]:
    """The tools that may be called in this request. Raises UsageError when the one demanded is not among them."""
    tools = request.tools or ()
    if request.choice == "none":
        return ()
    if request.choice in ("auto", "required"):
        if request.choice == "required" and not tools:
            raise UsageError("a call is required, and no tool is offered: give tools=[…]")
        return tools
    named = tuple(tool for tool in tools if tool.name == request.choice)
    if not named:
        names = listed([tool.name for tool in tools]) or "none"
        raise UsageError(
            f"choice: expected auto, none, required or an offered tool ({names}), received {request.choice!r}"
        )
    return named


def _asked(request: Request, rendered: Rendered, heard: Reads, raw: bool) -> Ask:
    """One question through a dialect, its answer read as it comes."""
    # The user's stop strings could cut a call: they are held to the text that is read.
    if raw:
        asked = replace(request, tools=None, hidden=(), choice="auto", prompt=rendered.prompt, stop=rendered.stop)
    else:  # a chat server ends a turn by itself, and the stops of a raw prompt could cut a text
        asked = replace(request, tools=None, hidden=(), choice="auto", messages=rendered.messages, stop=())
    if not request.stop:
        return Ask(asked, live=True, read=heard, kept=False)
    stops = Stops(request.stop)
    return Ask(asked, live=True, read=lambda event: stops.feed(heard(event)), kept=False)


def _restored(read: Reads) -> Reads:
    """The same reading, with what was broken in the question whole."""
    restorer = Restorer()
    return lambda event: restorer.feed(read(event))


def _read_by(decoder: Decoder) -> Reads:
    """What reads a model's text by a decoder."""

    def read(event: Event | None) -> Iterable[Event]:
        nonlocal last
        match event:
            case TextDelta(text):
                return stray.feed(decoder.feed(text))
            case Finished():
                last = event
                return ()
            case None:
                events = stray.feed(decoder.close())
                return [_finish(e, last) if isinstance(e, Finished) else e for e in events]
            case _:
                return (event,)

    last = Finished()
    stray = StrayMarkers()
    return read


def _finish(read: Finished, told: Finished) -> Finished:
    """Why a reply ended: the decoder knows of calls, the model of its own limit, and what it spent."""
    finish = told.finish if told.finish in ("length", "content_filter") else read.finish
    return Finished(finish, told.usage)


def _words(
    request: Request, dialect: Dialect, can: Collection[str], ids: Callable[[], str] | None
) -> Plan[None]:  # fmt: skip
    """An answer in words, earlier calls and results told in the dialect. Where none of the tools may be called, a
    call is read as one all the same: it is no text."""
    if request.schema is not None and "schema" not in can:
        request = in_words(request, request.schema)
    messages, parts = taken_out(request.messages) if has_parts(request.messages) else (request.messages, ())
    told = put_back(render(messages, (), dialect, laid_out=False).messages, parts)
    asked = replace(request, messages=told, tools=None, hidden=(), choice="auto")
    unwanted = (*(request.tools or ()), *request.hidden) if request.choice == "none" else ()
    reads = _read_by(Decoder(dialect, unwanted, ids=ids)) if dialect.thinking or unwanted else None
    if was_broken(told):
        reads = _restored(reads or (lambda event: () if event is None else (event,)))
    yield Ask(asked, live=True, kept=False) if reads is None else Ask(asked, live=True, read=reads, kept=False)


def _weighed(
    request: Request,
    tools: Sequence[Tool[..., Any]],
    dialect: Dialect,
    can: Collection[str],
    ids: Callable[[], str],
) -> Plan[None]:
    """A decision by likelihood: which tool, with what; or words."""
    question, results = asked_last(request.messages)
    if results and request.choice == "auto":
        if request.schema is not None:
            yield from _words(request, dialect, can, ids)
            return
        reply = yield from conclude(question, results[0] if len(results) == 1 else "\n".join(results))
        said = Stops(request.stop).feed([TextDelta(reply.text), Finished("stop", reply.usage)])
        yield from tell(*(Noted(note) for note in reply.notes), *said)
        return
    spent: list[Usage] = []
    choice = yield from choose(tools, question, may_reply=request.choice == "auto", ranked=request.ranked)
    if choice is None:
        yield from _words(request, dialect, can, ids)
        return
    tool = choice.tool
    calls, notes = yield from spending(calls_for(tool, question, several=request.parallel), spent)
    problems = [problem for arguments in calls for problem in check(tool, arguments)]
    unfilled = tuple(Note("unfilled", problem.message) for problem in problems)
    if request.choice == "auto" and (problems or not choice.stands(notes)):
        # No tool is called on arguments that the request does not hold.
        yield from tell(*(Noted(note) for note in unfilled))
        yield from _words(request, dialect, can, ids)
        return
    events: list[Event] = []
    for arguments in calls:
        events += [CallStart(tool.name, ids()), ArgumentsDelta(json.dumps(arguments, ensure_ascii=False)), CallEnd()]
    yield from tell(
        *events,
        *(Noted(note) for note in (*notes, *unfilled, *_unsampled(request))),
        Finished("tool_calls", reduce(add_usage, spent, Usage())),
    )


def _unsampled(request: Request) -> tuple[Note, ...]:
    """What a decision by likelihood makes no use of."""
    given = {"temperature": request.temperature, "seed": request.seed, "max_tokens": request.max_tokens}
    names = [name for name, value in given.items() if value is not None] + sorted(request.sampling)
    return (Note("not-sampled", f"decided by likelihood, without {', '.join(names)}"),) if names else ()


def asked_last(messages: Sequence[Message]) -> tuple[str, list[str]]:
    """What the user last asked, and the results that came since."""
    results: list[str] = []
    for message in reversed(messages):
        text = text_of(message)
        if message.get("role") == "tool":
            results.insert(0, text)
        elif message.get("role") == "user":
            return text, results
    return "", results


def text_of(message: Message) -> str:
    """The text of a message, its parts joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""


def _counted() -> Callable[[], str]:
    count = 0

    def mint() -> str:
        nonlocal count
        count += 1
        return f"call_{count}"

    return mint
