"""`toolspeak mcp --policy`: the official client's user is asked about a call by elicitation, before and after the revision of
the protocol in which a call ends with the question."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from preloaded import Started
from preloaded_command import toolspeak_command
from toolspeak.secret_removal import Secrets

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
types: Any = pytest.importorskip("mcp.types", reason="the extra mcp is not installed")

PATIENT = 600.0
FUNCTIONS = '''\
from pathlib import Path


def remove(path: str, days: int = 0) -> str:
    """Remove a file."""
    with Path(__file__).with_name("removed.txt").open("a") as log:
        log.write(f"{path} {days}\\n")
    return f"removed {path}"


def facts(city: str) -> str:
    """Facts of a city."""
    return city


def wipe() -> str:
    """Wipe it all."""
    raise AssertionError
'''
POLICY = 'allow = ["facts"]\nask = ["remove"]\ndeny = ["wipe"]\n'


class Person:
    """Answers what a client is asked, and keeps the questions."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.questions = list(answers), []

    async def __call__(self, _: Any, asked: Any) -> Any:
        self.questions.append(asked.message)
        assert asked.requested_schema == {"type": "object", "properties": {}}
        answer = self.answers.pop(0)
        return answer if isinstance(answer, types.ErrorData) else types.ElicitResult(action=answer, content={})


def removed(folder: Path) -> list[str]:
    path = folder / "removed.txt"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "policy.toml").write_text(POLICY)
    files = ["--tools", str(tmp_path / "functions.py"), "--policy", str(tmp_path / "policy.toml")]
    return ["mcp", *files]


@asynccontextmanager
async def over_stdio(command: list[str], **options: Any) -> AsyncIterator[Any]:
    program, *args = [*toolspeak_command(), *command]
    about = mcp.StdioServerParameters(command=program, args=args)
    async with mcp.Client(about, **options) as client:
        yield client


