"""The third document's script done right: its three exchanges, replayed by a server on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "any_model_by_prompt.py"
DOCUMENT = ROOT.parent / "shared" / "seeds" / "003_afba6ad759dbdc55.txt"

# What the document's log shows was sent, the tools' types written as the schemas that they meant.
TOOLS = (
    '[{"name": "get_current_weather", "description": "Get the current weather in a given location", "parameters": '
    '{"type": "object", "properties": {"location": {"type": "string", "description": "The city e.g. Beijing"}, '
    '"unit": {"type": "string", "enum": ["celsius"]}}, "required": ["location"]}}, {"name": "calculator", '
    '"description": "\\u8ba1\\u7b97\\u5668", "parameters": {"type": "int", "properties": {"a": {"type": "int", '
    '"description": "the first number"}, "b": {"type": "int", "description": "the second number"}}, "required": '
    '["a", "b"]}}]'
)
ENTRANCE = (
    f"You have access to the following tools:\n{TOOLS}\nYou can select one of the above tools or just response user's "
    'content and respond with only a JSON object matching the following schema:\n{\n "tool": <name of the selected '
    'tool>,\n "tool_input": <parameters for the selected tool, matching the tool\'s JSON schema>,\n "message": '
    "<direct response users content>\n}"
)
CONFORMITY = (
    "\nPlease generate a natural language description based on the following question and answer.\nQuestion: [Content "
    "of the question]\nAnswer: [Content of the answer]\nGenerated Description: The result of [key phrase from the "
    "question] is [answer].\nIf necessary, you can polish the description.\nOnly output the Description, with {} "
    "language.\n\n\nThe question:{}\nThe answer:{}"
)
SMALL_TALK, WEATHER, SUM = "你好", "厦门天气如何？", "383加上135721等于多少？"
REPLIES = {
    SMALL_TALK: '```json\n{"tool": null, "tool_input": null, "message": "你好,有什么可以帮您的吗?"}\n```',
    WEATHER: '```json\n{"tool": "get_current_weather", "tool_input": {"location": "Xiamen", "unit": "celsius"}, '
    '"message": ""}\n```',
    SUM: '```json\n{"tool": "calculator", "tool_input": {"a": 383, "b": 135721}, "message": null}\n```',
}


def reply(messages: list[dict[str, str]]) -> str:
    """What the document's model answered, or one like it where the weather came out otherwise."""
    asked = messages[-1]["content"]
    if len(messages) == 2:
        return REPLIES[asked]
    if "136104" in asked:
        return "383加上135721等于136104。"
    (degrees,) = re.findall(r"temperature is (-?\d+)°C\.$", asked)
    return f"厦门天气情况是:多云,气温{degrees}°C。"


class Replay(BaseHTTPRequestHandler):
    """The document's service: whole answers, with keys of its own around OpenAI's."""

    payloads: list[dict[str, Any]]

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.payloads.append(payload)
        message = {"role": "assistant", "content": reply(payload["messages"]), "function_call": None}
        body = json.dumps(
            {
                "model": "",
                "object": "",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "queueTime": 0.0020923614501953125,
                "costTime": 0.7685532569885254,
                "usage": {"prompt_token": 244, "completion_token": 29, "total_tokens": 273},
            },
            ensure_ascii=False,
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def replaying() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    payloads: list[dict[str, Any]] = []
    handler = type("Handler", (Replay,), {"payloads": payloads})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1#any", payloads
        finally:
            server.shutdown()
            thread.join()


def script(*arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"},
    )


def alike(text: str) -> str:
    """A text as it is compared: blanks set aside (the log has lost some), and the log's unusual types put right."""
    text = text.replace('"parameters": {"type": "int"', '"parameters": {"type": "object"')
    text = text.replace('"type": "int"', '"type": "integer"')
    return "".join(unicodedata.normalize("NFKC", text).split())


def test_the_three_exchanges() -> None:
    with replaying() as (url, payloads):
        done = script(url, said=f"{SMALL_TALK}\n{WEATHER}\n{SUM}\n")
    assert done.stderr == ""
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "你好,有什么可以帮您的吗?"
    assert lines[1].startswith(
        'get_current_weather {"location": "Xiamen", "unit": "celsius"} -> The weather of Xiamen is'
    )
    degrees = re.findall(r"-?\d+", lines[1])[-1]
    assert lines[2] == f"厦门天气情况是:多云,气温{degrees}°C。"
    assert lines[3:] == ['calculator {"a": 383, "b": 135721} -> 136104', "383加上135721等于136104。"]

    conversations = [payload["messages"] for payload in payloads]
    assert [[message["role"] for message in messages] for messages in conversations] == [
        ["system", "user"],
        ["system", "user"],
        ["user"],
        ["system", "user"],
        ["user"],
    ]
    assert all("tools" not in payload for payload in payloads)
    for messages, question in zip((conversations[i] for i in (0, 1, 3)), (SMALL_TALK, WEATHER, SUM), strict=True):
        assert alike(messages[0]["content"]) == alike(ENTRANCE)
        assert "\\u8ba1\\u7b97\\u5668" in messages[0]["content"]
        assert messages[1]["content"] == question
    weather = lines[1].partition(" -> ")[2]
    assert conversations[2][0]["content"] == CONFORMITY.format("Chinese", WEATHER, weather)
    assert conversations[4][0]["content"] == CONFORMITY.format("Chinese", SUM, "136104")


def test_the_language_is_the_users() -> None:
    with replaying() as (url, payloads):
        script(url, "--language", "Portuguese", said=SUM)
    assert "Only output the Description, with Portuguese language." in payloads[1]["messages"][0]["content"]


def test_a_server_that_is_not_there() -> None:
    with replaying() as (url, _):
        pass
    done = script(url, said=SUM)
    assert done.returncode == 1
    assert "no answer from the server" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_compared_with_is_what_the_document_logged() -> None:
    if not DOCUMENT.is_file():
        pytest.skip(f"the document is not at {DOCUMENT}")
    log = [
        json.loads(line.removeprefix("PAYLOAD: "))["messages"]
        for line in DOCUMENT.read_text("utf-8").replace("\xa0", " ").splitlines()
        if line.startswith("PAYLOAD: ")
    ]
    talk = [
        [{"role": "system", "content": ENTRANCE}, {"role": "user", "content": q}] for q in (SMALL_TALK, WEATHER, SUM)
    ]
    told = "The weather of Xiamen is cloudy, and the temperature is 35°C."
    words = [CONFORMITY.format("Chinese", WEATHER, told), CONFORMITY.format("Chinese", SUM, "136104")]
    wanted = [
        talk[0],
        talk[1],
        [{"role": "user", "content": words[0]}],
        talk[2],
        [{"role": "user", "content": words[1]}],
    ]
    assert log == wanted
