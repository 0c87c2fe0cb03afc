"""Tool calling for a text model: the prompt describes the tools, and the reply is decoded, both in a dialect.

A plan asks once. The prompt is rendered by the model's own chat template if that supports tools, otherwise by the
dialect. The reply goes through the dialect's decoder as it arrives. Pitfalls:

- The user's stop strings could cut a call, so they are applied to the decoded text.
- Images are removed from the messages before rendering and put back afterwards.
- Control markers in user text are defused in the prompt, and restored in the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from ..errors import UsageError
from ..events import CallStart, Event, Finished, Noted, TextDelta
from ..schema.suggestions import listed
from ..types import Message, Note, Request, Tool, copy_with
from ..wire.decode import Decoder
from ..wire.dialect import Dialect, When
from ..wire.prompt.control_markers import was_broken
from ..wire.reading.marker_restoring import Restorer
from ..wire.render import Rendered, render
from ..wire.turn_heads import INVENTED_TURN
from .attachment_marks import detach, has_parts, put_back
from .attempted_call import CUT
from .calls import reached
from .constrain import constrain, unheld
from .effects import Ask, Plan, Reads
from .end_marks import EndMarks
from .invented_results import InventedResults
from .json_reply import in_words
from .late_tools import apart
from .server_calls import ServerCalls
from .stop_strings import Stops
from .stray_markers import StrayMarkers


def prompted(
    request: Request,
    dialect: Dialect,
    can: Collection[str],
    *,
    template: str | None = None,
    variables: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    ids: Callable[[], str] | None = None,
    raw: bool = False,
) -> Plan[None]:
    """Passes on the events of the reply to a request with tools.

    `template` is the model's own chat template, if that supports tools. `raw`: the model only continues prompts, it
    has no chat API.
    """
    if request.prompt is not None and not request.tools:  # an exact prompt to continue
        yield Ask(request, live=True, recorded=False)
        return
    tools = offered(request)
    if not tools and not raw:
        yield from words(request, dialect, can, ids)
        return
    raw = raw or bool(template)
    check_parts(request, bool(tools), raw)
    request = request if request.schema is None else in_words(request, request.schema)
    request = _with_thinking(request, dialect, template)
    yield _rendered(request, tools, dialect, can, template, variables, now, ids, raw)


def _rendered(
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
    """The effect that asks the model, with the tools described in the dialect."""
    listed, messages = apart(request.messages, tools, request.late)
    messages, parts = detach(messages) if has_parts(messages) else (messages, ())
    rendered = render(messages, listed, dialect, template, request.thinking, now, None, variables, request.choice, raw)
    if parts:
        rendered = replace(rendered, messages=put_back(rendered.messages, parts))
    prompt = rendered.prompt if raw else ""
    callable_too = request.hidden if request.choice in ("auto", "required") else ()
    readable = (*tools, *callable_too)
    decoder = Decoder(dialect, readable, prompt, ids=ids)
    broken = was_broken(rendered.messages) if decoder.restorer is None else True
    decoder.restorer = None
    reads = _read_by(decoder, dialect, readable, request.max_tokens)
    thinking = None if _says_thinking(dialect, template) else request.thinking
    effect = _question(request, rendered, dialect, reads, raw, thinking)
    constrained = constrain(effect.request, request.choice, tools, dialect, can, prompt, bool(template))
    effect = effect if constrained is effect.request else replace(effect, request=constrained)
    free = unheld(constrained, tools)
    effect = replace(effect, read=_with_notes(free, effect.read)) if free else effect
    return replace(effect, read=Restored(effect.read)) if broken and effect.read else effect


def _with_thinking(request: Request, dialect: Dialect, template: str | None) -> Request:
    """The request with as much of its reasoning settings as the prompt can express, which is `thinking` on or off. The
    rest is left for the model's server."""
    if not _says_thinking(dialect, template) or "reasoning_effort" not in request.sampling:
        return request
    sampling = dict(request.sampling)
    effort = sampling.pop("reasoning_effort", None)
    wanted = effort != "none" if effort is not None and request.thinking is None else request.thinking
    return replace(request, sampling=sampling, thinking=wanted)


def _says_thinking(dialect: Dialect, template: str | None) -> bool:
    """Whether the prompt switches reasoning on or off."""
    return bool(template) or _opening_says_thinking(dialect)


@lru_cache(512)
def _opening_says_thinking(dialect: Dialect) -> bool:
    return any(isinstance(part, When) and part.what == "thinking" for part in dialect.speech.opening)


def check_parts(request: Request, tools: bool, text: bool) -> None:
    """Raises UsageError for settings that are impossible for a model whose tools are in its prompt."""
    if request.logprobs is not None and tools:
        raise UsageError("logprobs are not available together with tools: this model writes its calls as text")
    if text and has_parts(request.messages):
        raise UsageError("this model takes text alone, and a message holds an image or another part that is none")


def offered(request: Request) -> tuple[Tool[..., Any], ...]:
    """The tools that may be called in this request. Raises UsageError if the required one is not among them."""
    tools = request.tools or ()
    if request.choice == "none":
        return ()
    if request.choice == "required" and not tools:
        raise UsageError("a call is required, and no tool is offered: give tools=[…] (--tools)")
    if request.choice in ("auto", "required"):
        return tools
    named = tuple(tool for tool in tools if tool.name == request.choice)
    if not named:
        names = listed([tool.name for tool in tools]) or "none"
        raise UsageError(
            f"choice: expected auto, none, required or an offered tool ({names}), received {request.choice!r}"
        )
    return named


