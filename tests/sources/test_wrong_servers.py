"""MCP servers that answer wrongly, and OpenAPI documents that are damaged: a clear error, within bounds, and no leak.

`make fuzz` does the same for minutes; what it found once stands here as a case of its own.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.sources.mcp import limits

pytest.importorskip("mcp", reason="the extra mcp is not installed")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "wire"))

import mcp_servers
import openapi_documents
from mcp_script import TOOLS, message
from mcp_servers import SCRIPT, Http, Server

PATIENT = 600.0
CALL = message("tools/call", modern=False)


@pytest.fixture(scope="module")
def web() -> Iterator[Http]:
    with mcp_servers.http() as servers:
        yield servers


def tools_of(server: Server, web: Http, **how: Any) -> Any:
    how = {"timeout": PATIENT, "pins": False, **how}
    if server.over == "http":
        return ts.mcp(web.add(server), **how)
    return ts.mcp([sys.executable, "-S", "-E", str(SCRIPT)], env={"SCRIPT": json.dumps(server.script)}, **how)


def look(box: Any, **arguments: Any) -> Any:
    return box.call({"name": "act", "arguments": arguments})


def test_any_wrong_answer_of_a_server_is_a_value_or_a_clear_error(web: Http) -> None:
    rng = random.Random(7)
    cases = [one for one in (mcp_servers.changed(rng) for _ in range(200)) if "wait" not in json.dumps(one.steps)][:24]
    with ThreadPoolExecutor(4) as pool:
        found = [*zip(cases, pool.map(lambda case: mcp_servers.problem(case, web, timed=False), cases), strict=True)]
    assert [(case.change, told) for case, told in found if told] == []


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (Server("stdio", "tools/call", [{"raw": "x" * 4096}, {"times": -1}]), "a line of more than 16,777,216 bytes"),
        (Server("http", "tools/call", [{"raw": f": {'x' * 4096}\n\n"}, {"times": -1}], sse=True), "more than 16,777,216 bytes"),
        (Server("http", "tools/call", [{"raw": "x" * 4096}, {"times": -1}]), "more than 16,777,216 bytes"),
        (Server("http", "tools/call", [{"raw": "id: 1\nretry: 0\n\n"}, {"end": True}], sse=True), "connection"),
        (Server("http", "tools/call", [{"json": CALL}], head="200 OK\r\ncontent-length: 9999\r\ncontent-type: application/json"), "broke off"),
        (Server("stdio", "tools/call", [{"json": {"jsonrpc": "2.0", "id": "s", "method": "ping"}}, {"times": -1}]), "read no answer"),
        (Server("stdio", "tools/call", [{"raw": '{"jsonrpc": '}, {"end": True}]), "The call may have run"),
    ],
)  # fmt: skip
def test_an_answer_without_end_is_broken_off(server: Server, why: str, web: Http) -> None:
    with tools_of(server, web) as box, pytest.raises(ts.ToolError, match=why):
        look(box)


def test_a_server_that_does_not_leave_off_is_let_go(web: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it writes is small, well-formed and asked for by nobody."""
    monkeypatch.setattr(limits, "FLOOD", 1_000_000)
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 4096}}
    with tools_of(Server("stdio", "tools/call", [{"json": note}, {"times": 2_000}, {"end": True}]), web) as box:
        with pytest.raises(ts.ToolError, match="more than 1,000,000 bytes in a minute"):
            look(box)


def test_a_list_of_tools_without_end_is_broken_off(web: Http) -> None:
    """Each page is within its bound; all of them together are not."""
    page = {
        "tools": [{**TOOLS[0], "name": f"t{at}", "description": "x" * 30_000} for at in range(200)],
        "nextCursor": "more",
    }
    server = Server("http", "tools/list", [{"json": {"jsonrpc": "2.0", "id": "ID", "result": page}}])
    with pytest.raises(ts.ToolError, match="16,777,216"):
        tools_of(server, web).open()


