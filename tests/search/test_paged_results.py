"""`run` shows a model a part of a large result; it reads on, and nothing of the result is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import toolspeak as ts
from replies import hermes_call, native
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.plan.result_pages import LONGEST, LONGEST_IN_ALL, PageSize, ResultPages
from toolspeak.plan.token_estimate import about, about_request
from toolspeak.search.paged_results import NO_ROOM, WHOLE, PagedResults
from toolspeak.tool_results import LIMIT
from toolspeak.types import Reply, Request, Usage

TEXT = "".join(f"line {i}\n" for i in range(5_000))


def log() -> str:
    """The log."""
    return TEXT


def name_of(text: str) -> str:
    pages = ResultPages(PageSize(4_000, LIMIT), "read_more")
    pages.cut([{"role": "tool", "content": text}])
    return next(iter(pages.texts))


READ = hermes_call("read_more", result=name_of(TEXT), find="line 2500")
SCRIPT = [hermes_call("log"), READ, "Line 2500 is there.", READ, "There it is."]


def asked(model: Scripted) -> list[str]:
    return ["\n".join(f"{row['role']}: {row['content']}" for row in request.messages) for request in model.requests]


def rules(reply: Reply) -> list[str]:
    return [note.rule for note in reply.notes]


def test_a_run_reads_on_and_keeps_the_whole_result() -> None:
    model = Scripted(SCRIPT)
    reply = ts.run("Is there a line 2500?", tools=[log], model=Speaker(model, "hermes"))
    assert reply.text == "Line 2500 is there."
    assert rules(reply) == ["results-cut", "result-read"]
    assert [step.results[0].name for step in reply.steps if step.results] == ["log"]
    assert next(row["content"] for row in reply.messages if row["role"] == "tool") == TEXT
    _, second, third = asked(model)
    assert "line 2500\n" not in second
    assert len(second) < LIMIT + 3_000
    assert "line 2500\n" in third[len(second) :]

    again = json.loads(json.dumps([*reply.messages, {"role": "user", "content": "Look again."}]))
    later = ts.run(again, tools=[log], model=Speaker(model, "hermes"))
    assert later.text == "There it is."
    assert asked(model)[-2].startswith(third)


def test_a_streamed_run_shows_no_reads() -> None:
    events = list(ts.stream("Is there a line 2500?", tools=[log], model=Speaker(Scripted(SCRIPT), "hermes")))
    assert [event.name for event in events if isinstance(event, ts.events.CallStart)] == ["log"]


def test_what_a_conversation_holds_is_bounded() -> None:
    def large(number: int) -> str:
        return f"{number} " + "x" * LONGEST

    model = Scripted([*(hermes_call("large", number=i) for i in range(5)), "Done."])
    reply = ts.run("Go.", tools=[large], model=Speaker(model, "hermes"))
    held = [len(str(row["content"])) for row in reply.messages if row["role"] == "tool"]
    assert all(LONGEST - 100 < size <= LONGEST for size in held[:4])
    assert held[4] <= LIMIT
    assert sum(held[:4]) <= LONGEST_IN_ALL


def test_one_that_is_paged_by_hand_is_not_paged_twice() -> None:
    model = Scripted(SCRIPT[:3])
    paged = PagedResults(Speaker(model, "hermes"), characters=400)
    assert ts.run("Is there a line 2500?", tools=[log], model=paged).text == "Line 2500 is there."
    assert asked(model)[1].count("reads on") == 1
    assert len(asked(model)[1]) < 3_500


def read_log(reply: Sequence[Event]) -> tuple[Request, str]:
    """The request with the cut log, to which a model answers with this reply, and what it reads then."""
    model = native([*(CallStart("log", "c0"), ArgumentsDelta("{}"), CallEnd()), Finished("tool_calls")], reply, "Done.")
    ts.run("Go.", tools=[log], model=PagedResults(model, context=8_000))
    return model.requests[1], str(model.requests[2].messages[-1]["content"])


def reading(arguments: str, tokens: int) -> list[Event]:
    """A reply that reads on, from a server that counted so many tokens in its prompt."""
    call = (CallStart("read_more", "c1"), ArgumentsDelta(arguments), CallEnd())
    return [*call, Finished("tool_calls", Usage(prompt_tokens=tokens))]


def test_arguments_that_do_not_fit_read_nothing() -> None:
    _, problem = read_log(reading('{"id": "Begin"}', 100))
    assert "the required argument 'result' is missing" in problem
    assert "line 1\n" not in problem


def test_a_page_fits_into_what_the_server_counted_as_left() -> None:
    arguments = f'{{"result": "{name_of(TEXT)}"}}'
    request, full = read_log(reading(arguments, 10))
    estimate = about_request(request)
    _, page = read_log(reading(arguments, 5_000))
    assert 1_000 < len(page) < len(full)
    assert (estimate + about(page)) * 5_000 / estimate < 7_000  # an eighth of the context is left for the reply
    assert read_log(reading(arguments, 6_900))[1] == NO_ROOM


def test_a_scored_model_reads_a_cut_result() -> None:
    assert PagedResults(Scripted("x", capabilities=["tools", "score", "scored"])).size == WHOLE


def test_explain_shows_what_the_model_would_read() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "log", "arguments": "{}"}}
    messages: Any = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": TEXT},
    ]
    told = str(ts.explain(messages, tools=[log], model=Speaker(Scripted("x"), "hermes")))
    assert "are not shown; read_more(" in told
    assert "Reads more of the result of a tool" in told
