"""`--dialect NAME|FILE` at every door of the command line and in the gateway's configuration."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import toolspeak as ts
from toolspeak.cli.command_group import root
from toolspeak.gateway.config.load import read_config
from toolspeak.sources.dialect_files import load_dialect
from toolspeak.wire.dialect import ARGS, ID, NAME, Json, JsonCall

MINE = """\
from toolspeak.wire.dialect import NAME, Dialect, Json

MINE = Dialect("mine", ("<do ", NAME, ">", Json(), "</do>"))
"""
DECLARED = {"chat_template": "{% for m in messages %}{% for c in m.tool_calls or [] %}<act>{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}</act>{% endfor %}{{ m.content or '' }}{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"}  # fmt: skip
TEXTS = {
    "hermes": '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    "mine.py": '<do weather>{"city": "Oslo"}</do>',
    "declared.json": '<act>{"name": "weather", "arguments": {"city": "Oslo"}}</act>',
}


def run(*args: str, stdin: str = "") -> Result:
    return CliRunner().invoke(root, args, input=stdin)


@pytest.fixture(autouse=True)
def files(place: Path) -> Path:
    (place / "mine.py").write_text(MINE, "utf-8")
    (place / "declared.json").write_text(json.dumps(DECLARED), "utf-8")
    return place


@pytest.mark.parametrize("dialect", TEXTS)
def test_each_door_takes_a_name_and_a_file(files: Path, dialect: str) -> None:
    text = TEXTS[dialect]
    (files / "script.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (text, "Sunny.")), "utf-8")
    model = ("-m", f"scripted:{files}/script.jsonl", "-t", "weather.py:weather", "-d", dialect)
    parsed = json.loads(run("parse", "-d", dialect, "-", stdin=text).stdout)
    assert parsed["calls"][0]["arguments"] == {"city": "Oslo"}
    assert json.loads(run("call", "weather.py:weather", "-", "-d", dialect, "--json", stdin=text).stdout).startswith(
        "Sunny in Oslo"
    )
    asked = json.loads(run("ask", "Weather?", "--json", *model).stdout)
    assert (asked["text"], asked["steps"][0]["calls"][0]["arguments"]) == ("Sunny.", {"city": "Oslo"})
    assert json.loads(run("ask", "Weather?", "--dry-run", "--json", *model).stdout)["calls"][0]["name"] == "weather"
    assert "Sunny." in run("chat", *model, stdin="Weather?\n").stdout
    assert run("ask", "Weather?", "--explain", *model).exit_code == 0
    assert json.loads(run("route", "Weather?", "--json", *model).stdout)["shown"] == ["weather"]
    assert run("render", "-", "-d", dialect, "-t", "weather.py:weather", stdin="Weather?").exit_code == 0
    assert run("grammar", "-d", dialect, "-t", "weather.py:weather").exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is sunny.", "expected one call of weather in the dialect hermes, found none"),
        (TEXTS["hermes"] * 2, "found 2: weather, weather"),
        (TEXTS["hermes"].replace("weather", "other"), "expected one call of weather in the dialect hermes, found"),
        (TEXTS["hermes"][:45], "it was cut off: the reply ended before the call did"),
        (TEXTS["hermes"].replace('"}', '"}, "x": 1', 1), "can be read in more than one way .unknown-key: x"),
    ],
)
def test_no_call_is_run_that_was_not_written(text: str, words: str) -> None:
    done = run("call", "weather.py:weather", "-", "-d", "hermes", stdin=text)
    assert done.exit_code != 0
    assert done.stdout == ""
    assert re.search(words, f"{done.exception} {done.stderr}")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.py", None, "there is no such file"),
        ("none.py", "x = 1\n", "expected one Dialect, such as MINE = Dialect(…), found none"),
        ("two.py", MINE + 'OTHER = Dialect("other", ("<o>", NAME, Json()))\n', "found 2 of them: 'mine', 'other'"),
        ("broken.py", "def\n", "SyntaxError"),
        ("plain.json", "{}", "declares no dialect"),
        ("broken.json", "{", "broken.json, line 1, column 2: not JSON"),
        ("useless.py", MINE.replace("Json()", '"x"'), "has no arguments"),
        ("hermse", None, "near ones: hermes"),
    ],
)
def test_a_file_that_holds_no_dialect(cli: Any, files: Path, name: str, content: str | None, words: str) -> None:
    if content is not None:
        (files / name).write_text(content, "utf-8")
    done = cli("ask", "Weather?", "-m", "scripted:x", "--dialect", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    (files / "g.toml").write_text(f'[models.m]\nupstream = "scripted:x"\nmode = "chat"\ndialect = "{name}"\n', "utf-8")
    with pytest.raises(ts.UsageError, match=r"models\.m\.dialect: expected the name of a dialect: "):
        read_config(str(files / "g.toml"))


@pytest.mark.parametrize("dialect", TEXTS)
def test_the_gateways_configuration_takes_them(files: Path, dialect: str) -> None:
    folder = files / "etc"
    folder.mkdir()
    for name in ("mine.py", "declared.json"):
        (files / name).rename(folder / name)
    (folder / "g.toml").write_text(
        f'[models.m]\nupstream = "scripted:x"\nmode = "chat"\ndialect = "{dialect}"\n', "utf-8"
    )
    found = read_config(str(folder / "g.toml")).models["m"].dialect
    assert isinstance(found, ts.Dialect)
    assert ts.parse(TEXTS[dialect], found).calls[0].arguments == {"city": "Oslo"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("<tool>", "expected a tuple of parts"),
        ((), "has no tool name"),
        (("<tool>",), "has no tool name"),
        (("<tool>", NAME, "</tool>"), "has no arguments"),
        ((Json(),), "has no tool name"),
        ((JsonCall((("name", NAME),)),), "has no arguments"),
        ((JsonCall((("args", ARGS),)),), "has no tool name"),
        (("<tool>", 7, JsonCall()), "expected literals and holes"),
    ],
)
def test_a_dialect_that_can_find_no_call_is_refused_when_it_is_made(call: Any, words: str) -> None:
    with pytest.raises(ts.UsageError, match=words):
        ts.Dialect("mine", call)
    with pytest.raises(ts.UsageError, match=words):
        ts.Dialect("mine", (JsonCall(),), forms=(call,))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('thinking=("<t>", "</t>")', r"thinking: expected Thinking\(…\), received \('<t>', '</t>'\)"),
        ('thinking=Thinking("", "</t>")', "thinking: a thought needs an opener and a closer"),
        ('stop=("((over))")', r"stop: expected a tuple of texts: \('\(\(over\)\)',\) instead of"),
        ('models=("acorn")', r"models: expected a tuple of texts: \('acorn',\)"),
        ("models=(1,)", r"models: expected a tuple of texts such as .*, received \(1,\)"),
        ('frame=["<f>"]', "frame: expected a tuple of texts"),
        ("thinkers=None", "thinkers: expected a tuple of texts"),
        ('stop=("",)', "stop: expected a tuple of texts"),
        ('control=("x",)', "control: 'x' cannot be broken"),
        ("open=None", "open: expected a text, received None"),
        ("header=1", r"header: expected Header\(…\), received 1"),
        ("speech=None", r"speech: expected Speech\(…\), received None"),
    ],
)
def test_a_field_of_a_wrong_type_is_refused_with_its_file_line_and_name(files: Path, fields: str, words: str) -> None:
    file = files / "wrong.py"
    file.write_text(
        "from toolspeak.wire.dialect import *\n\n"
        f'MINE = Dialect("mine", ("<c>", NAME, "|", Json(), "</c>"), {fields})\n',
        "utf-8",
    )
    with pytest.raises(ts.UsageError, match=r"wrong\.py, line 3: .*" + words):
        load_dialect(str(file))


@pytest.mark.parametrize("call", [("<c>", NAME, ID, "|", Json(), "</c>"), ("<c>", Json(), NAME, "</c>")])
def test_a_dialect_that_does_not_find_its_own_call_is_refused(files: Path, call: Any) -> None:
    mine = ts.Dialect("mine", call)
    for use in (lambda: ts.parse("", mine), lambda: ts.Decoder(mine), lambda: ts.render([], [], mine)):
        with pytest.raises(ts.UsageError, match="the dialect 'mine'"):
            use()
    file = files / "mute.py"
    file.write_text(
        'from toolspeak.wire.dialect import *\n\nMINE = Dialect("mine", ("<c>", NAME, ID, "|", Json(), "</c>"))\n',
        "utf-8",
    )
    with pytest.raises(ts.UsageError, match="does not find the call that it writes"):
        load_dialect(str(file))


@pytest.mark.parametrize("call", [("", NAME, Json(), ""), (NAME, "\n", Json()), (NAME, " ", Json(), "</c>")])
def test_a_dialect_whose_calls_nothing_marks_is_refused(call: Any) -> None:
    with pytest.raises(ts.UsageError, match="nothing marks a call"):
        ts.Dialect("mine", call)
    opened = ts.Dialect("mine", call, open="<c>")
    assert [one.name for one in ts.parse('<c>f {"a": 1}', opened).calls] == ["f"]