def test_a_call_that_was_given_up_lets_go_of_its_connection(web: Http) -> None:
    """The server goes on for ever with what nobody waits for: its side of the connection is closed."""
    server = Server("http", "tools/call", [{"raw": ": x\n\n"}, {"pulse": 0.02}], sse=True)
    with tools_of(server, web) as box:
        short = ts.Toolbox(*(ts.tool(one, timeout=2) for one in box))
        with pytest.raises(ts.ToolTimeout):
            look(short)
        web.closed.acquire()


def test_what_no_server_can_be_sent_is_told_before(web: Http) -> None:
    with tools_of(Server("stdio", "none", []), web) as box:
        with pytest.raises(ts.ToolError, match=r"half a character, U\+D800, at /text"):
            look(box, text="\ud800")
        assert look(box, text="fine").startswith("done")


def test_who_gives_up_connecting_does_not_wait_for_the_server_to_end(
    web: Http, caplog: pytest.LogCaptureFixture
) -> None:
    """It is broken off at once: nothing was begun that it could end in good order."""
    with pytest.raises(ts.ToolError, match=r"no session and no tools within 0\.3 s"):
        tools_of(Server("http", "initialize", [{"wait": 600}]), web, timeout=0.3).open()
    assert "is abandoned" not in caplog.text


# ------------------------------------------------------------------ OpenAPI


@pytest.fixture(scope="module")
def servers() -> Iterator[Any]:
    with openapi_documents.running() as both:
        yield both


def test_any_damaged_document_is_refused_or_does_what_it_says(servers: Any) -> None:
    rng = random.Random(7)
    cases = [openapi_documents.changed(rng) for _ in range(120)]
    found = [(case.change, openapi_documents.problem(case, *servers)) for case in cases]
    assert [one for one in found if one[1]] == []


@pytest.mark.parametrize("place", ["schemes", "path", "reference", "server"])
def test_an_error_is_no_longer_than_it_need_be(place: str) -> None:
    long = "x" * 40_000
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "paths": {"/x": {"get": {}}},
        "servers": [{"url": "http://127.0.0.1:9"}],
    }
    more: dict[str, Any] = {
        "schemes": {"components": {"securitySchemes": {long: {"type": "http", "scheme": "bearer"}}}},
        "path": {"paths": {f"/{long}": {"get": {"parameters": [7]}}}},
        "reference": {"paths": {"/x": {"get": {"parameters": [{"$ref": f"#/{long}"}]}}}},
        "server": {"servers": [{"url": "http://{v}", "variables": {"v": {"default": "a", "enum": [long] * 90}}}]},
    }[place]
    with pytest.raises(ts.UsageError) as caught:
        ts.openapi(document | more, auth={"other": "a-secret"} if place == "schemes" else None)
    assert len(str(caught.value)) < 9_000


@pytest.mark.parametrize("how", sorted(openapi_documents.ECHOES))
def test_no_form_of_a_secret_comes_back(how: str, servers: Any) -> None:
    server, _ = servers
    case = openapi_documents.Case(openapi_documents.SEED, {"query": openapi_documents.SECRET})
    document = json.loads(json.dumps(case.document).replace("SERVER", server.url))
    box = ts.openapi(document, auth=case.auth, server=f"{server.url}/base")
    for _ in range(3):  # good answers and refusals
        try:
            value = str(box.call({"name": "echo", "arguments": {"how": how}}))
        except ts.ToolError as error:
            value = str(error)
        assert "[hidden]" in value
        assert openapi_documents.leaked(value) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"style": {"a": 1}}, "has the style"), ({"schema": {"type": {"enum": [*range(3000)]}}}, "is invalid"),
        ({"schema": {"format": ["int32"]}}, "is invalid"), ({"name": "a\ud800"}, "half a character"),
    ],
)  # fmt: skip
def test_what_a_parameter_may_not_be_is_told(change: dict[str, Any], why: str) -> None:
    parameter = {"name": "q", "in": "query", **change}
    document = {"openapi": "3.1.0", "paths": {"/x": {"get": {"parameters": [parameter]}}}}
    with pytest.raises((ts.UsageError, ts.InvalidTool), match=why) as caught:
        ts.openapi(document, server="http://127.0.0.1:9")
    assert len(str(caught.value)) < 1_500
