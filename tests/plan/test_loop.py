"""The loop, on models that are told what to answer: order, errors, limits, circles, the conversation it leaves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

import toolspeak as ts
from clock import Clock, held_time
from replies import answered, calls, native
from toolspeak.events import CallResult, CallStart, Event, Finished, Noted, TextDelta
from toolspeak.types import Request, Usage


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


ADD = ("add", {"a": 1, "b": 2})


def texts(request: Request) -> list[str]:
    return [str(message.get("content")) for message in request.messages]


def rules(reply: ts.Reply) -> list[str]:
    return [note.rule for note in reply.notes]


def test_a_call_is_run_and_its_result_told() -> None:
    model = native(calls(ADD), "It is 3.")
    reply = ts.run("1 + 2?", tools=[add], model=model)
    assert (reply.text, reply.finish, reply.calls) == ("It is 3.", "stop", ())
    assert model.requests[1].messages[-1] == {"role": "tool", "tool_call_id": "c0", "name": "add", "content": "3"}
    assert [step.reply.finish for step in reply.steps] == ["tool_calls", "stop"]
    assert reply.steps[0].results[0].value == 3
    assert answered(reply.messages)


def test_parallel_calls_keep_their_order() -> None:
    started: list[int] = []
    together = threading.Barrier(2, timeout=60)  # both must be under way for either to end

    def wait(n: int) -> int:
        """Wait."""
        started.append(n)
        together.wait()
        time.sleep(0.05 if n == 0 else 0)
        return n

    model = native(calls(("wait", {"n": 0}), ("wait", {"n": 1})), "done")
    reply = ts.run("go", tools=[wait], model=model)
    assert [result.value for result in reply.steps[0].results] == [0, 1]
    assert [m["content"] for m in reply.messages if m["role"] == "tool"] == ["0", "1"]


def test_one_at_a_time_when_asked_for() -> None:
    under_way = 0
    most = 0

    async def step(n: int) -> int:
        """Step."""
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return n

    wanted = calls(*[("step", {"n": i}) for i in range(4)])
    ts.run("go", tools=[step], model=native(wanted, "done"), parallel=False)
    assert most == 1
    ts.run("go", tools=[step], model=native(wanted, "done"))
    assert most == 4


def test_sequential_calls() -> None:
    model = native(calls(ADD), calls(("add", {"a": 3, "b": 4})), "7")
    reply = ts.run("1 + 2 + 4?", tools=[add], model=model)
    assert [step.results[0].value for step in reply.steps[:2]] == [3, 7]
    assert len(reply.steps) == 3


def test_a_tools_error_is_told_and_the_model_goes_on() -> None:
    model = native(calls(("fail", {"why": "no such city"})), "I could not find it.")
    reply = ts.run("go", tools=[fail], model=model)
    assert reply.text == "I could not find it."
    assert "no such city" in texts(model.requests[1])[-1]
    assert "Traceback" not in texts(model.requests[1])[-1]
    error = reply.steps[0].results[0].error
    assert isinstance(error, ts.ToolError)
    assert isinstance(error.__cause__, ValueError)
    assert error.__cause__.__traceback__ is not None


def test_an_unknown_tool_is_explained() -> None:
    model = native(calls(("ad", {"a": 1, "b": 2})), calls(ADD), "3")
    reply = ts.run("1 + 2?", tools=[add], model=model)
    assert "add" in texts(model.requests[1])[-1]
    assert reply.text == "3"
    assert answered(reply.messages)


def test_wrong_arguments_are_told_and_never_run() -> None:
    ran: list[Any] = []

    def note(text: str) -> None:
        """Note."""
        ran.append(text)

    model = native(calls(("note", {"text": 5})), calls(("note", '{"text": "a')), calls(("note", {"text": "b"})), "ok")
    ts.run("go", tools=[note], model=model)
    assert ran == ["b"]


def test_the_step_limit_ends_in_one_answer_without_tools() -> None:
    replies = [calls(("add", {"a": i, "b": i})) for i in range(3)]
    model = native(*replies, "I got as far as 2.")
    reply = ts.run("go", tools=[add], model=model, limits={"steps": 3})
    assert (reply.text, reply.finish) == ("I got as far as 2.", "limit")
    assert "limit-steps" in rules(reply)
    assert model.requests[-1].choice == "none"
    assert len(model.requests) == 4
    assert [bool(step.results) for step in reply.steps] == [True, True, False, False]
    assert answered(reply.messages)


def test_a_model_that_calls_even_then_is_not_obeyed() -> None:
    model = native(calls(ADD), repeat=True)
    reply = ts.run("go", tools=[add], model=model, limits={"steps": 1})
    assert (reply.finish, reply.calls) == ("limit", ())
    assert "not-run" in rules(reply)
    assert len(model.requests) == 2
    assert answered(reply.messages)
    assert reply.messages[-1]["role"] == "assistant"


def test_the_calls_limit_is_never_passed() -> None:
    ran: list[int] = []

    def tick(n: int) -> int:
        """Tick."""
        ran.append(n)
        return n

    model = native(calls(("tick", {"n": 1})), calls(("tick", {"n": 2}), ("tick", {"n": 3})), "enough")
    reply = ts.run("go", tools=[tick], model=model, limits=ts.Limits(calls=2))
    assert ran == [1]
    assert (reply.text, reply.finish) == ("enough", "limit")
    assert answered(reply.messages)


def test_the_tokens_limit() -> None:
    spent = [*calls(ADD)[:-1], Finished("tool_calls", Usage(60, 40))]
    model = native(spent, spent, "x")
    reply = ts.run("go", tools=[add], model=model, limits={"tokens": 150})
    assert reply.finish == "limit"
    assert "limit-tokens" in rules(reply)
    assert len(model.requests) == 2
    assert reply.usage == Usage(120, 80)
    assert answered(reply.messages)


def test_notes_are_those_of_all_turns() -> None:
    """In order, with the reason for which the model was asked again; each turn has its own."""
    wrong = [*calls(("add", {"a": "1", "b": "x"}))]
    wrong.insert(-1, Noted(ts.Note("call-in-text", "first")))
    last: list[Event] = [TextDelta("3"), Noted(ts.Note("stray-closer", "last")), Finished("stop")]
    reply = ts.run("1 + 2?", tools=[add], model=native(wrong, last), reask=["told"])
    assert rules(reply) == ["call-in-text", "stray-closer"]
    assert [[note.rule for note in step.reply.notes] for step in reply.steps] == [["call-in-text"], ["stray-closer"]]
    limited = ts.run("1 + 2?", tools=[add], model=native(wrong, last), limits={"steps": 1})
    assert rules(limited) == ["call-in-text", "stray-closer", "limit-steps"]


def test_usage_is_summed() -> None:
    model = native(
        [*calls(ADD)[:-1], Finished("tool_calls", Usage(10, 5, 2))], [TextDelta("3"), Finished("stop", Usage(20, 3, 9))]
    )
    assert ts.run("go", tools=[add], model=model).usage == Usage(30, 8, 11)


def test_the_same_call_with_the_same_result_a_third_time_ends_it() -> None:
    model = native(calls(ADD), calls(("add", {"b": 2, "a": 1})), calls(ADD), "I give up.")
    reply = ts.run("go", tools=[add], model=model)
    assert (reply.text, reply.finish) == ("I give up.", "limit")
    assert "limit-repeats" in rules(reply)
    assert model.requests[-1].choice == "none"


def test_a_run_that_ends_after_a_wrong_call_says_which_and_why() -> None:
    for wrong, why in ((("add", {"a": 1}), "'b' is missing"), (("nosuch", {}), "There is no tool 'nosuch'")):
        reply = ts.run("go", tools=[add], model=native(*[calls(wrong)] * 3, "I give up."))
        (note,) = (note.detail for note in reply.notes if note.rule == "limit-repeats")
        assert f"3 times: {wrong[0]}, which was not run: " in note
        assert why in note


def test_of_equal_calls_in_one_reply_the_first_three_run() -> None:
    """A model caught in a loop writes the same call until its reply ends."""
    ran: list[tuple[float, float]] = []

    def add_and_count(a: float, b: float) -> int:
        ran.append((a, b))
        return len(ran)

    equal, other = ("add_and_count", {"a": 1, "b": 2}), ("add_and_count", {"a": 2, "b": 2})
    turned = ("add_and_count", {"b": 2, "a": 1})
    model = native(calls(*[equal] * 30, other, *[turned] * 30), calls(equal), "Enough.")
    reply = ts.run("go", tools=[add_and_count], model=model)
    assert sorted(ran) == [(1, 2)] * 3 + [(2, 2)] + ([(1, 2)] if len(reply.steps) > 2 else [])
    results = reply.steps[0].results
    assert [result.error is None for result in results] == [True] * 3 + [False] * 27 + [True] + [False] * 30
    assert "the same reply has it 3 times before" in results[-1].text
    assert answered(reply.messages)
    assert "limit-repeats" in rules(reply)
    events = list(ts.stream("go", tools=[add_and_count], model=native(calls(*[equal] * 5), "Enough.", "Enough.")))
    told = [event.result.error is None for event in events if isinstance(event, ts.CallResult)]
    assert told == [True] * 3 + [False] * 2


def test_the_same_call_with_another_result_goes_on() -> None:
    count = iter(range(100))

    def poll() -> int:
        """Poll."""
        return next(count)

    model = native(*[calls(("poll", {})) for _ in range(6)], "done")
    assert ts.run("go", tools=[poll], model=model).finish == "stop"


def test_approve_is_asked_and_its_reason_told() -> None:
    asked: list[ts.ToolCall] = []

    def approve(call: ts.ToolCall) -> bool | str:
        asked.append(call)
        return "adding is not allowed on Sundays"

    model = native(calls(("add", {"a": "1", "b": 2})), "Then not.")
    reply = ts.run("go", tools=[add], model=model, approve=approve)
    assert asked[0].arguments == {"a": 1, "b": 2}
    assert "Sundays" in texts(model.requests[1])[-1]
    assert isinstance(reply.steps[0].results[0].error, ts.NotApproved)


@pytest.mark.parametrize(("answer", "value"), [(True, 3), (False, None), (None, None)])
def test_approve_may_be_async(answer: bool | None, value: int | None) -> None:
    async def approve(call: ts.ToolCall) -> Any:
        await asyncio.sleep(0)
        return answer

    reply = ts.run("go", tools=[add], model=native(calls(ADD), "x"), approve=approve)
    assert reply.steps[0].results[0].value == value


def test_a_run_goes_on_from_another() -> None:
    first = ts.run("1 + 2?", tools=[add], model=native(calls(ADD), "It is 3."), system="Be short.")
    model = native("And 4.")
    second = ts.run([*first.messages, {"role": "user", "content": "And 2 + 2?"}], tools=[add], model=model)
    roles = [message["role"] for message in model.requests[0].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert answered(second.messages)


def test_a_demand_holds_for_the_first_turn() -> None:
    model = native(calls(ADD), "3")
    ts.run("go", tools=[add], model=model, choice="required")
    assert [request.choice for request in model.requests] == ["required", "auto"]


def test_a_stream_tells_calls_results_and_limits() -> None:
    model = native(calls(ADD), "It is 3.")
    events = list(ts.stream("go", tools=[add], model=model, limits={"steps": 1}))
    assert CallStart("add", "c0") in events
    limit = ts.Note(
        "limit-steps",
        "the run reached its limit of 1 steps; to raise it: limits={'steps': …} (--steps of ask, chat and resume)",
    )
    assert Noted(limit) in events
    events = list(ts.stream("go", tools=[add], model=native(calls(ADD), "It is 3.")))
    kinds = [type(event) for event in events]
    assert kinds.index(CallResult) > kinds.index(CallStart)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "It is 3."


class Babbler:
    """A model that never stops."""

    name = "babbler"
    capabilities: frozenset[Any] = frozenset(["tools"])

    def __init__(self, pause: float | None, clock: Clock) -> None:
        self.pause = pause
        self.clock = clock
        self.closed = False

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        try:
            while True:
                yield TextDelta("bla ")
                self.clock.now += 1
                if self.pause is not None:
                    await asyncio.sleep(self.pause)
        finally:
            self.closed = True


@pytest.mark.parametrize("pause", [600, 0, None])
def test_the_seconds_limit_stops_a_model_that_never_stops(pause: float | None) -> None:
    async def main() -> tuple[ts.Reply, Babbler]:
        with held_time() as clock:
            model = Babbler(pause, clock)
            asking = asyncio.create_task(ts.arun("go", model=model, limits={"seconds": 100}))
            await clock.until(asking.done, step=1)
            return await asking, model

    reply, model = asyncio.run(main())
    assert reply.finish == "limit"
    assert reply.text.startswith("bla " if pause == 600 else "bla bla ")
    assert "limit-seconds" in rules(reply)
    assert model.closed
    assert reply.messages[-1] == {"role": "assistant", "content": reply.text}


def test_the_seconds_limit_stops_a_slow_tool() -> None:
    cancelled = threading.Event()

    async def main() -> ts.Reply:
        with held_time() as clock:

            async def sleep() -> None:
                """Sleep."""
                clock.now += 101
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    cancelled.set()
                    raise

            model = native(calls(("sleep", {}), text="Wait."))
            return await ts.arun("go", tools=[sleep], model=model, limits={"seconds": 100})

    reply = asyncio.run(main())
    assert cancelled.is_set()
    assert reply.finish == "limit"
    assert answered(reply.messages)
    assert "may have had effects" in reply.steps[0].results[0].text
    assert "may have had effects" in str(reply.messages)
    assert [step.reply.text for step in reply.steps] == ["Wait.", ""]


@pytest.mark.parametrize("limits", [{"steps": 0}, {"seconds": -1}, {"tokens": "many"}, {"hours": 1}, ts.Limits])
def test_limits_that_cannot_be(limits: Any) -> None:
    with pytest.raises(ts.UsageError, match="limits"):
        ts.run("go", model=native("x"), limits=limits)


@pytest.mark.parametrize("prompt", [[], [{"content": "x"}], ["x"], None, 5, {"role": "user"}])
def test_prompts_that_cannot_be(prompt: Any) -> None:
    with pytest.raises(ts.UsageError, match=r"message|question"):
        ts.run(prompt, model=native("x"))


def test_the_models_error_comes_through() -> None:
    model = ts.Scripted([ts.ModelUnreachable("no server there")], capabilities=["tools"])
    with pytest.raises(ts.ModelUnreachable, match="no server there"):
        ts.run("go", tools=[add], model=model)


def test_steps_and_messages_show_a_call_as_it_ran() -> None:
    def days(days: int) -> str:
        """Wait some days."""
        return f"{days} days"

    reply = ts.run("wait", tools=[days], model=native(calls(("days", {"days": "3"})), "Done."))
    (call,) = reply.steps[0].reply.calls
    assert call.arguments == {"days": 3}
    assert call.notes
    assert reply.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"days": 3}'


def test_a_call_that_the_time_limit_stopped_may_have_had_effects() -> None:
    began: list[int] = []

    async def main() -> list[Event]:
        with held_time() as clock:

            async def slow(n: int) -> str:
                """Wait."""
                began.append(n)
                clock.now += 60
                await asyncio.sleep(600)
                return "done"

            model = native(calls(("slow", {"n": 1}), ("slow", {"n": 2})), "never")
            return [event async for event in ts.astream("go", tools=[slow], model=model, limits={"seconds": 100})]

    events = asyncio.run(main())
    assert began == [1, 2]
    results = [event.result for event in events if isinstance(event, CallResult)]
    assert [type(result.error) for result in results] == [ts.ToolTimeout] * 2
    assert all("stopped at the run's limit of seconds; it may have had effects" in result.text for result in results)
    assert isinstance(events[-1], Finished)
    assert events[-1].finish == "limit"


def test_a_call_that_ended_before_the_time_limit_has_its_result() -> None:
    """Its effects are known, so the result is in the stream, in the step, and in the conversation."""

    async def main() -> tuple[ts.Reply, list[str]]:
        with held_time() as clock:

            async def slow(n: int) -> str:
                """Wait."""
                await asyncio.sleep(0 if n == 1 else 600)
                clock.now += 60
                return f"done {n}"

            many = [("slow", {"n": n}) for n in (2, 1, 2, 2, 2)]
            model = native(calls(*many), "never")
            asking = asyncio.create_task(ts.arun("go", tools=[slow], model=model, limits={"seconds": 100}))
            await clock.until(asking.done, step=1)
            reply = await asking
            return reply, [str(message["content"]) for message in reply.messages if message.get("role") == "tool"]

    reply, told = asyncio.run(main())
    results = reply.steps[0].results
    assert results[1].value == "done 1"
    assert told[1] == "done 1"
    assert [type(result.error) for result in results] == [
        ts.ToolTimeout, type(None), ts.ToolTimeout, ts.ToolTimeout, ts.ToolError,
    ]  # fmt: skip
    assert "was not run, because the same reply has it 3 times" in told[4]
    assert reply.finish == "limit"
    assert answered(reply.messages)


def test_a_call_that_waits_for_approval_at_the_time_limit_was_not_run() -> None:
    ran: list[str] = []

    async def main() -> ts.Reply:
        with held_time() as clock:

            async def slow() -> None:
                """Wait."""
                await asyncio.sleep(600)

            def remove(path: str) -> None:
                """Remove a file."""
                ran.append(path)

            model = native(calls(("remove", {"path": "a"}), ("slow", {})), "never")
            policy = ts.Policy(allow=["slow"], ask=["remove"])
            asking = asyncio.create_task(
                ts.arun("go", tools=[slow, remove], model=model, policy=policy, limits={"seconds": 100})
            )
            await clock.until(asking.done, step=1)
            return await asking

    reply = asyncio.run(main())
    first, second = (result.text for result in reply.steps[0].results)
    assert "needs approval, and the run ended at its limit of seconds; it was not run" in first
    assert "was stopped at the run's limit of seconds; it may have had effects" in second
    assert (ran, reply.pending, reply.finish) == ([], (), "limit")
    assert answered(reply.messages)


def test_a_reply_that_streams_on_is_ended_at_the_limit_of_tokens() -> None:
    passed: list[int] = []

    class Endless:
        """A model that never stops."""

        name, capabilities = "endless", frozenset[Any]()

        async def stream(self, request: ts.Request) -> Any:
            while True:
                passed.append(1)
                yield TextDelta("word ")

    reply = ts.run("go", model=Endless(), limits={"tokens": 50})  # type: ignore[arg-type]
    assert (reply.finish, reply.usage.estimated) == ("limit", True)
    assert 50 <= len(passed) <= 150
    assert reply.text == "word " * len(passed)
    assert "limit-tokens" in rules(reply)


def test_the_note_of_the_calls_limit_says_how_many_did_not_run() -> None:
    model = native(calls(("add", {"a": 1, "b": 1})), calls(*[("add", {"a": 1, "b": n}) for n in range(2, 9)]), "enough")
    (note,) = [n for n in ts.run("go", tools=[add], model=model, limits={"calls": 5}).notes if n.rule == "limit-calls"]
    assert "limit of 5 calls: 1 ran, and none of the 7 in its last reply" in note.detail


def other(a: int) -> int:
    """Another tool."""
    return a


@pytest.mark.parametrize(
    ("choice", "why"), [("none", "No tool may be called now"), ("other", "Only other may be called")]
)
def test_a_call_that_the_choice_forbids_does_not_run(choice: str, why: str) -> None:
    """The model reads why, and a call of the one tool runs after it."""
    model = native(calls(ADD), calls(("other", {"a": 7})) if choice == "other" else "3.", "It is 3.")
    reply = ts.run("1 + 2?", tools=[add, other], model=model, choice=choice)
    (refused,) = reply.steps[0].results
    assert (refused.value, isinstance(refused.error, ts.ToolError)) == (None, True)
    assert why in texts(model.requests[1])[-1]
    assert model.requests[1].choice == choice
    if choice == "other":
        assert [result.value for result in reply.steps[1].results] == [7]
        assert model.requests[2].choice == "auto"
    assert reply.text == ("It is 3." if choice == "other" else "3.")
    assert answered(reply.messages)


def test_of_several_calls_only_the_allowed_ones_run() -> None:
    model = native(calls(ADD, ("other", {"a": 7})), "done")
    reply = ts.run("go", tools=[add, other], model=model, choice="other")
    assert [result.value for result in reply.steps[0].results] == [None, 7]
    assert answered(reply.messages)


def test_a_text_beside_a_call_is_the_answer_if_no_call_is_allowed() -> None:
    """As `decide` and the gateway have it."""
    reply = ts.run("go", tools=[add], model=native([TextDelta("It is 3."), *calls(ADD)]), choice="none")
    assert (reply.text, reply.calls, rules(reply)) == ("It is 3.", (), ["call-not-allowed"])
    assert len(reply.steps) == 1


def test_a_stream_says_that_such_a_call_was_dropped() -> None:
    """The call was passed on before it was known that a text comes too, and no result follows."""
    model = native([*calls(ADD), TextDelta("It is 3.")])
    events = list(ts.stream("go", tools=[add], model=model, choice="none"))
    assert [event.note for event in events if isinstance(event, Noted)] == [ts.Note("call-not-allowed", "add")]


def test_of_several_calls_only_the_first_runs_if_one_is_allowed() -> None:
    """The model reads nothing of the others: it makes them again, one after another."""
    model = native(calls(ADD, ("other", {"a": 7})), calls(("other", {"a": 7})), "done")
    reply = ts.run("go", tools=[add, other], model=model, parallel=False)
    assert [[result.name for result in step.results] for step in reply.steps] == [["add"], ["other"], []]
    assert (reply.text, rules(reply)) == ("done", ["one-call"])
    assert answered(reply.messages)
