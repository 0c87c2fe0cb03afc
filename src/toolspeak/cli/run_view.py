"""Shows one run of a model while it happens: the answer, each call and its result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

import click

from ..api.tool_errors import error_text
from ..drive import Done, iterate_sync, run_sync
from ..errors import ApprovalNeeded, NotApproved
from ..events import ArgumentsDelta, CallEnd, CallResult, CallStart, Event, Finished, Noted, TextDelta, ThoughtDelta
from ..plan.calls import answer as answer_message
from ..plan.loop import loop
from ..schema.phrases import clipped
from ..tool_results import jsonable
from ..types import Message, Note, Reply
from ..verbs import Options, Prompt, job
from ..wire.reading.doubtful import SUPERSEDED
from .exit_codes import FAILED, LIMITED
from .terminal import Out, Progress, json_line

if TYPE_CHECKING:
    from ..policy.policy import Decision


def answer(prompt: Prompt, tools: Any, show: Show, **options: Unpack[Options]) -> Reply:
    """Run the tool loop to its end, passing its events to `show`, and return the reply."""
    task = run_sync(job(prompt, tools, options).ready())
    return watch(task.play(loop(task.request, task.limits)), show)


def watch(run: AsyncGenerator[Event | Done[Reply], None], show: Show) -> Reply:
    """Pass the events of a run to `show`, and return the reply."""
    events = cast("Generator[Event | Done[Reply]]", iterate_sync(run))
    try:
        show.progress.waiting()
        for event in events:
            if isinstance(event, Done):
                show.end()
                return event.value
            show.event(event)
    finally:
        show.progress.ready()
        events.close()  # closing the generator stops the model
    raise AssertionError("a run ends with its reply")


STOPS = ("limit-steps", "limit-calls", "limit-repeats")
"""Notes after which the model is asked once more, and its calls are not run."""
HINTS = ("like-a-call", "tools-dropped", "invented-result", "invented-turn")
"""Notes that say why a turn has no call, or less text than the model wrote."""


INCOMPLETE = ("limit", "length", "content_filter")
"""How a reply ends that is not the whole answer."""


class Show:
    """Prints the events of a run. Without `out` it prints no answer.

    Unless `live`, text is collected until the run ends: text before a call is not the answer, nor is a reply that is asked
    again, and only what follows shows that. Both are printed to standard error.
    """

    def __init__(self, out: Out | None, *, live: bool, asks: bool = False, rest: str = "--json has all of it") -> None:
        self.out = out
        self.live = live
        self.asks = asks  # a question about each call follows: no spinner may overwrite it
        self.progress = Progress(rest)
        self.text = ""
        self.answers: list[str] = []
        """The texts of turns without calls, unless `live`."""
        self.name = ""
        self.id = ""
        self.arguments = ""
        self.printed: dict[str, str] = {}
        """The calls of this turn that were printed, by their ids."""
        self.calls = False
        self.hints: list[str] = []
        self.stopped = False

    def event(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._text(text)
            case ThoughtDelta():
                self.progress.waiting()
            case CallStart():
                self.name, self.id, self.arguments, self.calls = event.name, event.id, "", True
            case ArgumentsDelta(json=json):
                self.arguments += json
            case CallEnd():
                self._call_ends(event)
            case CallResult(result=result) if isinstance(result.error, ApprovalNeeded):
                pass
            case CallResult(result=result):
                self.progress.result(str(result.error or result.text), failed=result.error is not None)
                self.progress.waiting()
            case Noted(note=note):
                self._noted(note)
            case Finished():
                self._turn_ends()
            case _:
                pass

    def _call_ends(self, end: CallEnd) -> None:
        self._end_line()
        self._note_text()
        self.printed[end.id or self.id] = clipped(f"{self.name} {self.arguments}", 100)
        if not self.stopped:  # such a call is not run
            self.progress.call(self.name, self.arguments)

    def end(self) -> None:
        """Print the answer, if it was collected."""
        for text in self.answers if self.out else ():
            cast("Out", self.out).line(text)
        self.answers.clear()

    def _noted(self, note: Note) -> None:
        if note.rule == "re-asked":
            self._reject()
        if note.rule in STOPS:
            self.stopped = True
        if note.rule in HINTS:
            self.hints.append(note.detail)
        if note.rule == SUPERSEDED and note.detail in self.printed:
            self.hints.append(
                f"not run, since another call is a better reading of the same: {self.printed[note.detail]}"
            )

    def _text(self, text: str) -> None:
        if self.live and self.out:
            self.progress.ready()
            self.out.write(text)
        else:
            self.text += text

    def _note_text(self) -> None:
        """Print the collected text of a turn with calls to standard error, before the calls."""
        if self.calls and self.text.strip():
            self.progress.ready()
            self.progress.note(self.text.strip())
            self.text = ""

    def _reject(self) -> None:
        """Print the collected text of a reply that is asked again to standard error."""
        for text in (*self.answers, self.text):
            if text.strip():
                self.progress.note(text.strip())
        self.answers.clear()
        self.text = ""

    def _turn_ends(self) -> None:
        self.progress.ready()
        self._note_text()
        if self.text:
            self.answers.append(self.text)
        for hint in self.hints:
            self._end_line()
            self.progress.note(f"note: {hint}")
        self.hints.clear()
        self.printed.clear()
        self._end_line()
        if self.calls and not self.asks:
            self.progress.waiting("running")
        self.text, self.calls = "", False

    def _end_line(self) -> None:
        if self.live and self.out:
            self.progress.ready()
            self.out.end_line()


def exit_code(reply: Reply) -> int:
    """The exit code of a run: FAILED if a call of the last step failed, the run ended without text, or calls are
    pending; LIMITED if a limit ended it or cut its answer; otherwise 0. A refusal is no failure."""
    ran = [step for step in reply.steps if step.results]
    errors = [result.error for result in ran[-1].results] if ran else []
    failed = any(error is not None and not isinstance(error, NotApproved) for error in errors)
    wrong = any((failed, reply.pending, _empty(reply)))
    return FAILED if wrong else LIMITED if reply.finish in INCOMPLETE else 0


def _empty(reply: Reply) -> bool:
    """Whether a reply has neither a text nor calls that wait for approval or were only decided."""
    return not any((reply.text.strip(), reply.calls, reply.pending))


def show_hints(reply: Reply) -> None:
    """Print to standard error the notes that say why a reply has no call."""
    for note in reply.notes:
        if note.rule in HINTS:
            Progress().note(f"note: {note.detail}")


def show_no_call(reply: Reply, model: str) -> None:
    """Print to standard error how to see why the model called no tool, if it called none and was not cut off."""
    called = any(step.reply.calls for step in reply.steps)
    hinted = any(note.rule in HINTS for note in reply.notes)
    if not any((called, hinted, reply.finish in INCOMPLETE)):
        check = (
            "" if model.startswith(("local", "scripted", "replay")) else f", toolspeak doctor {model} checks its server"
        )
        Progress().note(f"note: no tool was called; --explain shows what the model gets{check}")


def show_open(reply: Reply) -> None:
    """Print to standard error what a run lacks: an answer, or the approval of calls."""
    limits = "; ".join(_limits(reply))
    if _empty(reply):
        click.echo(f"error: the model gave no answer{': ' if limits else ''}{limits}", err=True)
    elif limits:
        Progress().note(f"stopped: {limits}")
    for one in reply.pending:
        Progress().note(f"waits for approval: {one.id} {one.tool} {json_line(one.arguments)} ({one.why})")


def _limits(reply: Reply) -> Iterator[str]:
    """Yield what limited the reply: limits of the run, the limit of tokens of a reply, and a filter."""
    last = reply.steps[-1].reply if reply.steps else reply
    yield from (note.detail for note in last.notes if note.rule.startswith("limit-"))
    if reply.finish == "content_filter":
        yield "the reply was cut off by the content filter of the model's server"
    if reply.finish == "length":
        count = f"{last.usage.completion_tokens} tokens" if last.usage.completion_tokens else "its limit of tokens"
        place = ", inside its thought" if all((reply.thought, _empty(reply))) else ""
        option = "--max-tokens, or " if _has_option("--max-tokens") else ""
        yield f"the reply was cut off at {count}{place}; to allow more: {option}a longer context of the server"


def _has_option(name: str) -> bool:
    """Whether the command that runs has an option, so that it may be advised."""
    context = click.get_current_context(silent=True)
    return any(name in parameter.opts for parameter in context.command.params) if context else True


def without_pending(reply: Reply) -> list[Message]:
    """Return the conversation with pending calls refused, because nobody can approve them."""
    text = error_text("Not run: nobody was there to approve it.")
    return [*reply.messages, *(answer_message(call, text) for call in reply.calls if reply.pending)]


def as_json(reply: Reply, model: str, decisions: Sequence[Decision] = ()) -> dict[str, Any]:
    """Return a reply as JSON data: its text, its calls (decided, or run with their results), its usage.

    `decisions` are those of a policy about the calls."""
    return {
        "model": model,
        "text": reply.text,
        "thought": reply.thought,
        "finish": reply.finish,
        "calls": [_call(call) for call in reply.calls],
        **({"decisions": [jsonable(one) for one in decisions]} if decisions else {}),
        "steps": [
            {
                "text": step.reply.text,
                "calls": [_call(call) for call in step.reply.calls],
                "results": [
                    {
                        "id": result.id,
                        "name": result.name,
                        "text": result.text,
                        "value": jsonable(result.value),
                        "error": None if result.error is None else str(result.error),
                        "seconds": round(result.seconds, 6),
                    }
                    for result in step.results
                ],
            }
            for step in reply.steps
        ],
        "notes": [jsonable(note) for note in reply.notes],
        "usage": jsonable(reply.usage),
        "messages": reply.messages,
        "pending": [jsonable(one) for one in reply.pending],
    }


def _call(call: Any) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "notes": jsonable(list(call.notes))}
