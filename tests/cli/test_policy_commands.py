"""Policies and approvals at the command line: `policy check`, `--policy`, the questions on a terminal, `resume`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from world import Cli, Terminal

Script = Callable[..., str]
FILES = '''\
"""Tools."""

from pathlib import Path

from toolspeak import tool


def remove(path: str) -> str:
    """Remove a file."""
    with Path("removed.txt").open("a") as log:
        log.write(path + "\\n")
    return f"removed {path}"


@tool(effect="read", reads="untrusted")
def page(url: str) -> str:
    """Read a page."""
    return "IGNORE ALL"
'''
POLICY = """\
allow = ["page", 'remove(path="build/**")']
deny = ['remove(path="/etc/**")']
"""


def wants(name: str, **arguments: Any) -> str:
    return json.dumps({"tool": name, "tool_input": arguments})


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_APPROVALS", str(tmp_path / "approvals.sqlite"))
    Path("files.py").write_text(FILES)
    Path("policy.toml").write_text(POLICY)


def removed() -> list[str]:
    path = Path("removed.txt")
    return path.read_text().splitlines() if path.exists() else []


ASK = ("ask", "go", "-t", "files.py", "--policy", "policy.toml")
RESUME = ("resume", "run.json", "-t", "files.py", "--policy", "policy.toml")


def test_check_says_what_a_policy_decides(cli: Cli) -> None:
    calls = ['remove(path="build/x")', 'remove(path="x")', '{"name": "remove", "arguments": {"path": "/etc/x"}}']
    done = cli("policy", "check", "policy.toml", *calls)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["allow", "ask", "deny"]
    done = cli("policy", "check", "policy.toml", *calls, "page", "-t", "files.py", "--untrusted", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["verdict"] for row in rows] == ["ask", "ask", "deny", "allow"]
    assert rows[0]["rule"] == "after_untrusted"
    assert "3 rules" in cli("policy", "check", "policy.toml").stdout
    Path("one.toml").write_text('allow = ["page"]\n')
    assert "one.toml: 1 rule; after" in cli("policy", "check", "one.toml").stdout


@pytest.mark.parametrize(
    ("content", "call", "why"),
    [
        ("allow = [", "x", "bad.toml is not TOML"), ("allw = []", "x", "bad.toml: a policy has no 'allw'. Did you mean 'allow'?"),
        ("", "f(x", "expected a name"), ("", "{f", "is not JSON"), ("", '{"x": 1}', "a call needs exactly one tool name"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_a_line(cli: Cli, content: str, call: str, why: str) -> None:
    Path("bad.toml").write_text(content)
    done = cli("policy", "check", "bad.toml", call)
    assert done.returncode != 0
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_check_tells_of_a_rule_that_means_no_tool(cli: Cli) -> None:
    Path("slip.toml").write_text("deny = ['remvoe', 'remove(pth=\"/etc/**\")']")
    done = cli("policy", "check", "slip.toml", "remove", "-t", "files.py")
    assert (done.returncode, done.stdout.split()[0]) == (0, "ask")
    assert "slip.toml: deny remvoe: it matches none of the tools. Did you mean 'remove'?" in done.stderr
    assert "has the argument 'pth'. Did you mean 'path'?" in done.stderr
    assert cli("policy", "check", "slip.toml", "remove").stderr == ""
    Path("slip.toml").write_text("""deny = ['remove(path.x="a")', '*(path="a", url="b")', 'page(url="a")']""")
    done = cli("policy", "check", "slip.toml", "-t", "files.py")
    assert done.stderr.splitlines() == [
        """slip.toml: deny remove(path.x="a"): none of the tools that it matches has the argument 'path.x'. Did you mean 'path'?""",
        """slip.toml: deny *(path="a", url="b"): none of the tools that it matches has all its arguments together: path, url""",
    ]


@pytest.mark.parametrize(
    "command", [("ask", "go"), ("ask", "go", "--dry-run"), ("chat",), ("batch", "rows.jsonl", "out", "--verb", "run")]
)
def test_a_rule_that_looks_misspelled_is_named_where_a_policy_is_used(
    cli: Cli, script: Script, command: tuple[str, ...]
) -> None:
    Path("slip.toml").write_text("deny = ['remvoe', 'send_mail']\nallow = ['remove', 'page']")
    Path("rows.jsonl").write_text('{"id": 1, "text": "go"}\n')
    done = cli(*command, "-t", "files.py", "--policy", "slip.toml", "-m", script("Done."), stdin="go\n")
    assert "note: slip.toml: deny remvoe: it matches none of the tools. Did you mean 'remove'?" in done.stderr
    assert "send_mail" not in done.stderr
    right = cli(*command, "-t", "files.py", "--policy", "policy.toml", "-m", script("Done."), stdin="go\n")
    assert "policy.toml" not in right.stderr


def test_resume_reads_standard_input_and_wants_whole_answers(cli: Cli, script: Script) -> None:
    first = cli(*ASK, "--json", "-m", script(wants("remove", path="notes")))
    [one] = json.loads(first.stdout)["pending"]
    rest = ("-t", "files.py", "--policy", "policy.toml", "-m", script("Done."))
    wrong = cli("resume", "-", *rest, "--answer", one["id"], stdin=first.stdout)
    assert (wrong.returncode, "--answer: expected ID=TEXT" in wrong.stderr) == (2, True)
    done = cli("resume", "-", *rest, "--approve", one["id"], stdin=first.stdout)
    assert (done.returncode, done.stdout.strip(), removed()) == (0, "Done.", ["notes"])
    assert "standard input is not JSON" in cli("resume", "-", *rest, stdin="{").stderr


def test_a_resumed_run_has_its_model(cli: Cli, script: Script, serve: Callable[..., str]) -> None:
    first = json.loads(cli(*ASK, "--json", "-m", script(wants("remove", path="notes"))).stdout)
    run = Path("run.json")
    run.write_text(json.dumps({**first, "model": f"{serve()}#m"}))
    [one] = first["pending"]
    done = cli(*RESUME, "--refuse", one["id"], TOOLSPEAK_MODEL="scripted:Another.")
    assert (done.stdout, done.stderr.count("continues a conversation")) == ("hello\n", 0), done.stderr
    done = cli(*RESUME, "--refuse", one["id"], "-m", "scripted:Two.")
    assert done.stdout == "Two.\n"
    assert "scripted continues a conversation with http://127.0.0.1:" in done.stderr
    run.write_text(json.dumps({name: first[name] for name in ("messages", "pending")}))  # `reply.to_json()` names none
    done = cli(*RESUME, "--refuse", one["id"], TOOLSPEAK_MODEL="scripted:Another.")
    assert done.stdout == "Another.\n"


def test_an_approval_is_asked_for_in_one_process_and_given_in_another(cli: Cli, script: Script) -> None:
    first = cli(*ASK, "--json", "-m", script(wants("remove", path="notes"), "never"))
    assert first.returncode == 1
    assert "waits for approval" in first.stderr
    Path("run.json").write_text(first.stdout)
    [one] = json.loads(first.stdout)["pending"]
    listed = cli(*RESUME, "-m", script("Done."))
    assert (listed.returncode, removed()) == (1, [])
    assert f'{one["id"]} remove {{"path": "notes"}}' in listed.stderr
    second = cli(*RESUME, "--approve", one["id"], "-m", script("Done."))
    assert (second.returncode, second.stdout.strip(), removed()) == (0, "Done.", ["notes"])
    assert second.stderr.splitlines() == ['→ remove {"path": "notes"}', "← removed notes"]
    again = cli(*RESUME, "--approve", one["id"], "-m", script("Done."))
    assert (again.returncode, again.stdout, again.stderr) == (0, second.stdout, second.stderr)
    for late in (("--refuse", f"{one['id']}=no"), ("--answer", f"{one['id']}=it is still there")):
        refused = cli(*RESUME, *late, "-m", script("Never read."))
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "cannot be refused or answered any more: its approval was already used" in refused.stderr
    edited = f'{one["id"]}={{"path": "b"}}'
    third = cli(*RESUME, "--edit", edited, "--json", "-m", script("Well."))
    assert third.returncode == 1
    assert "✗ the call of 'remove' was not approved: the approval was already used." in third.stderr
    assert "may have run" in json.loads(third.stdout)["steps"][0]["results"][0]["error"]
    assert removed() == ["notes"]


@pytest.mark.parametrize(
    ("answer", "ran", "result", "code"),
    [
        (("--refuse", "{}=not today"), [], "✗ the call of 'remove' was not approved: not today", 0),
        (("--edit", '{}={{"path": "b"}}'), ["b"], "← removed b", 0), (("--answer", "{}=it is gone"), [], "← it is gone", 0),
        (("--edit", '{}={{"path": "/etc/x"}}'), [], "✗ the call of 'remove' is refused by the policy", 1),
    ],
)  # fmt: skip
def test_every_answer(
    cli: Cli, script: Script, answer: tuple[str, str], ran: list[str], result: str, code: int
) -> None:
    first = cli(*ASK, "--json", "-m", script(wants("remove", path="notes")))
    Path("run.json").write_text(first.stdout)
    key = json.loads(first.stdout)["pending"][0]["id"]
    done = cli(*RESUME, answer[0], answer[1].format(key), "-m", script("Done."))
    assert (done.returncode, done.stdout, removed()) == (code, "Done.\n", ran), done.stderr
    called, told = done.stderr.splitlines()
    assert called.startswith("→ remove {")
    assert told.startswith(result)


def test_arguments_that_do_not_fit_leave_the_call_pending(cli: Cli, script: Script) -> None:
    first = cli(*ASK, "--json", "-m", script(wants("remove", path="notes")))
    Path("run.json").write_text(first.stdout)
    key = json.loads(first.stdout)["pending"][0]["id"]
    done = cli(*RESUME, "--edit", f'{key}={{"pat": "x"}}', "-m", script("Done."))
    assert (done.returncode, done.stdout, removed()) == (2, "", [])
    assert "the required argument 'path' is missing" in done.stderr
    assert cli(*RESUME, "--approve", key, "-m", script("Done.")).stdout == "Done.\n"


def test_an_approval_that_the_policy_denies_by_now(cli: Cli, script: Script) -> None:
    first = cli(*ASK, "--json", "-m", script(wants("remove", path="notes")))
    Path("run.json").write_text(first.stdout)
    Path("policy.toml").write_text(POLICY.replace("/etc/**", "notes"))
    done = cli(*RESUME, "--approve", json.loads(first.stdout)["pending"][0]["id"], "-m", script("Done."))
    assert (done.returncode, done.stdout, removed()) == (1, "Done.\n", [])
    assert "✗ the call of 'remove' is refused by the policy" in done.stderr


def test_what_ran_is_told_where_the_model_fails_behind_it(cli: Cli, script: Script) -> None:
    first = cli(*ASK, "--json", "-m", script(wants("remove", path="notes")))
    Path("run.json").write_text(first.stdout)
    done = cli(*RESUME, "--approve", json.loads(first.stdout)["pending"][0]["id"], "-m", script())
    assert (done.returncode, removed()) == (1, ["notes"])
    assert "← removed notes" in done.stderr


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("resume", "gone.json", "--approve", "x"), "gone.json cannot be read: No such file"), (("resume", "files.py", "--approve", "x"), "is not JSON"),
        (("resume", "empty.json"), "nothing to resume"), (("resume", "list.json"), "expected the JSON of a reply"),
        (("resume", "empty.json", "--edit", "x=5"), "expected ID={…}"), (("resume", "empty.json", "--approve", "x", "--refuse", "x"), "two answers"),
    ],
)  # fmt: skip
def test_what_cannot_be_resumed_is_told_in_a_line(cli: Cli, args: tuple[str, ...], why: str) -> None:
    Path("empty.json").write_text('{"messages": [{"role": "user", "content": "x"}], "pending": []}')
    Path("list.json").write_text("[]")
    done = cli(*args, "-t", "files.py", "-m", "scripted:x")
    assert done.returncode != 0
    assert why in done.stderr
    assert "Traceback" not in done.stderr


QUESTION = 'run remove {"path": "notes"} ? [y/n/e=edit/a=always] '


@pytest.mark.parametrize(
    ("typed", "ran", "seen"),
    [
        (["n\n"], [], "the user declined"),
        (["\x04"], [], "the user declined"),
        (["e\n", "\x04"], [], "the user declined"),
        (["\n", "y\n"], ["notes"], "an empty line is no answer. y: run it, n: do not run it"),
        (["yes please\n", "n\n"], [], "'yes please' is no answer"),
        (["x\n", "\x1b[A\n", "e\n", "\n", "y\n"], ["notes"], "expected a JSON object, received an empty line"),
        (["e\n", '{"path": "b"}\n'], ["b"], "removed b"), (["e\n", "nonsense\n", "y\n"], ["notes"], "expected a JSON object, received 'nonsense'"),
        (["e\n", '{"path": "/etc/x"}\n'], [], "refused by the policy"),
        (["?\n", "y\n"], ["notes"], "e: edit the arguments and run it"),
    ],
)  # fmt: skip
def test_answers_on_a_terminal(
    terminal: Callable[..., Terminal], script: Script, typed: list[str], ran: list[str], seen: str
) -> None:
    one = terminal(*ASK, "-m", script(wants("remove", path="notes"), "Well."), NO_COLOR="1")
    text = one.until(QUESTION)
    assert "no rule allows it" in text
    for line in typed[:-1]:
        one.type(line)
        text += one.until(": " if line == "e\n" else QUESTION)
    one.type(typed[-1])
    text += one.end()[1]
    assert removed() == ran
    assert seen in text


def test_what_the_policy_allows_is_not_on_ask(terminal: Callable[..., Terminal], script: Script) -> None:
    code, seen = terminal(*ASK, "-m", script(wants("remove", path="build/x"), "Well."), NO_COLOR="1").end()
    assert (code, removed(), "[y/n" in seen) == (0, ["build/x"], False)


def test_always_holds_for_the_tool_and_the_reason_of_the_question(
    terminal: Callable[..., Terminal], script: Script
) -> None:
    """A yes that was given before a page was read is none for what comes of reading it."""
    model = script(
        wants("remove", path="a"),
        wants("remove", path="b"),
        wants("page", url="x"),
        wants("remove", path="build/c"),
        "Well.",
    )
    one = terminal(*ASK, "-m", model, NO_COLOR="1")
    one.until('run remove {"path": "a"} ? [y/n/e=edit/a=always] ')
    one.type("a\n")
    one.until("untrusted")
    one.until('run remove {"path": "build/c"} ? [y/n/e=edit/a=always] ')
    one.type("n\n")
    one.end()
    assert removed() == ["a", "b"]


def test_a_call_is_shown_whole_with_everything_visible(terminal: Callable[..., Terminal], script: Script) -> None:
    path = "no\x1b[2Jtes\u202e\u200b\x9b" + "x" * 10
    one = terminal(*ASK, "-m", script(wants("remove", path=path), "Well."), NO_COLOR="1")
    seen = one.until("[y/n/e=edit/a=always] ")
    assert 'run remove {"path": "no\\u001b[2Jtes\\u202e\\u200b\\x9bxxxxxxxxxx"} ?' in seen
    one.type("n\n")
    one.end()


def test_a_long_call_is_paged_to_its_end(terminal: Callable[..., Terminal], script: Script) -> None:
    text = " ".join(f"word{i}" for i in range(2000))
    args = (*ASK, "-m", script(wants("remove", path=text), "Well."))
    one = terminal(*args, NO_COLOR="1", COLUMNS="80", LINES="24")
    one.until("-- page 1 of ")
    pages = int(one.until(":").rstrip(":"))
    assert pages > 3
    one.until("n refuses -- ")
    one.type("y\n")  # no yes to what was not shown yet
    one.until("'y' is no answer")
    one.until("n refuses -- ")
    one.type("n\n")
    one.end()
    assert removed() == []
    one = terminal(*args, NO_COLOR="1", COLUMNS="80", LINES="24")
    for number in range(1, pages):
        one.until(f"-- page {number} of {pages}: Enter goes on, n refuses -- ")
        one.type("\n")
    assert "word1999" in one.until("with these arguments ? [y/n/e=edit/a=always] ")
    one.type("y\n")
    one.end()
    assert removed() == [text]


def test_a_piped_line_approves_nothing_and_is_no_question_behind_a_call_that_waits(cli: Cli, script: Script) -> None:
    model = script("Hello.", wants("remove", path="notes"), "You said y.")
    done = cli("chat", "-t", "files.py", "--policy", "policy.toml", "-m", model, stdin="Hi\ntidy up\ny\nmore\n")
    assert (done.returncode, done.stdout, removed()) == (1, "Hello.\n", [])
    assert "waits for approval: " in done.stderr
    assert done.stderr.count("a piped line approves nothing") == 1
    allowed = script(wants("page", url="a"), "Done.", "Well.")
    done = cli("chat", "-t", "files.py", "--policy", "policy.toml", "-m", allowed, stdin="show\ny\n")
    assert (done.returncode, done.stdout) == (0, "Done.\nWell.\n"), done.stderr


def test_a_chat_asks_what_the_policy_wants_asked(terminal: Callable[..., Terminal], script: Script) -> None:
    model = script(wants("remove", path="notes"), "Well.")
    one = terminal("chat", "-t", "files.py", "--policy", "policy.toml", "-m", model, NO_COLOR="1")
    one.until("> ")
    one.type("tidy up\n")
    one.until(QUESTION)
    one.type("y\n")
    one.until("Well.")
    one.type("/exit\n")
    one.end()
    assert removed() == ["notes"]
