"""The plugin of `llm`, in an environment of its own: the model, tools of files, schemas, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from environments import Unavailable, python
from roster import LLM

Run = Callable[..., "subprocess.CompletedProcess[str]"]
WEATHER = '''
def weather(city: str, days: int = 1) -> str:
    """The weather in a city."""
    return f"Sunny in {city} for {days} days"
'''
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo", "days": "2"}}\n</tool_call>'
ROWS = """
import base64, json, llm
from llm.parts import AttachmentPart, Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from llm_toolspeak import _rows
png = llm.Attachment(type="image/png", content=b"x")
messages = [
    Message("user", [TextPart("Look: "), AttachmentPart(png)]),
    Message("assistant", [ReasoningPart("hm"), TextPart("So."), ToolCallPart("f", {"a": 1}, "c1")]),
    Message("tool", [ToolResultPart("f", "one", "c1"), ToolResultPart("g", "two", "c2")]),
]
print(json.dumps([row for message in messages for row in _rows(message)]))
"""


@pytest.fixture
def interpreter() -> Path:
    try:
        return python("llm", LLM, make=False)
    except Unavailable as why:
        pytest.skip(f"llm: {why}")


@pytest.fixture
def llm(interpreter: Path, tmp_path: Path) -> Run:
    """Runs `llm` with these arguments in a folder with a file of tools."""
    (tmp_path / "weather.py").write_text(WEATHER)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(interpreter.with_name("llm")), *arguments]
        env = {**os.environ, "LLM_USER_PATH": str(tmp_path / "llm")}
        return subprocess.run(command, cwd=tmp_path, env=env, input="", capture_output=True, text=True, timeout=600)

    return run


def scripted(folder: Path, *replies: str) -> tuple[str, str, str, str, str]:
    """The options by which a model says these one after another."""
    (folder / "replies.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    return ("-m", "toolspeak", "-o", "model", "scripted:replies.jsonl")


def test_it_is_there(llm: Run) -> None:
    (plugin,) = json.loads(llm("plugins").stdout)
    assert (plugin["name"], sorted(plugin["hooks"])) == ("toolspeak", ["register_models", "register_tools"])
    assert "Toolspeak: toolspeak" in llm("models").stdout


ASYNC = """
import asyncio, json, llm
from llm_toolspeak import Tools

async def main():
    model = llm.get_async_model("toolspeak")
    chain = model.chain("Weather in Oslo?", tools=[Tools("weather.py")], options={"model": "scripted:replies.jsonl"})
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    value = await model.prompt("31", schema=schema, model='scripted:{"age": 31}').text()
    pieces = [piece async for piece in model.prompt("Hi", model="scripted:Hello there")]
    print(json.dumps([await chain.text(), value, "".join(pieces)]))

asyncio.run(main())
"""


def test_the_async_model(llm: Run, interpreter: Path, tmp_path: Path) -> None:
    """A chain with calls, a schema, and a text in pieces."""
    scripted(tmp_path, CALL, "It is sunny.")
    assert "toolspeak" in llm("models", "--async").stdout
    done = subprocess.run([interpreter, "-c", ASYNC], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["It is sunny.", '{"age": 31}', "Hello there"]


def test_a_text(llm: Run, tmp_path: Path) -> None:
    assert llm("Hi", *scripted(tmp_path, "Hello there")).stdout == "Hello there\n"


@pytest.mark.parametrize("dialect", [(), ("-o", "dialect", "hermes")])
def test_its_calls_run_the_tools_of_a_file(llm: Run, tmp_path: Path, dialect: tuple[str, ...]) -> None:
    model = scripted(tmp_path, CALL, "It is sunny.")
    done = llm("Weather in Oslo?", *model, *dialect, "-T", 'Toolspeak("weather.py")', "--td")
    assert done.stdout == "It is sunny.\n"
    assert "weather({'city': 'Oslo', 'days': 2})" in done.stderr
    assert "Sunny in Oslo for 2 days" in done.stderr


def test_its_calls_run_tools_of_llm(llm: Run, tmp_path: Path) -> None:
    model = scripted(tmp_path, '{"tool": "llm_version", "tool_input": {}}', "It is new.")
    done = llm("Which version?", *model, "-T", "llm_version", "--td")
    assert (done.stdout, "Tool call: llm_version({})" in done.stderr) == ("It is new.\n", True)


def test_a_schema(llm: Run, tmp_path: Path) -> None:
    model = scripted(tmp_path, 'Sure: {"name": "Alice", "age": 31}')
    assert json.loads(llm("Alice is 31.", *model, "--schema", "name, age int").stdout) == {"name": "Alice", "age": 31}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-o", "model", "nope:x"), "no model is called 'nope:x'"),
        (("-T", 'Toolspeak("absent.py")'), "there is no file absent.py"),
        (("-T", "Toolspeak"), "which tools? Expected Toolspeak("),
        (("-o", "dialect", "hermess"), "hermes"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(llm: Run, arguments: tuple[str, ...], why: str) -> None:
    done = llm("Hi", "-m", "toolspeak", *arguments)
    assert (done.returncode, done.stderr.startswith("Error: "), done.stderr.count("\n")) == (1, True, 1)
    assert why in done.stderr


def test_messages_of_llm_become_ours(interpreter: Path) -> None:
    rows: Any = json.loads(subprocess.run([str(interpreter), "-c", ROWS], capture_output=True, text=True).stdout)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
    assert rows == [
        {"role": "user", "content": [{"type": "text", "text": "Look: "}, picture]},
        {"role": "assistant", "content": "So.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "name": "g", "content": "two"},
    ]
