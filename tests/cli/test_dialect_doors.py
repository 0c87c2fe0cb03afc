"""`toolspeak dialects`, `parse`, `render`, `grammar` and `detect`, on files and pipes."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from world import ANSI, TOOLSPEAK, Cli, Terminal

import toolspeak as ts
from toolspeak.cli.command_group import root
from toolspeak.sources.dialect_writer import source_of

REPLY = 'Look: <tool_call>{"name": "add", "arguments": {"a": 1, "b": 2,}}</tool_call>'
TEMPLATE = """\
{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for c in m.tool_calls or [] %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def run(*args: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(root, args, input=stdin)


def read(*args: str, stdin: str | bytes = "") -> Any:
    """The JSON that a command prints."""
    done = run(*args, stdin=stdin)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


# ------------------------------------------------------------------ dialects


@pytest.mark.parametrize(
    ("file", "hint"), [("Hello there", True), ("Hello", True), ("missing.txt", False), ("a/b", False)]
)
def test_a_text_in_the_place_of_a_file_is_told_its_way(file: str, hint: bool) -> None:
    done = CliRunner().invoke(root, ["render", "--dialect", "hermes", file])
    assert done.exit_code == 2
    assert f"{file} cannot be read: No such file or directory" in done.stderr
    assert ("A text comes through a pipe" in done.stderr) == hint


def test_all_dialects_are_listed_with_a_call_that_they_read() -> None:
    rows = read("dialects")
    assert [row["name"] for row in rows] == ts.dialects()
    for row in rows:
        (call,) = ts.parse(row["call"], row["name"]).calls
        assert (call.name, set(call.arguments)) == ("weather", {"city", "days"}), row["name"]
    assert [row["name"] for row in read("dialects", "functools", "tool-json")] == ["functools", "tool-json"]


def test_on_a_terminal_they_are_a_table_of_one_line_each(terminal: Callable[..., Terminal]) -> None:
    code, seen = terminal("dialects", "hermes", "tool-json", COLUMNS="600").end()
    assert code == 0
    assert ANSI.search(seen)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    assert '<tool_call>⏎{"name": "weather", "arguments": {"city": "Rome", "days": 2}}⏎</tool_call>' in plain
    assert "qwen3," in plain and "qwen3:" not in plain and "qwen3-0" not in plain  # noqa: PT018
    assert plain.count("\n") == 3


def test_a_word_finds_dialects_by_their_names_and_models() -> None:
    names = [row["name"] for row in read("dialects", "qwen")]
    assert {"hermes", "qwen3-coder"} <= set(names)
    assert names == [name for name in ts.dialects() if name in names]
    assert len(names) < len(ts.dialects()) / 2
    assert [row["name"] for row in read("dialects", "QWEN", "hermes")] == names


def test_a_long_table_is_shown_by_the_pager(terminal: Callable[..., Terminal], place: Path) -> None:
    (place / "pager").write_text("#!/bin/sh\ncat > paged.txt\n")
    (place / "pager").chmod(0o755)
    how = {"PAGER": str(place / "pager"), "COLUMNS": "80", "LINES": "24"}
    code, seen = terminal("dialects", **how).end()
    assert (code, seen.strip()) == (0, "")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", (place / "paged.txt").read_text())
    assert max(map(len, plain.splitlines())) <= 80
    assert all(re.search(rf"^{name} ", plain, re.MULTILINE) for name in ts.dialects())
    (place / "paged.txt").unlink()
    code, seen = terminal("dialects", "hermes", **how).end()
    assert (code, "hermes" in seen, (place / "paged.txt").exists()) == (0, True, False)


def test_a_dialect_that_is_not_there_names_the_near_ones() -> None:
    done = run("dialects", "hermess")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "near ones: hermes" in done.stderr
    assert len(run("dialects", "qqqqqq").stderr) < 100


# ------------------------------------------------------------------ parse


def test_a_reply_is_read_from_a_file_and_from_a_pipe(place: Path) -> None:
    (place / "reply.txt").write_text(REPLY)
    told = read("parse", "reply.txt", "--dialect", "hermes")
    assert told == read("parse", "-d", "hermes", stdin=REPLY) == read("parse", "-", "-d", "hermes", stdin=REPLY)
    call = {"id": "call_1", "name": "add", "arguments": {"a": 1, "b": 2}, "whole": True}
    note = {"rule": "trailing-comma", "detail": "", "at": 61}
    assert told == {"text": "Look: ", "thought": "", "calls": [call], "finish": "tool_calls", "notes": [note]}


def test_the_newline_of_the_shell_is_no_part_of_the_text() -> None:
    assert read("parse", "-d", "hermes", stdin="Hello\n")["text"] == "Hello"
    assert read("parse", "-d", "hermes", stdin="Hello\r\n")["text"] == "Hello"
    assert read("parse", "-d", "hermes", stdin="Hello\n\n")["text"] == "Hello\n"
    assert read("parse", "-d", "hermes", stdin="\ufeffHello")["text"] == "Hello"
    cut = read("parse", "-d", "hermes", stdin='<tool_call>{"name": "add", "arguments": {"a": "x\n')
    assert (cut["calls"][0]["arguments"], cut["calls"][0]["whole"]) == ('{"a": "x', False)
    assert [note["rule"] for note in cut["notes"]] == ["cut"]
    assert cut["finish"] == "length"


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_events_are_shown_as_the_pieces_arrive(size: int) -> None:
    lines = run("parse", "-d", "hermes", "--stream", str(size), stdin=REPLY).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert "".join(row["fed"] for row in rows[:-1]) == REPLY
    assert all(len(row["fed"]) <= size for row in rows[:-1])
    assert rows[-1]["fed"] is None
    events = [event for row in rows for event in row["events"]]
    told = read("parse", "-d", "hermes", stdin=REPLY)
    assert "".join(e["text"] for e in events if e["event"] == "TextDelta") == told["text"]
    assert json.loads("".join(e["json"] for e in events if e["event"] == "ArgumentsDelta")) == {"a": 1, "b": 2}
    assert events[-1]["event"] == "Finished"


def test_tools_decide_what_is_a_call() -> None:
    other = '{"tool": "sub", "tool_input": {"a": 1}}'
    assert read("parse", "-d", "tool-json", stdin=f"See: {other}")["calls"]
    told = read("parse", "-d", "tool-json", "--tools", "weather.py", stdin=f"See: {other}")
    assert (told["text"], told["calls"]) == (f"See: {other}", [])
    assert read("parse", "-d", "hermes", "--no-tools", stdin=REPLY)["text"] == REPLY
    typed = "<function=add><parameter=a>1</parameter></function>"
    told = read("parse", "-d", "qwen3-coder", "--tools", "weather.py:add", stdin=f"<tool_call>{typed}</tool_call>")
    assert told["calls"][0]["arguments"] == {"a": 1}
    texts = '{"tool": "add", "tool_input": {"a": "2", "b": "x"}}'
    told = read("parse", "-d", "tool-json", "--tools", "weather.py:add", stdin=texts.replace('"x"', '"3"'))
    assert told["calls"][0]["arguments"] == {"a": 2, "b": 3}
    told = read("parse", "-d", "tool-json", "--tools", "weather.py:add", stdin=texts)
    assert told["calls"][0]["arguments"] == {"a": "2", "b": "x"}
    assert any("b" in problem for problem in told["calls"][0]["problems"])
    assert "problems" not in read("parse", "-d", "tool-json", stdin=texts)["calls"][0]


def test_a_prompt_may_end_inside_a_thought(place: Path) -> None:
    (place / "prompt.txt").write_text("<|im_start|>assistant\n<think>\n")
    told = read("parse", "-d", "hermes", "--prompt", "prompt.txt", stdin="Hm.</think>Yes.")
    assert (told["thought"], told["text"]) == ("Hm.", "Yes.")
    kept = read("parse", "-d", "hermes", "--keep-thoughts", stdin="<think>Hm.</think>Yes.")
    assert (kept["thought"], kept["text"]) == ("", "<think>Hm.</think>Yes.")


def test_much_text_is_read_and_a_closed_pipe_is_silent(place: Path) -> None:
    (place / "long.txt").write_text("x\n" * 200_000 + REPLY)
    told = read("parse", "long.txt", "-d", "hermes")
    assert (len(told["text"]), len(told["calls"])) == (400_006, 1)
    command = [*TOOLSPEAK, "parse", "long.txt", "-d", "hermes", "--stream", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None  # noqa: PT018
        assert json.loads(process.stdout.readline())["fed"] == "x"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_nothing_is_waited_for_on_a_terminal(terminal: Callable[..., Terminal]) -> None:
    for args in (["parse", "-d", "hermes"], ["render", "-d", "hermes"], ["detect"]):
        code, seen = terminal(*args).end()
        assert code == 2
        assert "expected" in seen.lower()


# ------------------------------------------------------------------ render


def test_a_question_becomes_a_prompt_to_the_byte(cli: Cli) -> None:
    done = cli("render", "-d", "functools", "--tools", "weather.py:add", stdin="What is 1 + 2?\n")
    assert done.stderr == ""
    assert done.stdout.startswith("<|begin_of_text|><|start_header_id|>system")
    assert "Add two numbers." in done.stdout
    assert done.stdout.endswith("What is 1 + 2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n")


def test_messages_are_a_list_or_a_request(place: Path) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    request = {"messages": messages, "tools": [{"type": "function", "function": {"name": "ping"}}]}
    (place / "request.json").write_text(json.dumps(request))
    with_tools = read("render", "request.json", "-d", "hermes", "--json")
    assert '"name": "ping"' in with_tools["prompt"]
    assert with_tools["stop"] == ["<|im_end|>"]
    alone = read("render", "-d", "hermes", "--json", stdin=json.dumps(messages))
    assert alone["messages"] == messages
    left_open = read("render", "-d", "hermes", "--json", "--continue-final", stdin=json.dumps(messages))
    assert left_open["prompt"].endswith("assistant\nHo")


def test_a_template_may_stand_in_a_configuration(place: Path) -> None:
    (place / "chat.jinja").write_text(TEMPLATE)
    config = {"bos_token": {"content": "<s>"}, "chat_template": [{"name": "default", "template": TEMPLATE}]}
    (place / "tokenizer_config.json").write_text(json.dumps(config))
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert run("render", "-d", "hermes", "--template", "chat.jinja", stdin="Hi").stdout == prompt
    assert run("render", "-d", "hermes", "--template", "tokenizer_config.json", stdin="Hi").stdout == "<s>" + prompt
    given = ("--template", "tokenizer_config.json", "--var", "bos_token=[B]")
    assert run("render", "-d", "hermes", *given, stdin="Hi").stdout == "[B]" + prompt


def test_what_is_lost_is_told_on_standard_error(place: Path) -> None:
    (place / "none.jinja").write_text("{{ nothing }}")
    done = run("render", "-d", "hermes", "--template", "none.jinja", stdin="Hi")
    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        "",
        "note: text-lost message 0\nnote: variable-not-given nothing\n",
    )


# ------------------------------------------------------------------ grammar


@pytest.mark.parametrize(
    ("form", "sign"),
    [("lark", "start: "), ("gbnf", "root ::= "), ("structural_tag", '"structural_tag"'), ("json_schema", '"const"')],
)
def test_a_grammar_in_each_form(form: str, sign: str) -> None:
    made = run("grammar", "-d", "tool-json", "--tools", "weather.py:add", "--choice", "required", "--form", form)
    assert (made.exit_code, made.stderr) == (0, "")
    assert sign in made.stdout


def test_what_a_grammar_does_not_enforce_is_named(tmp_path: Path) -> None:
    fields = {
        "a/b": {"type": "integer", "minimum": 3},
        "b": {"anyOf": [{"type": "string", "pattern": "^(?=x)a+"}, {"type": "null"}]},
        "c": {"type": "string", "pattern": "^(a|b)$"},
        "d": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1},
    }
    tools = [{"name": name, "parameters": {"type": "object", "properties": fields}} for name in ("f", "g")]
    (tmp_path / "tools.json").write_text(json.dumps(tools), "utf-8")
    always = {"f: /properties/b/anyOf/0/pattern", "f: /properties/d/uniqueItems"}
    for dialect, form, more in (
        ("tool-json", "lark", set[str]()),
        ("tool-json", "json_schema", set[str]()),
        ("hermes", "structural_tag", set[str]()),
        ("tool-json", "gbnf", {"f: /properties/a~1b/minimum"}),
        ("gemma3", "lark", {"f: /properties/a~1b/minimum"}),
    ):
        made = run("grammar", "-d", dialect, "-t", "tools.json", "--choice", "f", "--form", form)
        listed, _, advice = made.stderr.removeprefix("note: the grammar does not enforce ").partition(". ")
        assert set(listed.split(", ")) == always | more, (dialect, form)
        assert advice == "Check each call, as `toolspeak parse` does\n"


def test_what_may_be_called_is_chosen() -> None:
    given = ("grammar", "-d", "hermes", "--tools", "weather.py")
    assert "weather" in run(*given).stdout
    assert "noisy" not in run(*given, "--choice", "add").stdout
    assert run(*given, "--choice", "required", "--single").stdout != run(*given, "--choice", "required").stdout
    done = run(*given, "--choice", "subtract")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "an offered tool (weather, add" in done.stderr


# ------------------------------------------------------------------ detect


def test_a_dialect_is_detected_by_template_and_by_name(place: Path) -> None:
    (place / "chat.jinja").write_text(TEMPLATE)
    (place / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    call, thinking = read("dialects", "hermes")[0]["call"], {"open": "<think>", "close": "</think>", "always": False}
    wanted = {"dialect": "hermes", "origin": "by its chat template", "call": call, "thinking": thinking}
    named = ("--model", "Qwen2.5-7B", "--json")
    assert read("detect", "chat.jinja", *named) == read("detect", "tokenizer_config.json", *named) == wanted
    assert read("detect", *named, stdin="") == {**wanted, "origin": "by the model's name, Qwen2.5-7B"}
    shown = run("detect", stdin=TEMPLATE).stdout
    assert "(by its chat template)\n<tool_call>\n" in shown
    assert shown.endswith("</tool_call>\nthoughts: <think> … </think>\n")
    assert run("detect", "--model", "DeepSeek-R1").stdout.endswith("thoughts: <think> … </think>, always\n")
    assert read("detect", "--model", "nobody", "--json")["dialect"] == "tool-json"


def test_a_template_stands_in_weights_too(place: Path) -> None:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    pair = text("tokenizer.chat_template") + struct.pack("<I", 8) + text(TEMPLATE)
    (place / "weights.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + pair)
    assert read("detect", "weights.gguf", "--model", "Qwen2.5", "--json")["dialect"] == "hermes"
    shown = run("render", "-d", "hermes", "--template", "weights.gguf", stdin="Hi")
    assert shown.stdout == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


def test_what_a_tokenizer_declares_is_believed_where_it_can_be(place: Path) -> None:
    calls = {"open": "<run>", "close": "</run>", "content": "json"}
    (place / "declared.json").write_text(json.dumps({"response_template": {"fields": {"tool_calls": calls}}}))
    told = read("detect", "declared.json", "--json")
    assert told["origin"] == "declared by its response template"
    assert told["call"].startswith("<run>")
    odd = {"response_template": {"fields": {"tool_calls": {**calls, "content": "kv-lines"}}}}
    (place / "odd.json").write_text(json.dumps(odd))
    assert run("detect", "odd.json").exit_code == 2
    (place / "both.json").write_text(json.dumps({**odd, "chat_template": TEMPLATE}))
    done = run("detect", "both.json")
    assert (done.exit_code, "fields.tool_calls.content" in done.stderr) == (0, True)
    assert "(by its chat template)" in done.stdout


def test_a_dialect_is_printed_as_the_file_that_makes_it() -> None:
    template = TEMPLATE.replace("tool_call>", "use>").replace('"name"', '"fn"').replace('"arguments"', '"args"')
    made: dict[str, Any] = {}
    exec(run("detect", "--source", stdin=template).stdout, made)
    assert made["DRAFTED"] == ts.detect(template)
    for name in ts.dialects():
        exec(source_of(ts.dialect(name)), made)
    assert {d.name: d for d in made.values() if isinstance(d, ts.Dialect)} == {
        "drafted": made["DRAFTED"], **{name: ts.dialect(name) for name in ts.dialects()}
    }  # fmt: skip


@pytest.mark.parametrize(("named", "outcome"), [((), (1, "tool-json")), (("--model", "Qwen3-8B"), (0, "hermes"))])
def test_a_template_that_cannot_be_rendered_is_reported(named: tuple[str, ...], outcome: tuple[int, str]) -> None:
    done = run("detect", "-", *named, stdin="{% for m in messages %}{{ m.content }}")
    assert (done.exit_code, done.stdout.partition(" ")[0]) == outcome
    assert done.stderr.startswith("note: the chat template cannot be rendered: ")


# ------------------------------------------------------------------ wrong usage


@pytest.mark.parametrize(
    ("args", "stdin", "message"),
    [
        (["parse", "none.txt", "-d", "hermes"], "", "none.txt cannot be read: No such file"),
        (["parse", ".", "-d", "hermes"], "", ". cannot be read: Is a directory"),
        (["parse", "-d", "hermess"], "", "near ones: hermes"),
        (["parse"], "", "'-d' / '--dialect'"),
        (["parse", "-d", "hermes"], b"\xff\xfe", "standard input is not UTF-8: byte 0xff at offset 0"),
        (["parse", "latin.txt", "-d", "hermes"], "", "latin.txt is not UTF-8: byte 0xfc at offset 1"),
        (["parse", "-d", "hermes", "--stream", "0"], "", "0 is not in the range"),
        (["parse", "-d", "hermes", "--prompt", "-"], "", "standard input can be read only once"),
        (["parse", "-d", "hermes", "--no-tools", "--tools", "weather.py"], "", "use one of them"),
        (["parse", "-d", "hermes", "--tools", "wether.py"], "", "Did you mean weather.py?"),
        (["render", "-d", "hermes"], " \n", "the input is empty: expected messages"),
        (["render", "-d", "hermes"], '[{"role": }]', "the messages are not JSON"),
        (["render", "-d", "hermes"], "[" * 100_000, "the messages are not JSON"),
        (["render", "-d", "hermes"], '["Hi"]', "expected a list of messages"),
        (["render", "-d", "hermes"], '{"messages": "Hi"}', "expected a list of messages"),
        (["render", "-d", "hermes"], "[]", "Expected non-empty messages"),
        (["render", "-d", "hermes"], '[{"role": "martian", "content": "Hi"}]', "Invalid role martian"),
        (["render", "-d", "hermes", "--template", "none.jinja"], "Hi", "none.jinja cannot be read"),
        (["render", "-d", "hermes", "--template", "-"], "Hi", "standard input can be read only once"),
        (["render", "-d", "hermes", "--template", "broken.jinja"], "Hi", "the chat template cannot be rendered"),
        (["render", "-d", "hermes", "--template", "weather.py"], "Hi", "weather.py contains no chat template"),
        (["render", "-d", "hermes", "--var", "bos"], "Hi", "expected NAME=VALUE, got 'bos'"),
        (["render", "-d", "hermes", "--continue-final"], "Hi", "expected an assistant's message to continue"),
        (["grammar", "-d", "hermes"], "", "a grammar needs tools: expected --tools FILE"),
        (
            ["grammar", "-d", "hermes", "--tools", "weather.py", "--form", "json_schema"],
            "",
            "no JSON Schema can express",
        ),
        (["grammar", "-d", "hermes", "--tools", "weather.py", "--form", "regex"], "", "'regex' is not one of"),
        (
            ["detect", "none.jinja"],
            "",
            "there is no file none.jinja. If this is the name of a model: --model none.jinja",
        ),
        (["detect", "weather.py"], "", "weather.py contains no chat template"),
        (["detect"], "", "standard input contains no chat template"),
        (["detekt"], "", "No such command 'detekt'. Did you mean 'detect'?"),
        (["detect", "not.gguf"], "", "not.gguf is no GGUF file"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(args: list[str], stdin: str | bytes, message: str, place: Path) -> None:
    (place / "broken.jinja").write_text("{% for")
    (place / "latin.txt").write_bytes(b"f\xfcr")
    (place / "not.gguf").write_bytes(b"PK")
    done = run(*args, stdin=stdin)
    assert (done.exit_code in (1, 2), done.stdout) == (True, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1 or done.stderr.startswith("Usage: ")


def test_empty_input_is_an_empty_reply() -> None:
    told = read("parse", "-d", "hermes", stdin="")
    assert told == {"text": "", "thought": "", "calls": [], "finish": "stop", "notes": []}