@asynccontextmanager
async def over_http(command: list[str], **options: Any) -> AsyncIterator[Any]:
    with Started([*command, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        hello = next(line for line in iter(server.stderr.readline, "") if line.startswith("serving"))
        async with mcp.Client(hello.split()[-1], **options) as client:
            yield client
        server.terminate()
        assert server.wait(PATIENT) == 0


def talk(opened: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with opened as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(main(), PATIENT))


def said(done: Any) -> str:
    return done.content[0].text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("door", [over_stdio, over_http])
def test_a_call_runs_when_the_user_accepts(command: list[str], tmp_path: Path, door: Any, mode: str) -> None:
    person = Person("accept", "decline", "cancel")

    async def work(client: Any) -> list[Any]:
        calls = [("facts", {"city": "Oslo"}), ("remove", {"path": "a\x1b[2J\u202eb", "days": "2"})]
        calls += [("remove", {"path": "b"}), ("remove", {"path": "c"}), ("wipe", {})]
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    free, accepted, declined, closed, denied = talk(door(command, elicitation_callback=person, mode=mode), work)
    assert [one.is_error for one in (free, accepted, declined, closed, denied)] == [False, False, True, True, True]
    assert removed(tmp_path) == ["a\x1b[2J\u202eb 2"]
    assert said(declined) == "the call of 'remove' was not approved: the user declined"
    assert said(closed) == "the call of 'remove' was not approved: the user closed the question"
    assert "refused by the policy: deny wipe" in said(denied)
    assert len(person.questions) == 3
    assert person.questions[0] == (
        "May the tool remove run with these arguments?\n"
        '{\n "path": "a\\u001b[2J\\u202eb",\n "days": 2\n}\n'  # as they are after the check, nothing of them hidden
        "This is asked because of the policy: ask remove"
    )


def test_a_function_of_the_user_answers_for_toolspeaks_own_client(command: list[str], tmp_path: Path) -> None:
    """It may be async; what it raises, and questions that nobody answers, are errors of the call."""
    asked: list[tuple[str, Any]] = []
    answers: list[Any] = [{}, None, ValueError("no terminal")]

    def answer(message: str, schema: Any) -> Any:
        asked.append((message.partition("\n")[0], schema))
        given = answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    async def later(message: str, schema: Any) -> Any:
        return {}

    call = {"name": "remove", "arguments": {"path": "a"}}
    with ts.mcp([*toolspeak_command(), *command], pins=False, elicit=answer) as tools:
        assert tools.call(call) == "removed a"
        with pytest.raises(ts.ToolError, match="the user declined"):
            tools.call(call)
        with pytest.raises(ts.ToolError, match="the question was not answered: no terminal"):
            tools.call(call)
    assert asked == [("May the tool remove run with these arguments?", {"type": "object", "properties": {}})] * 3
    with ts.mcp([*toolspeak_command(), *command], pins=False, elicit=later) as tools:
        assert tools.call(call) == "removed a"
    with (
        ts.mcp([*toolspeak_command(), *command], pins=False) as tools,
        pytest.raises(ts.ToolError, match="waits for approval"),
    ):
        tools.call(call)
    assert len(removed(tmp_path)) == 2


def test_it_answers_questions_of_older_servers_and_addresses_to_open(command: list[str], tmp_path: Path) -> None:
    from toolspeak.sources.mcp.server_questions import QuestionHandler

    asked: list[str] = []
    questions = QuestionHandler(lambda message, schema: asked.append(message) or {}, lambda: Secrets(()))
    with questions.running():
        done = talk(
            over_stdio(command, elicitation_callback=questions, mode="legacy"),
            lambda client: client.call_tool("remove", {"path": "a"}),
        )
        assert (done.is_error, removed(tmp_path)) == (False, ["a 0"])
        link = types.ElicitRequestURLParams(message="Log in:", url="http://127.0.0.1:9/login", elicitation_id="1")
        answer = asyncio.run(questions(None, link))
    assert (answer.action, answer.content, asked[-1]) == ("accept", None, "Log in:\nhttp://127.0.0.1:9/login")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_that_cannot_ask_is_told_what_to_do(command: list[str], tmp_path: Path, mode: str) -> None:
    done = talk(over_stdio(command, mode=mode), lambda client: client.call_tool("remove", {"path": "a"}))
    assert (done.is_error, removed(tmp_path)) == (True, [])
    assert said(done) == (
        "the call of 'remove' waits for approval: ask remove. This client cannot ask its user, since it does not support "
        "elicitation: use one that does, or allow the call in the policy that the server was started with"
    )


def test_a_client_that_fails_to_ask(command: list[str], tmp_path: Path) -> None:
    person = Person(types.ErrorData(code=-32603, message="the window is gone"))
    opened = over_stdio(command, elicitation_callback=person, mode="legacy")
    done = talk(opened, lambda client: client.call_tool("remove", {"path": "a"}))
    assert (done.is_error, removed(tmp_path)) == (True, [])
    assert said(done) == (
        "the call of 'remove' was not approved: the client could not ask its user: the window is gone"
    )


def test_an_answer_counts_once_and_for_its_call_alone(command: list[str], tmp_path: Path) -> None:
    """By hand, as a client may: an answer without a question, with another call's, with its own, and again."""

    async def work(client: Any) -> tuple[list[bool], Any]:
        yes = {"approval": types.ElicitResult(action="accept", content={})}
        waits: list[bool] = []

        async def call(path: str, state: str | None, answers: Any = yes) -> Any:
            done = await client.session.call_tool(
                "remove", {"path": path}, input_responses=answers, request_state=state, allow_input_required=True
            )
            waits.append(isinstance(done, types.InputRequiredResult))
            return done

        await call("a", None)
        await call("a", "made up")
        state = (await call("a", None)).request_state
        state = (await call("b", state)).request_state  # the question was of a, and is used up
        await call("a", state)
        state = (await call("a", None)).request_state
        await call("a", state, None)  # no answer came with it
        state = (await call("a", None)).request_state
        done = await call("a", state)
        await call("a", state)
        return waits, done

    waits, done = talk(over_stdio(command, elicitation_callback=Person()), work)
    assert waits == [True] * 8 + [False, True]
    assert (said(done), removed(tmp_path)) == ("removed a", ["a 0"])


def test_calls_side_by_side_are_each_asked_about(command: list[str], tmp_path: Path) -> None:
    person = Person(*["accept"] * 8)

    async def work(client: Any) -> list[Any]:
        return await asyncio.gather(*(client.call_tool("remove", {"path": str(i)}) for i in range(8)))

    done = talk(over_http(command, elicitation_callback=person), work)
    assert [said(one) for one in done] == [f"removed {i}" for i in range(8)]
    assert sorted(removed(tmp_path)) == [f"{i} 0" for i in range(8)]
    assert len(person.questions) == 8
