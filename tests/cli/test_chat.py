"""`toolspeak chat`: a conversation on a terminal and through a pipe, kept on disk."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from world import Cli, Terminal, wants

Script = Callable[..., str]
Start = Callable[..., Terminal]


def stored(place: Path) -> dict[str, Any]:
    (path,) = (place / "state" / "toolspeak" / "chats").glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return json.loads(path.read_text("utf-8"))


def test_each_line_of_a_pipe_is_a_question(cli: Cli, script: Script, place: Path) -> None:
    model = script("Hello.", wants("weather", city="Oslo"), "Sunny.")
    done = cli("chat", "-t", "weather.py", "-m", model, "-s", "Be brief", stdin="Hi\n\nWeather?\n")
    assert (done.returncode, done.stdout) == (0, "Hello.\nSunny.\n")
    assert '→ weather {"city": "Oslo"}\n← Sunny in Oslo, 21 °C\n' in done.stderr
    roles = [one["role"] for one in stored(place)["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/modle scripted:x", "there is no /modle. Did you mean '/model'? /help lists the commands."),
        ("/tool weather", "there is no /tool. Did you mean '/tools'?"),
        ("/what", "there is no /what. /help lists the commands. To ask the model this, put a word before it"),
        ("/retry it", "/retry: expected nothing behind it"),
        ("/exit now", "/exit: expected nothing behind it"),
    ],
)
def test_an_unknown_command_is_no_question(cli: Cli, place: Path, line: str, why: str) -> None:
    done = cli("chat", "-m", "scripted:Hello.", stdin=f"{line}\nHi\n")
    assert (done.returncode, done.stdout) == (2, "Hello.\n")
    assert why in done.stderr


@pytest.mark.parametrize("line", ["/etc/hosts is what?", "/etc/hosts", "// a comment", "What is /help?"])
def test_what_is_no_command_is_a_question(cli: Cli, place: Path, line: str) -> None:
    assert cli("chat", "-m", "scripted:Hello.", stdin=f"{line}\n").stdout == "Hello.\n"
    assert stored(place)["messages"][0]["content"] == line


def test_a_conversation_goes_on(cli: Cli, place: Path) -> None:
    cli("chat", "-m", "scripted:One.", stdin="First\n")
    done = cli("chat", "--continue", "-m", "scripted:Two.", stdin="Second\n")
    assert done.stdout == "Two.\n"
    assert [one["content"] for one in stored(place)["messages"]] == ["First", "One.", "Second", "Two."]


def test_a_continued_conversation_has_its_model(cli: Cli, serve: Callable[..., str], place: Path) -> None:
    """The embedded model answered, and nothing told of it."""
    model = f"{serve()}#m"
    cli("chat", "-m", model, stdin="First\n")
    for env in ({}, {"TOOLSPEAK_MODEL": "scripted:Another."}):
        done = cli("chat", "--continue", stdin="Second\n", **env)
        assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr
        assert stored(place)["model"] == model
    done = cli("chat", "--continue", "-m", "scripted:Two.", stdin="Third\n")
    assert done.stdout == "Two.\n"
    assert f"scripted continues a conversation with {model}\n" in done.stderr
    done = cli("chat", "--continue", stdin="Fourth\n")  # a script has no name by which it could be found
    assert (done.returncode, done.stdout) == (2, "")
    assert "the saved conversation is with 'scripted': no model is called 'scripted'" in done.stderr
    assert "Name a model: --model" in done.stderr


def test_what_cannot_be_continued_is_told(cli: Cli, place: Path) -> None:
    done = cli("chat", "-c", "-m", "scripted:x")
    assert done.returncode == 2
    assert "there is no conversation to continue" in done.stderr
    chats = place / "state" / "toolspeak" / "chats"
    chats.mkdir(parents=True)
    (chats / "1.json").write_text('{"messages": [')
    done = cli("chat", "-c", "-m", "scripted:x")
    assert done.returncode == 2
    assert "cannot be continued" in done.stderr


def test_bad_input_through_a_pipe(cli: Cli, script: Script) -> None:
    done = cli("chat", "-m", "scripted:x", stdin=b"a\xff\n")
    assert done.returncode == 2
    assert "standard input is not UTF-8" in done.stderr
    done = cli("chat", "-m", script("One."), stdin="a\nb\n")
    assert (done.returncode, done.stdout) == (1, "One.\n")
    assert done.stderr.startswith("error: ")


def test_a_conversation_on_a_terminal(terminal: Start, script: Script, place: Path) -> None:
    one = terminal("chat", "-t", "weather.py", "-m", script("Hello.", wants("weather", city="Oslo"), "Sunny."))
    one.until("/help for help")
    one.until("> ")
    one.type("Hi\n")
    one.until("Hello.")
    one.until("> ")
    one.type("/help\n")
    one.until("/reset")
    one.until("> ")
    one.type("/what\n")
    one.until("there is no /what")
    one.until("> ")
    one.type("Weather?\n")
    one.until("Sunny in Oslo, 21")
    one.until("Sunny.")
    one.until("> ")
    one.type("Too much\n")  # the script is at its end: told, and the conversation goes on
    one.until("error: the script")
    one.until("> ")
    one.type("\x04")
    code, _ = one.end()
    assert code == 0
    assert [one["role"] for one in stored(place)["messages"]][-1] == "assistant"


def test_ctrl_c_stops_the_answer_then_the_program(terminal: Start, script: Script, place: Path) -> None:
    one = terminal("chat", "-t", "weather.py", "-m", script(wants("slow", seconds=60), "Never."))
    one.until("> ")
    one.type("Be slow\n")
    one.until("begun")
    one.type("\x03")
    one.until("stopped")
    one.until("> ")
    time.sleep(0.5)  # line editing misses a signal that comes while it is setting itself up
    one.type("\x03")
    code, seen = one.end()
    assert code == 130
    assert "Traceback" not in seen
    assert not (place / "state").exists()


def test_reset_begins_anew(terminal: Start, script: Script, place: Path) -> None:
    one = terminal("chat", "-m", script("One.", "Two."))
    one.until("> ")
    one.type("First\n")
    one.until("One.")
    one.until("> ")
    one.type("/reset\n")
    one.until("a new conversation")
    one.until("> ")
    one.type("Second\n")
    one.until("Two.")
    one.until("> ")
    one.type("/exit\n")
    assert one.end()[0] == 0
    kept = sorted((place / "state" / "toolspeak" / "chats").glob("*.json"))
    assert [len(json.loads(path.read_text("utf-8"))["messages"]) for path in kept] == [2, 2]


def test_a_retry_that_fails_keeps_the_answer_that_there_was(terminal: Start, script: Script, place: Path) -> None:
    one = terminal("chat", "-m", script("One."))
    one.until("> ")
    one.type("First\n")
    one.until("One.")
    one.until("> ")
    one.type("/retry\n")
    one.until("was asked for one more")
    one.until("> ")
    one.type("/save talk.json\n")
    one.until("saved 2 messages")
    one.type("/exit\n")
    assert one.end()[0] == 0


def test_commands_through_a_pipe(cli: Cli, script: Script, place: Path) -> None:
    lines = "Hello?\n/tools\n/retry\n/model scripted:Other.\nAnd you?\n/explain\n/save talk.json\n"
    done = cli("chat", "--tools", "weather.py:add", "--model", script("One.", "Two."), stdin=lines)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["One.", "Two.", "Other."]
    for told in (
        "add: Add two numbers.",
        "scripted, prompted in ",
        "1 tool: add",
        "model: scripted",
        "saved 4 messages in talk.json",
    ):
        assert told in done.stderr
    saved = json.loads((place / "talk.json").read_text())
    assert [message["content"] for message in saved["messages"]] == ["Hello?", "Two.", "And you?", "Other."]
    assert oct((place / "talk.json").stat().st_mode)[-2:] == "00"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/retry", "no question was asked yet"),
        ("/explain", "no question was asked yet"),
        ("/model gpt", "no model is called 'gpt'"),
        ("/save weather.py", "weather.py exists already"),
        ("/save", "no name was given"),
    ],
)
def test_commands_that_cannot_be(cli: Cli, line: str, why: str) -> None:
    """On a terminal and in a pipe, the conversation goes on; the exit code of the pipe says that something was wrong."""
    done = cli("chat", "--model", "scripted:x", stdin=f"{line}\nHi\n")
    assert (done.returncode, done.stdout, why in done.stderr) == (2, "x\n", True)


def test_a_retry_that_fails_ends_a_pipe(cli: Cli, script: Script) -> None:
    done = cli("chat", "--model", script("One."), stdin="Hi\n/retry\n/model nonsense\n")
    assert (done.returncode, done.stdout) == (1, "One.\n")
    assert "nonsense" not in done.stderr


def test_a_continued_conversation_has_its_tools(cli: Cli, script: Script, place: Path) -> None:
    cli("chat", "--tools", "weather.py:add", "--model", "scripted:Hello.", stdin="Hi")
    call = '{"tool": "add", "tool_input": {"a": 3, "b": 4}}'
    (place / "elsewhere").mkdir()
    done = cli("chat", "--continue", "--model", script(call, "It is 7."), stdin="/tools\n3 plus 4?")
    assert (done.returncode, done.stdout) == (0, "It is 7.\n"), done.stderr
    assert "add: Add two numbers." in done.stderr
    assert (
        "add: Add two numbers." not in cli("chat", "--continue", "--tools", "weather.py:noisy", stdin="/tools").stderr
    )
