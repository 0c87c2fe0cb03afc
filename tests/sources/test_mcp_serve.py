"""`toolspeak mcp`: functions served to the official client and to our own, over standard input and output and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import preloaded
import toolspeak as ts
from preloaded import Started
from preloaded_command import toolspeak_command
from toolspeak.cli import main as command_line

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")

SRC = Path(__file__).resolve().parents[2] / "src"
TOOLSPEAK = [sys.executable, "-m", "toolspeak"]
PATIENT = 600.0
FUNCTIONS = '''\
import os
import shlex
import sys
import time

print("printed while it is loaded")


def forecast(city: str, days: int = 3) -> str:
    """The weather of a city."""
    print("printed by a tool")
    os.write(1, b"written by a tool")
    os.system("echo by a child")
    if city == "Atlantis":
        raise ValueError("no such place")
    return f"{city}: sun for {days} days"


def facts(city: str) -> dict:
    """Facts of a city."""
    return {"city": city, "people": 5}


async def slow(file: str) -> str:
    """Takes long."""
    import asyncio

    try:
        open(file + ".begun", "w").close()
        await asyncio.sleep(3600)
    finally:
        open(file + ".ended", "w").close()
'''


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")]))
    file = tmp_path / "functions.py"
    file.write_text(FUNCTIONS)
    return file


@asynccontextmanager
async def official(functions: Path, *more: str) -> AsyncIterator[Any]:
    command, *args = [*toolspeak_command(), "mcp", "--tools", str(functions), *more]
    async with mcp.Client(mcp.StdioServerParameters(command=command, args=args)) as client:
        yield client


def test_the_official_client(functions: Path) -> None:
    async def main() -> None:
        async with official(functions) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(listed) == ["forecast", "facts", "slow"]
            assert listed["forecast"].description == "The weather of a city."
            assert listed["forecast"].input_schema["required"] == ["city"]
            done = await client.call_tool("forecast", {"city": "Oslo", "days": "2"})  # "2" is coerced without loss
            assert (done.is_error, done.content[0].text) == (False, "Oslo: sun for 2 days")
            done = await client.call_tool("facts", {"city": "Oslo"})
            assert done.structured_content == {"city": "Oslo", "people": 5}
            assert json.loads(done.content[0].text) == done.structured_content
            done = await client.call_tool("forecast", {"city": "Atlantis"})
            assert (done.is_error, done.content[0].text) == (
                True,
                "the tool 'forecast' failed: ValueError: no such place",
            )
            done = await client.call_tool("forecast", {"town": "Oslo"})
            assert done.is_error
            assert "unknown argument" in done.content[0].text
            done = await client.call_tool("forecasts", {})
            assert done.is_error
            assert "Did you mean" in done.content[0].text

    asyncio.run(main())


def test_what_an_exception_hides_from_a_model_it_hides_from_a_client(tmp_path: Path, functions: Path) -> None:
    file = tmp_path / "failing.py"
    file.write_text(
        "from typing import Annotated\n\nimport toolspeak as ts\n\n"
        'def plain() -> str:\n    """Fails."""\n    raise OSError("no route to postgres://app:pa55@db/x")\n\n'
        '@ts.tool(show_errors=False)\ndef silent() -> str:\n    """Fails."""\n    raise OSError("disk 7 of host 12")\n\n'
        'def keyed(token: Annotated[str, ts.Injected]) -> str:\n    """Fails."""\n    raise OSError(f"401 for {token}")\n\n'
        'box = ts.Toolbox([plain, silent, keyed], inject={"token": "sk-very-secret-key"})\n'
    )

    async def talk() -> list[Any]:
        async with official(Path(f"{file}:box")) as client:
            return [await client.call_tool(name, {}) for name in ("plain", "silent", "keyed")]

    done = asyncio.run(asyncio.wait_for(talk(), PATIENT))
    plain, silent, keyed = (one.content[0].text for one in done)
    assert all(one.is_error for one in done)
    assert ("no route" in plain, "pa55" in plain) == (True, False)
    assert silent == "the tool failed"
    assert ("401" in keyed, "sk-very-secret-key" in keyed) == (True, False)


def test_with_a_policy_only_what_it_allows_runs(functions: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('allow = [\'forecast(city="O*")\']\ndeny = ["facts"]\n')

    async def talk() -> list[Any]:
        async with official(functions, "--policy", str(policy)) as client:
            return [
                await client.call_tool("forecast", {"city": "Oslo"}),
                await client.call_tool("forecast", {"city": "Rome"}),
                await client.call_tool("facts", {"city": "Oslo"}),
            ]

    ran, asked, denied = asyncio.run(asyncio.wait_for(talk(), PATIENT))
    assert [one.is_error for one in (ran, asked, denied)] == [False, True, True]
    assert ran.content[0].text == "Oslo: sun for 3 days"
    assert "waits for approval: no rule allows it" in asked.content[0].text
    assert "refused by the policy: deny facts" in denied.content[0].text


def test_what_tools_say_of_themselves_reaches_a_client(tmp_path: Path, functions: Path) -> None:
    """And comes back as it was where the client is ours."""
    file = tmp_path / "labelled.py"
    file.write_text(
        "from toolspeak import tool\n\n"
        '@tool(effect="read", reads="untrusted")\ndef page() -> str:\n    "Read."\n    return "x"\n\n'
        '@tool(effect="destructive")\ndef drop() -> str:\n    "Drop."\n    return "x"\n\n'
        'def plain() -> str:\n    "Plain."\n    return "x"\n'
    )

    async def listed() -> list[Any]:
        async with official(file) as client:
            return (await client.list_tools()).tools

    hints = {one.name: one.annotations for one in asyncio.run(asyncio.wait_for(listed(), PATIENT))}
    assert hints["plain"] is None
    assert (hints["page"].read_only_hint, hints["page"].open_world_hint) == (True, True)
    with ts.mcp(shlex.join([*toolspeak_command(), "mcp", "--tools", str(file)])) as box:
        labels = {tool.name: (tool.effect, tool.reads) for tool in box}
    assert labels == {
        "page": ("read", "untrusted"), "drop": ("destructive", "trusted"), "plain": ("write", "untrusted")
    }  # fmt: skip


def test_a_call_that_is_cancelled_ends(functions: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with official(functions) as client:
            call = asyncio.create_task(client.call_tool("slow", {"file": str(tmp_path / "slow")}))
            while not (tmp_path / "slow.begun").exists():
                await asyncio.sleep(0.05)
            call.cancel()
            while not (tmp_path / "slow.ended").exists():
                await asyncio.sleep(0.05)
            assert not (await client.call_tool("facts", {"city": "Oslo"})).is_error

    asyncio.run(main())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(functions: Path, tmp_path: Path, number: int) -> None:
    with Started(["mcp", "-t", str(functions)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        call = {"name": "slow", "arguments": {"file": str(tmp_path / "slow")}}
        for message in (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
        while not (tmp_path / "slow.begun").exists():
            time.sleep(0.05)
        server.send_signal(number)
        assert server.wait(60) == 0
        assert (tmp_path / "slow.ended").exists()
        for line in server.stdout.read().splitlines():
            json.loads(line)  # nothing but the protocol was written


def test_it_ends_with_its_input_and_writes_the_protocol_alone(functions: Path) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}) + "\n"
    done = preloaded.run(["mcp", "--tools", str(functions)], asked.encode(), os.environ, 800)
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert b"printed while it is loaded" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_streams_that_are_closed_or_full(functions: Path) -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}) + "\n"
    command = f"{shlex.join([*TOOLSPEAK, 'mcp', '--tools', str(functions)])} "
    expected = {
        "<&-": (2, "error: standard input is closed"),
        ">&-": (2, "error: standard output is closed"),
        ">/dev/full": (1, "error: [Errno 28] No space left on device"),
        "| true": (0, ""),
    }
    for streams, (code, words) in expected.items():
        shell = ["bash", "-o", "pipefail", "-c", command + streams]
        done = subprocess.run(shell, input=asked, text=True, capture_output=True, timeout=800)
        told = done.stderr.replace("printed while it is loaded", "").strip()
        assert (done.returncode, told) == (code, words), streams


@contextmanager
def over_http(functions: Path) -> Iterator[str]:
    command = ["mcp", "--tools", str(functions), "--http", "127.0.0.1:0"]
    with Started(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        lines = iter(server.stderr)
        hello = next(line for line in lines if line.startswith("serving"))
        yield hello.split()[-1]
        server.terminate()
        assert server.wait(60) == 0


def refusal(url: str, headers: dict[str, str]) -> int:
    """The status of what a web page of another origin could send."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}  # fmt: skip
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    try:
        with urlopen(Request(url, json.dumps(asked).encode(), {**usual, **headers})) as answer:
            return answer.status
    except HTTPError as error:
        with error:
            return error.code


def test_over_http(functions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main(url: str) -> None:
        async with mcp.Client(url) as client:
            done = await client.call_tool("forecast", {"city": "Oslo"})
            assert done.content[0].text == "Oslo: sun for 3 days"

    with over_http(functions) as url:
        asyncio.run(main(url))
        with ts.mcp(url, timeout=PATIENT) as box:
            assert box.call({"name": "facts", "arguments": {"city": "Oslo"}}) == {"city": "Oslo", "people": 5}
        assert command_line(["call", f"mcp:{url}#forecast", '{"city": "Rome"}']) == 0
        assert capsys.readouterr().out == "Rome: sun for 3 days\n"
        for header in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            assert refusal(url, header) in (403, 421), header
        assert refusal(url, {}) == 200


def test_what_it_asks_for(functions: Path) -> None:
    def told(*args: str) -> str:
        done = preloaded.run(["mcp", *args], b"", os.environ, 800)
        assert (done.returncode, done.stdout) == (2, b"")
        return done.stderr.decode()

    assert "no tools: expected --tools FILE" in told()
    assert "can be reached from other machines" in told("--tools", str(functions), "--http", "0.0.0.0:0")
    assert "expected --http HOST:PORT" in told("--tools", str(functions), "--http", "somewhere")
