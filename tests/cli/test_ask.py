"""`toolspeak ask`: answers, tools, pipes, errors."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import threading
from collections.abc import AsyncGenerator, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from world import ANSI, TOOLSPEAK, Cli, Terminal, wants

import toolspeak as ts
from preloaded import Started
from toolspeak.cli.run_view import Show, show_no_call, show_open, watch
from toolspeak.cli.terminal import Out
from toolspeak.drive import Done
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta
from toolspeak.types import Note

Script = Callable[..., str]


def test_the_answer_alone_goes_to_standard_output(cli: Cli, script: Script) -> None:
    done = cli("ask", "Weather?", "-t", "weather.py", "-m", script(wants("weather", city="Oslo"), "Sunny in Oslo."))
    assert (done.returncode, done.stdout) == (0, "Sunny in Oslo.\n")
    assert done.stderr == '→ weather {"city": "Oslo"}\n← Sunny in Oslo, 21 °C\n'


def test_words_before_a_call_are_no_answer_when_piped(cli: Cli, script: Script) -> None:
    first = "Let me look.\n" + wants("weather", city="Oslo")
    done = cli("ask", "Weather?", "-t", "weather.py", "-m", script(first, "Sunny."))
    assert done.stdout == "Sunny.\n"
    assert done.stderr.splitlines()[:2] == ["Let me look.", '→ weather {"city": "Oslo"}']


@pytest.mark.parametrize(
    ("cities", "why"),
    [
        (["Oslo"] * 4, "the model made the same call with the same result 3 times: weather"),
        (
            [f"Oslo {i}" for i in range(17)],
            "the run reached its limit of 16 steps; to raise it: limits={'steps': …} (--steps of ask, chat and resume)",
        ),
    ],
    ids=["repeats", "steps"],
)
def test_a_run_that_ends_by_a_limit_says_which(cli: Cli, script: Script, cities: list[str], why: str) -> None:
    replies = [wants("weather", city=city) for city in cities]
    done = cli("ask", "Weather?", "-t", "weather.py", "-m", script(*replies))
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[-1]) == (1, f"error: the model gave no answer: {why}")
    assert "stopped" not in done.stderr
    assert sum(line.startswith("→") for line in lines) == len(cities) - 1
    done = cli("ask", "Weather?", "-t", "weather.py", "-m", script(*replies[:-1], "I gave up."))
    assert (done.stdout, done.stderr.splitlines()[-1]) == ("I gave up.\n", f"stopped: {why}")


@pytest.mark.parametrize("args", [["-"], [], ["Summarise this:", "-"]])
def test_standard_input_is_read(cli: Cli, args: list[str]) -> None:
    done = cli("ask", *args, "--explain", "-m", "scripted:x", stdin="the piped text ü\n")
    assert done.returncode == 0
    assert "the piped text ü" in done.stdout
    assert ("Summarise this:\n\nthe" in done.stdout) == (len(args) == 2)


def test_standard_input_is_left_alone_when_there_is_a_question(cli: Cli) -> None:
    read, write = os.pipe()  # nobody writes to it and nobody closes it
    try:
        process = Started(["ask", "hi", "-m", "scripted:hello"], stdin=read, stdout=subprocess.PIPE)
        out, _ = process.communicate(timeout=60)
    finally:
        os.close(read)
        os.close(write)
    assert out == b"hello\n"


def test_words_need_no_quotes(cli: Cli) -> None:
    assert "what is up" in cli("ask", "what", "is", "up", "--explain", "-m", "scripted:x").stdout


@pytest.mark.parametrize(
    ("args", "stdin", "message"),
    [
        (["-"], b"a\xffb", "standard input is not UTF-8: byte 0xff at offset 1"),
        (["-"], b" \n", "the question is empty"),
        ([b"caf\xe9"], b"", "the question is not UTF-8"),
        (["hi", "-m", "nothing"], b"", "no model is called 'nothing'"),
        (["hi", "-t", "wether.py"], b"", "there is no file wether.py. Did you mean weather.py?"),
        (["hi", "-t", "nofile.py"], b"", "there is no file nofile.py\n"),
        (["hi", "-t", "weather.yp"], b"", "there is no file weather.yp. Did you mean weather.py?"),
        (["hi", "-t", "weather.py:wether"], b"", "weather.py has no wether. Did you mean weather?"),
        (["hi", "-t", "state"], b"", "state is a folder"),
        (["hi", "-t", "weather.py", "-t", "weather.py:add"], b"", "two tools are named 'add'"),
        (["hi", "--explain", "--dry-run"], b"", "use one of them"),
        (["hi", "-t", "weather.py", "--approve", "-m", "scripted:x"], b"", "--approve needs a terminal to ask on"),
    ],
)
def test_wrong_usage_is_told_in_a_line(cli: Cli, place: Path, args: list[str], stdin: bytes, message: str) -> None:
    (place / "state").mkdir()
    process = Started(  # a session of its own has no terminal
        ["ask", *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    out, err = process.communicate(stdin, timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert message in err.decode()
    assert "Traceback" not in err.decode()


BROKEN = {
    "def f(:\n": "broken.py, line 1: SyntaxError",
    "import os\nimport nothing_of_that_name\n": "broken.py, line 2: ModuleNotFoundError: No module named",
    "x = 1\n\ny = x / 0\n": "broken.py, line 3: ZeroDivisionError: division by zero\n    y = x / 0",
    "raise SystemExit(3)\n": "broken.py, line 1: SystemExit: 3. It ends the program when it is loaded",
    "x = 1\n": "broken.py has no public function",
    "a = '\xe9'\n": "broken.py",
    "import beside\n": "beside.py, line 1: SyntaxError",
    "def f(x: 'Nothing'): ...\n": "f",
}


@pytest.mark.parametrize("source", BROKEN)
def test_a_broken_tools_file_is_told_with_its_line(cli: Cli, place: Path, source: str) -> None:
    (place / "broken.py").write_text(source, "latin-1")
    (place / "beside.py").write_text("def g(:\n")
    done = cli("ask", "hi", "-t", "broken.py", "-m", "scripted:x")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert BROKEN[source] in done.stderr
    assert "Traceback" in cli("--debug", "ask", "hi", "-t", "broken.py", "-m", "scripted:x", "--debug").stderr


def test_no_bytecode_is_left_beside_a_tools_file(cli: Cli, place: Path) -> None:
    cli("tools", "weather.py")
    assert not (place / "__pycache__").exists()


def test_the_model_failed(cli: Cli, script: Script) -> None:
    done = cli("ask", "hi", "-m", "http://127.0.0.1:9/v1#x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    done = cli("ask", "Weather?", "-t", "weather.py", "-m", script(wants("weather", city="Oslo")))
    assert done.returncode == 1
    assert "error: the script holds 1 reply" in done.stderr
    done = cli("ask", "hi", "-m", script(" "))
    assert done.returncode == 1
    assert "the model gave no answer" in done.stderr


def test_a_thought_that_was_cut_off_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    reply = ts.Reply(thought="Okay, wait, maybe", finish="length", usage=ts.Usage(completion_tokens=200))
    show_open(reply)
    show_no_call(reply, "http://127.0.0.1:9/v1")
    error = capsys.readouterr().err
    assert "the reply was cut off at 200 tokens, inside its thought; to allow more: --max-tokens" in error
    assert "doctor" not in error


def test_a_call_that_another_reading_replaces_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    show = Show(None, live=False)
    for event in (
        *(CallStart("weather", "a"), ArgumentsDelta("{}"), CallEnd()),
        *(CallStart("weather", ""), ArgumentsDelta('{"city": "Rome"}'), CallEnd(id="b")),
        *(Noted(Note("superseded-call", "a")), Finished("tool_calls")),
    ):
        show.event(event)
    assert "note: not run, since another call is a better reading of the same: weather {}" in capsys.readouterr().err


def test_v_shows_the_notes_of_a_reply(cli: Cli, script: Script) -> None:
    done = cli(
        "ask", "Weather?", "-t", "weather.py", "-m", script("Hm.\n</think>\nIt rains."), "--dialect", "hermes", "-v"
    )
    assert "stray-closer: </think>" in done.stderr


def test_a_tool_failed(cli: Cli, script: Script) -> None:
    done = cli("ask", "hi", "-t", "weather.py", "-m", script(wants("broken", word="bread"), "Sorry."))
    assert (done.returncode, done.stdout) == (1, "Sorry.\n")
    assert "✗" in done.stderr
    assert "no bread today" in done.stderr


def test_a_long_call_and_a_long_error_are_shortened_and_say_where_the_rest_is(cli: Cli, script: Script) -> None:
    long = {f"field_{n}": "x" * 50 for n in range(60)}
    size = len(json.dumps(long))
    model = script(wants("weather", **long), wants("weather", city="y" * 5_000), "Sorry.")
    done = cli("ask", "hi", "-t", "weather.py", "-m", model)
    shown, problems, second, *_ = done.stderr.splitlines()
    assert shown.startswith('→ weather {"field_0": "xxx')
    assert shown.endswith(f"… ({size:,} characters; --json has all of it)")
    assert problems.startswith("✗ the call of 'weather' cannot be run: unknown argument")
    assert problems.endswith(" characters; --json has all of it)")
    assert second.endswith("… (5,012 characters; --json has all of it)")
    assert max(map(len, done.stderr.splitlines())) < 1_100
    whole = cli("ask", "hi", "-t", "weather.py", "-m", model, "--json")
    assert "y" * 5_000 in whole.stdout


def test_a_failure_that_was_made_good_is_none(cli: Cli, script: Script) -> None:
    model = script(wants("broken", word="bread"), wants("weather", city="Oslo"), "Sunny.")
    assert cli("ask", "hi", "-t", "weather.py", "-m", model).returncode == 0


def test_json_is_one_object_whatever_tools_print(cli: Cli, script: Script) -> None:
    done = cli("ask", "hi", "-t", "weather.py", "-m", script(wants("noisy", word="x"), "Done."), "--json")
    told = json.loads(done.stdout)
    assert (told["text"], told["finish"]) == ("Done.", "stop")
    assert told["steps"][0]["calls"][0]["name"] == "noisy"
    assert told["steps"][0]["results"][0]["value"] == {"word": "x"}
    assert [one["role"] for one in told["messages"]] == ["user", "assistant", "tool", "assistant"]
    for noise in ("printed", "written", "from a child"):
        assert noise in done.stderr


def test_dry_run_decides_and_runs_nothing(cli: Cli, script: Script, place: Path) -> None:
    (place / "mark.py").write_text("def mark(name: str) -> None:\n    'Makes a file.'\n    open(name, 'w')\n")
    done = cli("ask", "hi", "-t", "mark.py", "-m", script(wants("mark", name="made")), "--dry-run")
    assert (done.returncode, done.stdout) == (0, 'mark {"name": "made"}\n')
    done = cli("ask", "hi", "-t", "mark.py", "-m", script(wants("mark", name="made")), "--dry-run", "--json")
    assert json.loads(done.stdout)["calls"][0]["arguments"] == {"name": "made"}
    assert cli("ask", "hi", "-t", "mark.py", "-m", "scripted:Just words", "--dry-run").stdout == "Just words\n"
    assert not (place / "made").exists()


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        ('deny = ["weather"]', "✗ the policy refuses this call: deny weather\n"),
        ('ask = ["weather"]', "✗ this call needs approval: ask weather\n"),
        ('allow = ["weather"]', ""),
    ],
)
def test_dry_run_says_what_the_policy_says(cli: Cli, script: Script, place: Path, rules: str, line: str) -> None:
    (place / "p.toml").write_text(rules)
    ask = (
        "ask",
        "hi",
        "-t",
        "weather.py",
        "-m",
        script(wants("weather", city="Oslo")),
        "--dry-run",
        "--policy",
        "p.toml",
    )
    done = cli(*ask)
    assert (done.returncode, done.stdout, done.stderr) == (0, 'weather {"city": "Oslo"}\n', line)
    (decision,) = json.loads(cli(*ask, "--json").stdout)["decisions"]
    assert decision["verdict"] == rules.partition(" ")[0]


def test_explain_sends_nothing(cli: Cli) -> None:
    done = cli("ask", "How warm?", "-t", "weather.py:weather", "-m", "http://127.0.0.1:9/v1#m", "--explain")
    assert done.returncode == 0
    assert "POST http://127.0.0.1:9/v1/chat/completions" in done.stdout
    assert '"weather"' in done.stdout
    done = cli("ask", "How warm?", "-m", "http://127.0.0.1:9/v1#m", "-s", "Be brief", "--explain", "--json")
    sent = json.loads(json.loads(done.stdout)["body"])
    assert [one["content"] for one in sent["messages"]] == ["Be brief", "How warm?"]


def test_schemas_can_be_decided_on_and_not_run(cli: Cli, script: Script, place: Path) -> None:
    (place / "tools.json").write_text(cli("tools", "weather.py:weather").stdout, "utf-8")
    model = script(wants("weather", city="Oslo"))
    assert cli("ask", "hi", "-t", "tools.json", "-m", model, "--dry-run").stdout == 'weather {"city": "Oslo"}\n'
    done = cli("ask", "hi", "-t", "tools.json", "-m", model)
    assert done.returncode == 2
    assert "a schema without a function cannot be run" in done.stderr
    (place / "bad.json").write_text('[\n{"name": }]')
    assert "bad.json, line 2, column 10" in cli("ask", "hi", "-t", "bad.json", "--dry-run").stderr


def test_what_only_an_application_can_give_is_missed_before_a_model_is_asked(cli: Cli, place: Path) -> None:
    source = "from typing import Annotated\nimport toolspeak as ts\n\n"
    source += "def count(table: str, db: Annotated[object, ts.Injected]) -> int:\n    return 3\n"
    (place / "rows.py").write_text(source, "utf-8")
    for command in (("ask", "hi"), ("chat",)):
        done = cli(*command, "-t", "rows.py", "-m", "scripted:Just words", stdin="hi\n")
        assert (done.returncode, done.stdout) == (2, "")
        assert "the tool 'count' needs db from the application: Toolbox(..., inject={'db': ...})" in done.stderr
    assert cli("ask", "hi", "-t", "rows.py", "-m", "scripted:Just words", "--dry-run").returncode == 0


def test_the_embedded_model_answers_with_a_tool(cli: Cli) -> None:
    done = cli("ask", "What is the weather in Xiamen?", "-t", "weather.py:weather", "-m", "local")
    assert done.returncode == 0, done.stderr
    assert "Xiamen" in done.stdout
    assert "21" in done.stdout
    assert '→ weather {"city": "Xiamen"' in done.stderr


# ------------------------------------------------------------------ terminals, signals, pipes


def test_piped_output_is_plain(cli: Cli, script: Script) -> None:
    done = cli("ask", "hi", "-t", "weather.py", "-m", script(wants("add", a=1, b=2), "3"), FORCE_COLOR="1")
    assert not ANSI.search(done.stdout + done.stderr)


def test_a_terminal_has_colours_unless_they_are_not_wanted(terminal: Callable[..., Terminal], script: Script) -> None:
    model = script(wants("weather", city="Oslo"), "Sunny.")
    code, seen = terminal("ask", "hi", "-t", "weather.py", "-m", model).end()
    assert code == 0
    assert "\x1b[" in seen
    assert "Sunny." in seen
    code, seen = terminal("ask", "hi", "-t", "weather.py", "-m", model, NO_COLOR="1").end()
    assert (code, "\x1b[" in seen, "→ weather" in seen) == (0, False, True)


def test_a_model_cannot_write_control_characters_to_a_terminal(terminal: Callable[..., Terminal]) -> None:
    _, seen = terminal("ask", "hi", "-m", "scripted:red \x1b[31m\x9b and \u202eback", NO_COLOR="1").end()
    assert "red ␛[31m\\x9b and \\u202eback" in seen


@pytest.mark.parametrize(("answer", "ran"), [("y\n", True), ("n\n", False), ("\x04", False)])
def test_approval_is_asked_for_on_the_terminal(
    terminal: Callable[..., Terminal], script: Script, answer: str, ran: bool
) -> None:
    model = script(wants("weather", city="Oslo"), "Well.")
    one = terminal("ask", "hi", "-t", "weather.py", "-m", model, "--approve")
    one.until('run weather {"city": "Oslo"} ? [y/n/e=edit/a=always] ')
    one.type(answer)
    code, seen = one.end()
    assert code == 0
    assert ("Sunny in Oslo" in seen) == ran
    assert ("the user declined" in seen) == (not ran)


@pytest.mark.parametrize("early", ["y\n", "y\ny\ny\n", "y"])
def test_what_was_typed_before_the_question_is_no_answer(
    terminal: Callable[..., Terminal], script: Script, early: str
) -> None:
    """Each question waits for an answer of its own, also the second one after a call that took its time."""
    model = script(wants("slow", seconds=0.01), wants("weather", city="Oslo"), "Well.")
    one = terminal("ask", "hi", "-t", "weather.py", "-m", model, "--approve", NO_COLOR="1")
    one.type(early)  # long before the program has begun
    one.until('run slow {"seconds": 0.01} ? [y/n/e=edit/a=always] ')
    one.type("y\ny\n")  # the second line comes before the second question
    one.until('run weather {"city": "Oslo"} ? [y/n/e=edit/a=always] ')
    one.type("n\n")
    code, seen = one.end()
    assert code == 0
    assert "Sunny in Oslo" not in seen
    assert "the user declined" in seen


def test_approval_is_asked_for_on_the_terminal_though_the_question_is_piped(script: Script) -> None:
    read, write = os.pipe()
    os.write(write, b"hi")
    os.close(write)
    one = Terminal("ask", "-", "-t", "weather.py", "-m", script(wants("add", a=1, b=2), "3."), "--approve", stdin=read)
    try:
        os.close(read)
        one.until("[y/n/e=edit/a=always] ")
        one.type("y\n")
        code, seen = one.end()
    finally:
        one.close()
    assert code == 0
    assert re.search(r"← .*3", seen)


@pytest.mark.parametrize("command", ["ask", "call"])
def test_ctrl_c_in_the_middle_of_a_call_is_prompt_and_silent(command: str, script: Script) -> None:
    args = {
        "ask": ["ask", "hi", "-t", "weather.py", "-m", script(wants("slow", seconds=60), "x")],
        "call": ["call", "weather.py:slow", '{"seconds": 60}'],
    }[command]
    process = Started(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "begun" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(2)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")


def test_ctrl_c_while_the_embedded_model_thinks() -> None:
    process = Started(
        ["ask", "Tell me a very long story", "-m", "local"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.send_signal(2)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")


def test_a_closed_pipe_is_silent(script: Script) -> None:
    command = '"$@" | head -1; echo "${PIPESTATUS[0]}"'
    model = script("line\n" * 20000)
    for args in (["ask", "hi", "-m", model], ["tools", *["weather.py"]], ["models", "list", "--json"]):
        done = subprocess.run(
            ["bash", "-c", command, "x", *TOOLSPEAK, *args], capture_output=True, text=True, timeout=60
        )
        assert done.stderr == ""
        assert done.stdout.endswith("\n0\n")
    done = subprocess.run(["bash", "-c", '"$@" | true', "x", *TOOLSPEAK, "--help"], capture_output=True, timeout=60)
    assert done.stderr == b""


def test_a_full_disk_is_told() -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" > /dev/full', "x", *TOOLSPEAK, "ask", "hi", "-m", "scripted:hello"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_closed_standard_streams_do_no_harm() -> None:
    for closing in ("<&-", ">&-", "2>&-"):
        done = subprocess.run(
            ["bash", "-c", f'"$@" {closing}', "x", *TOOLSPEAK, "ask", "hi", "-m", "scripted:hello"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, ""), closing


def test_sampling_settings_reach_the_body(cli: Cli) -> None:
    options = [
        "--temperature",
        "0.5",
        "--top-p",
        "0.9",
        "--top-k",
        "40",
        "--max-tokens",
        "7",
        "--seed",
        "3",
        "--stop",
        "END",
        "--stop",
        ".",
    ]
    model = ["-m", "http://127.0.0.1:9/v1#m"]
    done = cli("ask", "hi", "--explain", "--json", *options, "--extra-body", '{"min_p": 0.1}', *model)
    sent = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "max_tokens": 7,
        "min_p": 0.1,
        "seed": 3,
        "stop": ["END", "."],
    }
    assert json.loads(json.loads(done.stdout)["body"]).items() >= sent.items()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--extra-body", "[1]"], "expected a JSON object"),
        (["--extra-body", "{"], "expected a JSON object"),
        (["--extra-body", '{"messages": []}'], "extra_body: messages cannot be set there"),
        (["--stop", ""], "stop: expected a string"),
        (["--seed", "x"], "'x' is not a valid integer"),
        (["--temperature", "9"], "temperature: expected a number from 0 to 2, received 9.0"),
    ],
)
def test_settings_that_cannot_be_are_usage_errors(cli: Cli, options: list[str], words: str) -> None:
    done = cli("ask", "hi", "-m", "scripted:x", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


class Ignores(BaseHTTPRequestHandler):
    """A server that takes tools and ignores them."""

    def do_POST(self) -> None:
        text = 'Look: {"functionName": "add", "args": {"a": 1, "b": 2}}'
        chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, *_: object) -> None: ...


def test_what_looks_like_a_call_is_told(place: Path, cli: Cli) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Ignores) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        ask = ("ask", "1 + 2?", "-t", "weather.py:add", "-m", f"{url}#gemma-3-4b-it")
        told = [cli(*ask), cli(*ask, "--dry-run"), cli(*ask, "--dialect", "hermes")]
        server.shutdown()
    for done in told:
        assert "functionName" in done.stdout
        assert "note: a part of the text looks like a call of add" in done.stderr


def test_an_answer_of_a_server_that_drops_tools_comes_once(cli: Cli, serve: Callable[..., str]) -> None:
    """Standard output had the reply to the request whose tools were dropped, and the one to the next request."""
    done = cli("ask", "Weather?", "-t", "weather.py", "-m", f"{serve(ignores=True)}#m")
    assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr
    assert "hello" not in done.stderr


def test_a_text_that_was_meant_as_a_call_is_no_answer(cli: Cli, script: Script) -> None:
    meant = "<tool_call>\nthe weather of Oslo\n</tool_call>"
    for command, stdin in ((("ask", "Weather?"), ""), (("chat",), "Weather?\n")):
        model = script(meant, "Sunny.")
        done = cli(*command, "-t", "weather.py", "-m", model, "-d", "hermes", stdin=stdin)
        assert (done.stdout, done.returncode) == ("Sunny.\n", 0), done.stderr
        assert "the weather of Oslo" in done.stderr


CALL = [CallStart("f", "c0"), ArgumentsDelta("{}"), CallEnd()]
AGAIN, ENDED = Noted(Note("re-asked", "why")), Finished("stop")


@pytest.mark.parametrize(
    ("events", "answer", "rejected"),
    [
        ([TextDelta("One."), ENDED], "One.\n", ""),
        ([TextDelta("One."), ENDED, AGAIN, TextDelta("Two."), ENDED], "Two.\n", "One.\n"),
        ([TextDelta("One."), AGAIN, TextDelta("Two."), ENDED], "Two.\n", "One.\n"),
        ([TextDelta("One."), ENDED, AGAIN, TextDelta("Two."), ENDED, AGAIN, ENDED], "", "One.\nTwo.\n"),
        ([TextDelta("One."), ENDED, AGAIN, *CALL, ENDED, TextDelta("3"), ENDED], "3\n", "One.\n→ f {}\n"),
    ],
    ids=["no re-ask", "whole reply", "cut reply", "twice", "then a call"],
)
def test_only_the_reply_that_counts_is_the_answer(
    events: list[Event], answer: str, rejected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run() -> AsyncGenerator[Event | Done[ts.Reply]]:
        for event in events:
            yield event
        yield Done(ts.Reply())

    out = io.StringIO()
    watch(run(), Show(Out(out), live=False))
    assert (out.getvalue(), capsys.readouterr().err) == (answer, rejected)


def test_the_limits_of_a_run_are_options(cli: Cli, script: Script) -> None:
    model = script(*(wants("weather", city=f"Oslo {i}") for i in range(3)), "Sunny.")
    done = cli("ask", "Weather?", "-t", "weather.py", "-m", model, "--steps", "2")
    assert "its limit of 2 steps; to raise it: limits={'steps': …} (--steps of ask, chat and resume)" in done.stderr
    assert sum(line.startswith("→") for line in done.stderr.splitlines()) == 2
    done = cli("ask", "Weather?", "-t", "weather.py", "-m", model, "--calls", "1", "--json")
    assert json.loads(done.stdout)["finish"] == "limit"
    assert done.returncode == 1  # there is no answer
    circling = script(*[wants("weather", city="Oslo")] * 3, "Sunny.")
    for more, code in (([], 3), (["--calls", "2"], 3), (["--json"], 3)):
        done = cli("ask", "Weather?", "-t", "weather.py", "-m", circling, *more)
        assert (done.returncode, "Sunny." in done.stdout) == (code, True), done.stderr
    done = cli("chat", "-t", "weather.py", "-m", model, "--calls", "1", stdin="Weather?\n")
    assert "its limit of 1 calls" in done.stderr
    wrong = cli("ask", "Weather?", "-t", "weather.py", "-m", model, "--steps", "0")
    assert (wrong.returncode, "0 is not in the range" in wrong.stderr) == (2, True)


def test_an_answer_without_a_call_says_how_to_see_why(cli: Cli, script: Script) -> None:
    prose = cli("ask", "Weather?", "-t", "weather.py", "-m", script("It is sunny."))
    assert (prose.returncode, prose.stdout) == (0, "It is sunny.\n")
    assert prose.stderr == "note: no tool was called; --explain shows what the model gets\n"
    assert cli("ask", "Weather?", "-m", script("It is sunny.")).stderr == "", "no tool was offered"
    late = cli("ask", "Weather?", "-t", "weather.py", "-m", script("It is sunny."), "--seconds", "1e-9")
    assert "its limit of 1e-09 seconds" in late.stderr
    assert "no tool was called" not in late.stderr
