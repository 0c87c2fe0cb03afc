"""Pending calls, and the answers to them: in this process, in another one, once, and for what was shown alone."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from properties import is_fast
from replies import answered, calls, native
from toolspeak.errors import ServerFailed
from toolspeak.policy.approval_digests import call_digest
from toolspeak.used_approvals import ApprovalStore

removed: list[str] = []


def remove(path: str) -> str:
    """Remove a file."""
    removed.append(path)
    return f"removed {path}"


def look(path: str = "") -> str:
    """Look."""
    return "seen"


TOOLS = [remove, look]
POLICY = ts.Policy(allow=["look"], deny=['remove(path="/etc/**")'])
REMOVE = ("remove", {"path": "a"})


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_APPROVALS", str(tmp_path / "approvals.sqlite"))
    removed.clear()


def paused(*wanted: Any, tools: Any = TOOLS, **options: Any) -> ts.Reply:
    model = native(calls(*(wanted or (REMOVE,))))
    return ts.run("go", tools=tools, model=model, **{"policy": POLICY, **options})


def resumed(
    reply: Any, answers: Mapping[str, Any], *, tools: Any = TOOLS, says: str = "Done.", **options: Any
) -> ts.Reply:
    return ts.resume(reply, answers, tools=tools, model=native(says), **{"policy": POLICY, **options})


def forms(reply: ts.Reply) -> list[Any]:
    return [reply, reply.to_json(), json.loads(reply.to_json())]


@pytest.mark.parametrize("form", range(3))
def test_an_approved_call_runs(form: int) -> None:
    reply = paused()
    assert removed == []
    after = resumed(forms(reply)[form], {"c0": True})
    assert (after.text, removed, after.pending) == ("Done.", ["a"], ())
    assert answered(after.messages)
    assert [message.get("content") for message in after.messages] == ["go", None, "removed a", "Done."]
    assert [step.reply.finish for step in after.steps] == ["tool_calls", "stop"]


@pytest.mark.parametrize(
    ("answer", "ran", "result"),
    [
        (False, [], "was not approved"), ("not today", [], "was not approved: not today"),
        (ts.Edit({"path": "b"}), ["b"], "removed b"),
        (ts.Edit({"path": "/etc/x"}), [], "refused by the policy"), (ts.Answer("it is gone"), [], "it is gone"),
        (ts.Answer({"gone": True}), [], '{"gone": true}'),
    ],
)  # fmt: skip
def test_every_kind_of_answer(answer: Any, ran: list[str], result: str) -> None:
    after = resumed(paused(), {"c0": answer})
    assert (after.text, removed) == ("Done.", ran)
    assert result in str(after.messages[2].get("content"))


def test_calls_without_an_answer_stay_pending() -> None:
    first = paused(REMOVE, ("look", {}), ("remove", {"path": "b"}))
    assert [one.id for one in first.pending] == ["c0", "c2"]
    second = resumed(first, {"c2": True})
    assert (removed, [one.id for one in second.pending], second.finish) == (["b"], ["c0"], "tool_calls")
    third = resumed(second.to_json(), {"c0": True})
    assert (removed, third.pending, third.text) == (["b", "a"], (), "Done.")
    assert [message.get("tool_call_id") for message in third.messages if message.get("role") == "tool"] == [
        "c0",
        "c1",
        "c2",
    ]


def test_a_resumed_run_may_wait_again() -> None:
    model = native(calls(("remove", {"path": "b"})), "Done.")
    after = ts.resume(paused(), {"c0": True}, tools=TOOLS, model=model, policy=POLICY)
    assert (removed, [one.arguments for one in after.pending]) == (["a"], [{"path": "b"}])
    again = resumed(after, {"c0": True})
    assert (removed, again.text) == (["a", "b"], "Done.")


def test_without_a_policy_everything_is_on_ask() -> None:
    after = ts.resume(paused(), {"c0": True}, tools=TOOLS, model=native(calls(("look", {})), "Done."))
    assert (removed, [one.tool for one in after.pending]) == (["a"], ["look"])


def test_an_approval_is_used_once() -> None:
    """Given again, the run goes on with the result that the call gave then; other arguments get no second run."""
    reply = paused()
    resumed(reply, {"c0": True})
    for again in forms(reply):
        after = resumed(again, {"c0": True})
        assert after.messages[2].get("content") == "removed a"
    after = resumed(reply, {"c0": ts.Edit({"path": "b"})})
    assert "may have run, so it is not run again" in str(after.messages[2].get("content"))
    assert removed == ["a"]


@pytest.mark.parametrize("first", [False, "not today", ts.Answer("it is gone")])
@pytest.mark.parametrize("then", [True, ts.Edit({"path": "b"})])
def test_a_call_that_was_refused_or_answered_is_closed(first: Any, then: Any) -> None:
    """It cannot be approved from an older copy of the reply; the same answer continues the run again."""
    reply = paused(REMOVE, ("remove", {"path": "c"}))
    resumed(reply, {"c0": first})
    for again in forms(reply):
        with pytest.raises(ts.StaleApproval, match=r"'c0' of 'remove' .*refused or answered before"):
            resumed(again, {"c0": then, "c1": True})
    assert removed == []
    assert [one.id for one in resumed(reply, {"c0": first}).pending] == ["c1"]
    assert resumed(reply, {"c0": False, "c1": True}).text == "Done."
    assert removed == ["c"]


@pytest.mark.parametrize("first", [True, ts.Edit({"path": "b"})])
def test_a_call_that_ran_cannot_be_refused_or_answered(first: Any) -> None:
    """The model would read that it did not run. The same approval still continues the run with the stored result."""
    reply = paused(REMOVE, ("remove", {"path": "c"}))
    resumed(reply, {"c0": first})
    ran = list(removed)
    late = [False, "no", ts.Answer("it is still there")]
    for answer, form in [(answer, form) for answer in late for form in forms(reply)]:
        with pytest.raises(ts.StaleApproval, match=r"'c0' of 'remove' .*already used. The call has run, or may have"):
            resumed(form, {"c1": True, "c0": answer})
        with pytest.raises(ts.StaleApproval, match="'c0' of 'remove'"):
            resumed(form, {"c1": False, "c0": answer})
    assert removed == ran
    assert [result.text for result in resumed(reply, {"c0": first}).steps[0].results] == [f"removed {ran[0]}"]
    other = ts.Edit({"path": "d"})
    assert "may have run" in resumed(reply, {"c0": other}).steps[0].results[0].text
    assert resumed(reply, {"c0": first, "c1": True}).text == "Done."  # nothing closed the other call
    assert removed == [*ran, "c"]


def test_a_call_that_may_have_run_can_be_answered_but_not_refused() -> None:
    """Its process was killed while it ran. A person who knows the outcome answers; that does not make it unrun."""
    reply = paused()
    [one] = reply.pending
    assert ApprovalStore().consume(one.digest, one.expires)
    for again in forms(reply):
        with pytest.raises(ts.StaleApproval, match="The call has run, or may have"):
            resumed(again, {"c0": "no"})
        for _ in range(2):
            assert resumed(again, {"c0": ts.Answer("it is gone")}).steps[0].results[0].text == "it is gone"
        assert "may have run" in resumed(again, {"c0": True}).steps[0].results[0].text
    assert removed == []


def test_a_refusal_is_repeated_after_the_approval_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = paused(REMOVE, ("remove", {"path": "c"}))
    resumed(reply, {"c0": False})
    monkeypatch.setattr("time.time", lambda: reply.pending[0].expires + 60)
    resumed(reply, {"c1": False})  # forgets what expired
    assert resumed(reply, {"c0": False, "c1": False}).text == "Done."


@pytest.mark.parametrize("answer", [True, ts.Edit({"path": "b"})])
def test_the_result_of_an_approved_call_outlives_a_model_that_fails(answer: Any) -> None:
    """The model fails right behind the call: the same answers go on with what the call gave, in whatever form."""
    reply = paused(policy=ts.Policy(tools={"remove": {"reads": "untrusted"}}))
    failing = ts.Scripted([ServerFailed("no", code=500), "Done."], capabilities=["tools"])
    options: Any = {"tools": TOOLS, "model": failing, "policy": POLICY}
    with pytest.raises(ts.ModelError):
        ts.resume(reply, {"c0": answer}, **options)
    ran = list(removed)
    after = ts.resume(reply.to_json(), {"c0": answer}, **options)
    assert (after.text, removed, len(ran)) == ("Done.", ran, 1)
    assert after.messages[2].get("content") == f"removed {ran[0]}"
    assert [result.text for result in after.steps[0].results] == [f"removed {ran[0]}"]
    other = ts.tool(remove, description="Remove a file for ever.")
    assert resumed(reply, {"c0": answer}, tools=[other]).messages[2].get("content") == f"removed {ran[0]}"
    assert removed == ran


def test_a_result_that_was_an_error_is_kept_with_its_label() -> None:
    """And so is each of several, as soon as it is there: another call that ends the run takes none along."""

    def fail(path: str) -> str:
        """Fail."""
        removed.append(path)
        raise OSError("the disk is full")

    policy = ts.Policy(tools={"fail": {"reads": "untrusted"}})
    model = native(calls(("fail", {"path": "a"}), ("look", {})))
    reply = ts.run("go", tools=[fail, look], model=model, policy=policy)
    failing = ts.Scripted([ServerFailed("no", code=500), "Done."], capabilities=["tools"])
    for _ in range(2):
        with contextlib.suppress(ts.ModelError):
            after = ts.resume(
                reply, {"c0": True, "c1": ts.Answer("x")}, tools=[fail, look], model=failing, policy=policy
            )
    first, second = after.steps[0].results  # pyright: ignore[reportPossiblyUnboundVariable]
    assert removed == ["a"]
    assert ("the disk is full" in first.text, type(first.error), first.origin) == (True, ts.ToolError, "untrusted")
    assert (second.text, second.origin) == ("x", "trusted")
    assert [message.get("origin") for message in after.messages if message.get("role") == "tool"] == [
        "untrusted",
        "trusted",
    ]


def test_a_call_that_did_not_run_leaves_its_approval() -> None:
    """One that the policy refuses is no use of it, and no result is kept of it."""
    reply = paused()
    for _ in range(2):
        after = resumed(reply, {"c0": ts.Edit({"path": "/etc/x"})})
        assert "refused by the policy" in str(after.messages[2].get("content"))
    assert resumed(reply, {"c0": True}).messages[2].get("content") == "removed a"
    assert removed == ["a"]


def test_arguments_that_do_not_fit_are_an_error_before_anything_runs() -> None:
    reply = paused(REMOVE, ("remove", {"path": "b"}))
    with pytest.raises(ts.UsageError, match=r"c1: .* stays pending: .*unknown argument: \"pat\".*'path' is missing"):
        resumed(reply, {"c0": True, "c1": ts.Edit({"pat": "b"})})
    assert removed == []
    resumed(reply, {"c0": True, "c1": ts.Edit({"path": "c"})})
    assert sorted(removed) == ["a", "c"]


def test_only_the_owner_can_read_the_store(tmp_path: Path) -> None:
    resumed(paused(), {"c0": True}, store=tmp_path / "own.sqlite")
    assert (tmp_path / "own.sqlite").stat().st_mode & 0o077 == 0


def test_a_fork_of_a_conversation_has_no_second_approval() -> None:
    text = paused().to_json()
    other = json.loads(text)
    other["messages"] = [*other["messages"]]
    resumed(text, {"c0": True})
    resumed(other, {"c0": True})
    assert removed == ["a"]


def test_the_same_call_asked_for_again_has_an_approval_of_its_own() -> None:
    resumed(paused(), {"c0": True})
    resumed(paused(), {"c0": True})
    assert removed == ["a", "a"]


def changed(reply: ts.Reply, change: Callable[[Any], None]) -> str:
    data = json.loads(reply.to_json())
    change(data)
    return json.dumps(data)


def _set(*path: Any, value: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


ARGUMENTS = ("messages", 1, "tool_calls", 0, "function", "arguments")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_set("pending", 0, "arguments", value={"path": "/"}), "the conversation has another call"),
        (_set(*ARGUMENTS, value='{"path": "/"}'), "the conversation has another call"),
        (_set("pending", 0, "tool", value="look"), "the conversation has another call"),
        (_set("pending", 0, "id", value="c9"), "no such call"),
        (_set("pending", 0, "expires", value=4e9), "the time until which"),
        (_set("messages", 0, "content", value="go away"), "the conversation before the call"),
        (_set("pending", 0, "digest", value="sha256:0"), "has changed"),
        (_set("pending", 0, "definition", value="sha256:0"), "definition has changed"),
    ],
)
def test_what_is_not_what_was_shown_is_refused(change: Callable[[Any], None], why: str) -> None:
    text = changed(paused(), change)
    [key] = [one["id"] for one in json.loads(text)["pending"]]
    with pytest.raises(ts.StaleApproval, match=why):
        resumed(text, {key: True})
    assert removed == []


def test_arguments_that_were_changed_in_both_places_are_refused() -> None:
    def change(data: Any) -> None:
        _set("pending", 0, "arguments", value={"path": "/"})(data)
        _set(*ARGUMENTS, value='{"path": "/"}')(data)

    with pytest.raises(ts.StaleApproval):
        resumed(changed(paused(), change), {"c0": True})
    assert removed == []


def test_an_approval_does_not_go_from_one_call_to_another() -> None:
    """Answers by swapped ids, and a pending entry in another conversation."""
    both = paused(REMOVE, ("remove", {"path": "b"}))
    text = changed(both, lambda data: data["pending"].reverse())
    resumed(text, {"c1": True})
    assert removed == ["b"]
    data = json.loads(both.to_json())
    data["pending"][0]["id"], data["pending"][1]["id"] = "c1", "c0"
    with pytest.raises(ts.StaleApproval, match="another call"):
        resumed(data, {"c0": True})
    other = json.loads(ts.run("else", tools=TOOLS, model=native(calls(REMOVE)), policy=POLICY).to_json())
    other["pending"] = json.loads(both.to_json())["pending"][:1]
    with pytest.raises(ts.StaleApproval, match="conversation before"):
        resumed(other, {"c0": True})
    assert removed == ["b"]


def test_a_changed_tool_is_refused() -> None:
    reply = paused()
    other = ts.tool(remove, description="Remove a file for ever.")
    with pytest.raises(ts.StaleApproval, match="definition has changed, from sha256:"):
        resumed(reply, {"c0": True}, tools=[other])
    with pytest.raises(ts.StaleApproval, match="there is no such tool"):
        resumed(reply, {"c0": True}, tools=[look])
    assert removed == []
    assert resumed(reply, {"c0": "no"}, tools=[other]).text == "Done."


def test_an_expired_approval_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolspeak.approvals.EXPIRY", -1.0)
    reply = paused()
    with pytest.raises(ts.StaleApproval, match="the approval has expired"):
        resumed(reply, {"c0": True})
    assert resumed(reply, {"c0": False}).text == "Done."
    assert removed == []


@pytest.mark.parametrize(
    ("reply", "answers", "why"),
    [
        ("nothing", {}, "expected a Reply, or its JSON"), ("{}", {}, "expected a Reply"), ("[" * 100_000, {}, "expected a Reply"),
        ({"messages": 5, "pending": []}, {}, "messages: expected a list"), ({"messages": [], "pending": [5]}, {}, "expected a Reply"),
        ({"messages": [], "pending": []}, {}, "at least one message|nothing to resume"), (ts.Reply(messages=[{"role": "user", "content": "x"}]), {}, "nothing to resume"),
        (None, {"c9": True}, "no call 'c9' is pending. Pending are: c0"), (None, {"c0": 1}, "expected True, a reason, Edit or Answer"),
    ],
)  # fmt: skip
def test_what_cannot_be_resumed_is_told(reply: Any, answers: Any, why: str) -> None:
    with pytest.raises(ts.UsageError, match=why):
        resumed(paused() if reply is None else reply, answers)


def test_a_store_that_cannot_be_written_runs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ts.UsageError, match="used approvals cannot be stored in"):
        resumed(paused(), {"c0": True}, store=tmp_path / "file" / "approvals.sqlite")
    (tmp_path / "broken.sqlite").write_text("no database at all" * 100)
    with pytest.raises(ts.UsageError, match="Nothing has run"):
        resumed(paused(), {"c0": True}, store=tmp_path / "broken.sqlite")
    assert removed == []


def test_a_used_approval_is_forgotten_long_after_it_has_expired(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "s.sqlite")
    assert [store.consume("new", 9e9) for _ in range(2)] == [True, False]
    assert [store.consume("old", 1.0) for _ in range(2)] == [True, True]
    assert not store.consume("new", 9e9)


def test_pending_is_plain_data() -> None:
    [one] = paused().pending
    assert json.loads(json.dumps(dataclasses.asdict(one)))["arguments"] == {"path": "a"}


KILLED = 25 if is_fast() else 1000
KILLS = Path(__file__).with_name("approval_kills.py")


def kills(folder: Path, count: int) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, str(KILLS), str(folder), str(count)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_call_never_runs_twice_wherever_the_process_is_killed(tmp_path: Path) -> None:
    """The moments are spread evenly over all that the process does, so that they lie before the call, in it and behind."""
    outcome = kills(tmp_path, KILLED)
    assert outcome["twice"] == 0
    assert outcome["ran"] + outcome["never"] == outcome["right"] == KILLED
    assert min(outcome[what] for what in ("killed", "ran", "never", "kept")) > KILLED // 50


def test_a_call_with_a_blank_name_in_a_stored_conversation_changes_no_approval() -> None:
    """An earlier version stored such calls; the digest of the approval is of the conversation as it was then."""
    blank: Any = {"id": "x", "type": "function", "function": {"name": "", "arguments": "{}"}}
    before: Any = [
        {"role": "assistant", "content": None, "tool_calls": [blank]},
        {"role": "tool", "tool_call_id": "x", "content": "error: no name"},
    ]
    data = json.loads(paused().to_json())
    data["messages"][1:1] = before
    [one] = data["pending"]
    one["digest"] = call_digest(one["definition"], one["id"], one["arguments"], data["messages"][:3], one["expires"])
    after = resumed(data, {"c0": True})
    assert (after.text, removed) == ("Done.", ["a"])
    assert [call["function"]["name"] for call in after.messages[1].get("tool_calls", ())] == ["unnamed"]