def _question(
    request: Request, rendered: Rendered, dialect: Dialect, reads: Reads, raw: bool, thinking: bool | None
) -> Ask:
    """The effect for one request in a dialect, with its reply decoded as it arrives."""
    # The user's stop strings could cut a call, so they are applied to the decoded text.
    if raw:
        changes: dict[str, Any] = {"prompt": rendered.prompt, "stop": rendered.stop}
    else:  # a chat server ends turns itself, and stop strings for raw prompts could cut a text
        changes = {"messages": rendered.messages, "stop": ()}
    sent = copy_with(request, tools=None, hidden=(), choice="auto", thinking=thinking, **changes)
    # A server that ignores stop strings does not end the reply at the labels of the prompt's turns.
    labels = [stop for stop in rendered.stop if stop not in dialect.stop] if raw else []
    reads = _stopped(reads, Stops(labels, INVENTED_TURN)) if labels else reads
    reads = _stopped(reads, Stops(request.stop)) if request.stop else reads
    return Ask(sent, live=True, read=reads, recorded=False)


def _stopped(reads: Reads, stops: Stops) -> Reads:
    """Ends the reply at a stop string in its text."""
    return lambda event: stops.feed(reads(event))


def _with_notes(free: Collection[str], read: Reads | None) -> Reads:
    """Adds a note after each call of these tools: the format of its text was not enforced during sampling."""

    def noted(event: Event | None) -> Iterable[Event]:
        for one in read(event) if read else ():
            yield one
            match one:
                case CallStart(name) if name in free:
                    yield Noted(Note("format-not-held", name))
                case _:
                    pass

    return noted


class Restored:
    """Restores control markers that were broken in the prompt. Who still looks for calls uses `read`, then `restorer`."""

    def __init__(self, read: Reads) -> None:
        self.read, self.restorer = read, Restorer()

    def __call__(self, event: Event | None) -> Iterable[Event]:
        return self.restorer.feed(self.read(event))


def _read_by(decoder: Decoder, dialect: Dialect, tools: Sequence[Tool[..., Any]], limit: int | None) -> Reads:
    """Decodes a model's text with a decoder of the dialect and these tools. `limit` is the request's limit of tokens."""

    def read(event: Event | None) -> Iterable[Event]:
        nonlocal last
        match event:
            case TextDelta(text):
                return served.join(invented.feed(ends.feed(stray.feed(decoder.feed(text)))))
            case Finished():
                last = event
                return ()
            case None:
                events = ends.feed(stray.feed(decoder.close(last.finish in CUT)))
                calls = decoder.state.call_count > 0
                finished = [_finish(e, last, calls, limit) if isinstance(e, Finished) else e for e in events]
                return served.join(invented.feed(finished))
            case _:
                return served.hold(event)

    last = Finished()
    stray, ends, invented, served = StrayMarkers(), EndMarks(), InventedResults(), ServerCalls(dialect.name, tools)
    return read


def _finish(read: Finished, finished: Finished, calls: bool, limit: int | None) -> Finished:
    """The merged finish: the decoder knows about calls, the model about its own limit and its usage. If the model ended
    the reply itself, an incomplete call in it is wrong, not cut."""
    if finished.finish in CUT:
        return finished
    if read.finish == "length" and not reached(limit, finished.usage):
        return Finished("tool_calls" if calls else "stop", finished.usage)
    return Finished(read.finish, finished.usage)


def words(
    request: Request, dialect: Dialect, can: Collection[str], ids: Callable[[], str] | None
) -> Plan[None]:  # fmt: skip
    """A text answer, with earlier calls and results in the conversation rendered in the dialect. Even if no tool may
    be called, a call in the reply is decoded as one and does not become text."""
    if request.schema is not None and "schema" not in can:
        request = in_words(request, request.schema)
    messages, parts = detach(request.messages) if has_parts(request.messages) else (request.messages, ())
    messages_as_text = put_back(render(messages, (), dialect, laid_out=False).messages, parts)
    sent = replace(request, messages=messages_as_text, tools=None, hidden=(), choice="auto")
    unwanted = (*(request.tools or ()), *request.hidden) if request.choice == "none" else ()
    decoded = bool(dialect.thinking or unwanted)
    reads = (
        _read_by(Decoder(dialect, unwanted, ids=ids), dialect, unwanted, request.max_tokens)
        if decoded
        else _read_as_text(request)
    )
    if was_broken(messages_as_text):
        reads = Restored(reads)
    yield Ask(sent, live=True, read=reads, recorded=False)


def _read_as_text(request: Request) -> Reads:
    """Passes the events on, without a mark at the end unless the request scores each token."""
    ends = EndMarks() if request.logprobs is None else None
    return lambda event: () if event is None else ends.feed((event,)) if ends else (event,)


def last_question(messages: Sequence[Message]) -> tuple[str, list[str]]:
    """The last question of the user, and the results since then."""
    results: list[str] = []
    for message in reversed(messages):
        text = text_of(message)
        if message.get("role") == "tool":
            results.insert(0, text)
        elif message.get("role") == "user":
            return text, results
    return "", results


def text_of(message: Message) -> str:
    """The text of a message, with its parts joined."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return content or ""
