"""Logins at MCP servers by OAuth: a real server of the SDK that asks for one, and a browser that follows redirects."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import preloaded
import toolspeak as ts
from toolspeak.sources import background_loop

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from oauth_world import World, browse, oauth_world
from toolspeak.sources.mcp import login as login_module
from toolspeak.sources.mcp.config import address
from toolspeak.sources.mcp.login import log_in, log_out
from toolspeak.sources.mcp.logins import Logins

ECHO = {"name": "echo", "arguments": {"text": "hi"}}


@pytest.fixture(scope="module")
def shared_world() -> Iterator[World]:
    with oauth_world() as world:
        yield world


@pytest.fixture
def world(shared_world: World) -> World:
    """The servers as they were at first."""
    shared_world.reset()
    return shared_world


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLSPEAK_LOGINS", str(tmp_path / "kept" / "logins.json"))
    return tmp_path / "kept" / "logins.json"


def logged_in(world: World, file: Path, url: str = "", **changed: str) -> int:
    """Logs in as somebody does; `changed` are the fields that come back otherwise."""
    opened: list[threading.Thread] = []

    def open_browser(url: str) -> None:
        opened.append(threading.Thread(target=browse, args=(url,), kwargs=changed))
        opened[0].start()

    try:
        return background_loop.wait(log_in(address(url or world.url), Logins(file), open_browser))
    finally:
        for thread in opened:
            thread.join()
        assert len(opened) < 2, "the browser was opened again after a failure"


def shows_no_secret(text: str, world: World, file: Path) -> bool:
    held = json.loads(file.read_text()) if file.exists() else {"logins": {}}
    kept = [one[name] for one in held["logins"].values() for name in ("client_secret",) if name in one]
    return not any(secret in text for secret in [*world.secrets, *kept, *world.used_codes])


# ------------------------------------------------------------------ the command


def test_login_call_logout_at_the_command_line(world: World, file: Path, tmp_path: Path) -> None:
    """The real command, the browser being a program that the environment names."""
    browser = tmp_path / "browser.py"
    browser.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from oauth_world import browse; browse(sys.argv[1])\n"
    )
    env = {"BROWSER": f"{sys.executable} {browser} %s &"}

    def run(*args: str) -> tuple[int, str, str]:
        done = preloaded.run(args, b"", {**os.environ, **env}, 300)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    echo = ("call", f"mcp:{world.url}#echo", '{"text": "hi"}')
    code, out, err = run(*echo)
    assert (code, out) == (1, "")
    assert f"it asks for a login (HTTP 401): run `toolspeak mcp login {world.url}`" in err
    code, out, said = run("mcp", "login", world.url)
    assert (code, out) == (0, f"logged in at {world.url}: 2 tools\n"), said
    assert f"{world.origin}/authorize?" in said
    assert "code_challenge_method=S256" in said
    assert shows_no_secret(out + said, world, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert world.resources == [world.url]  # the token is good for this server alone
    assert run(*echo)[:2] == (0, "hi\n")
    assert run("mcp", "logout", world.url)[:2] == (0, f"logged out at {world.url}\n")
    assert len(world.revoked) == 1
    with pytest.raises(ts.ToolError, match="it asks for a login"):
        ts.mcp(world.url, pins=False).open()
    with pytest.raises(ts.UsageError, match="There is no login at all"):
        background_loop.wait(log_out(address(world.url), Logins(file)))


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["http://mcp.example/mcp"], "a login goes over https only"),
        (["python server.py"], "is a command line"),
        (["servers.json"], "Expected servers.json:NAME with one of notes"),
        (["servers.json:other"], "Expected servers.json:NAME with one of notes"),
        (["other", "--config", "gateway.toml"], "gateway.toml has no table [mcp.other]. There are notes"),
    ],
)
def test_what_cannot_be_logged_in_at(
    args: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolspeak.cli import main

    monkeypatch.chdir(tmp_path)
    Path("servers.json").write_text('{"mcpServers": {"notes": {"url": "http://127.0.0.1:9/mcp"}}}')
    Path("gateway.toml").write_text('[mcp.notes]\nurl = "http://127.0.0.1:9/mcp"\n')
    assert main(["mcp", "login", *args]) == 2
    assert why in capsys.readouterr().err


def test_servers_by_name(world: World, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a file of servers, and of the gateway's configuration."""
    from toolspeak.cli import main

    logged_in(world, file)
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"notes": {"url": world.url}}}))
    assert main(["mcp", "logout", f"{tmp_path}/servers.json:notes"]) == 0
    logged_in(world, file)
    unset = '\n[models.m]\nupstream = "openai:x"\nkey = { env = "NO_SUCH_VARIABLE_HERE" }\n'  # that is no part of it
    (tmp_path / "gateway.toml").write_text(f'[mcp.notes]\nurl = "{world.url}"\n{unset}')
    assert main(["mcp", "logout", "notes", "--config", f"{tmp_path}/gateway.toml"]) == 0
    assert capsys.readouterr().out == f"logged out at {world.url}\n" * 2


# ------------------------------------------------------------------ its use


def test_a_token_that_ended_is_renewed_once_for_all_calls(world: World, file: Path) -> None:
    """Its end is known after a restart, and each renewing token is good for once."""
    world.expires_in = 1
    assert logged_in(world, file) == 2
    world.expires_in = 3600
    with ts.mcp(world.url, pins=False) as tools, ThreadPoolExecutor(8) as pool:
        assert [*pool.map(tools.call, [ECHO] * 16)] == ["hi"] * 16
        assert world.grants == ["authorization_code", "refresh_token"]
        world.forget_tokens()  # by its own time a token is good for an hour
        assert [*pool.map(tools.call, [ECHO] * 16)] == ["hi"] * 16
    assert world.grants == ["authorization_code", "refresh_token", "refresh_token"]


def test_no_answer_brings_a_token_back(world: World, file: Path) -> None:
    logged_in(world, file)
    with ts.mcp(world.url, pins=False) as tools:
        assert tools.call({"name": "leak", "arguments": {}}) == "[hidden]"
        world.forget_tokens()
        assert tools.call({"name": "leak", "arguments": {}}) == "[hidden]"


def test_who_logs_in_meanwhile_is_let_in(world: World, file: Path) -> None:
    """A gateway need not be started again."""
    logged_in(world, file)
    with ts.mcp(world.url, pins=False) as tools:
        world.forget_tokens()
        world.refreshing.clear()
        with pytest.raises(
            ts.ToolError, match=r"the login has ended \(HTTP 401\): run `toolspeak mcp login http://127"
        ):
            tools.call(ECHO)
        logged_in(world, file)
        assert tools.call(ECHO) == "hi"


def test_a_server_that_cannot_renew_now_is_asked_again(world: World, file: Path) -> None:
    logged_in(world, file)
    with ts.mcp(world.url, pins=False) as tools:
        world.forget_tokens()
        world.answers["/token"] = (503, {"access_token": "half-a-token"})
        with pytest.raises(ts.ToolError, match="the login cannot be renewed: HTTP 503") as caught:
            tools.call(ECHO)
        assert "half-a-token" not in str(caught.value)
        world.answers.clear()
        assert tools.call(ECHO) == "hi"


def test_a_key_goes_before_a_login(world: World, file: Path) -> None:
    logged_in(world, file)
    with pytest.raises(ts.ToolError, match=r"it refuses the key that it was given \(HTTP 401\)"):
        ts.mcp(world.url, headers={"authorization": "Bearer mine"}, pins=False).open()
    assert ts.mcp(world.url, headers={"X-Team": "a"}, pins=False).open().call(ECHO) == "hi"


def test_another_server_gets_no_token(world: World, file: Path) -> None:
    logged_in(world, file)
    with pytest.raises(ts.ToolError, match="it asks for a login"):
        ts.mcp(world.url.replace("127.0.0.1", "localhost"), pins=False).open()


# ------------------------------------------------------------------ what goes wrong


def _elsewhere(world: World) -> None:
    value = {"resource": world.url, "authorization_servers": ["http://login.example/"]}
    world.answers["/.well-known/oauth-protected-resource*"] = (200, value)


def _no_registration(world: World) -> None:
    value = {name: world.origin + "/" + name for name in ("authorization_endpoint", "token_endpoint")}
    world.answers["/.well-known/oauth-authorization-server"] = (200, {"issuer": world.origin + "/", **value})
    world.answers["/register"] = (404, {})


def _nobody_there(world: World) -> None:
    """The authorization server cannot be reached once the browser has come back."""
    value = {
        "issuer": world.origin + "/",
        "authorization_endpoint": world.origin + "/authorize",
        "registration_endpoint": world.origin + "/register",
        "token_endpoint": "http://127.0.0.1:1/token",
    }
    world.answers["/.well-known/oauth-authorization-server"] = (200, value)


FAULTS: dict[str, tuple[Callable[[World], Any], str]] = {
    "denied": (lambda world: setattr(world, "denies", True), r"consent was denied: Not \[31m today$"),
    "code refused": (
        lambda world: setattr(world, "refuses_codes", True),
        r"\(HTTP 400\): invalid_grant, the code is worn",
    ),
    "no metadata": (lambda world: world.answers.update({"/[!m]*": (404, {})}), "it does not say where to log in"),
    "no registration": (_no_registration, "lets no program register itself"),
    "client refused": (
        lambda world: world.answers.update({"/register": (400, {"error": "invalid_client_metadata"})}),
        r"registered no client \(HTTP 400\): invalid_client_metadata",
    ),
    "no token": (
        lambda world: world.answers.update({"/token": (200, {"access_token": ["a-token-of-sorts"]})}),
        "gave no token that can be used$",
    ),
    "no header": (
        lambda world: world.answers.update(
            {"/token": (200, {"access_token": "a-token-of-sorts\r\nX: y", "token_type": "Bearer"})}
        ),
        "gave no token that can be used$",
    ),
    "code comes back": (
        lambda world: setattr(world, "repeats_codes", True),
        r"\(HTTP 400\): invalid_grant, no \[hidden\]$",
    ),
    "login over http": (_elsewhere, "a login goes over https only"),
    "unreachable": (_nobody_there, "http://127.0.0.1:1 gave no answer that can be read"),
    "metadata fails": (
        lambda world: world.answers.update({"/.well-known/oauth-protected-resource*": (500, {})}),
        "HTTP 500",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_is_told(world: World, file: Path, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    break_it, why = FAULTS[fault]
    break_it(world)
    with caplog.at_level(logging.DEBUG), pytest.raises(ts.ToolspeakError, match=why) as caught:
        logged_in(world, file)
    assert not file.exists()
    told = caplog.text + str(caught.value)
    assert shows_no_secret(told, world, file)
    assert "a-token-of-sorts" not in told


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"state": "another"}, "the outcome of another login"),
        ({"code": "another"}, r"gave no token that can be used \(HTTP 40[01]\)"),
        ({"code": ""}, "came back without a code"),
        ({"iss": "http://127.0.0.1:1"}, "iss mismatch"),
        ({"error": "server_error\n\x1b[2J"}, "the authorization server says server_error"),
    ],
)
def test_a_browser_that_comes_back_with_something_else(
    world: World, file: Path, changed: dict[str, str], why: str
) -> None:
    with pytest.raises(ts.ToolError, match=why) as caught:
        logged_in(world, file, **changed)
    assert str(caught.value).isprintable()
    assert not file.exists()


def test_nobody_comes_back(world: World, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_module, "PATIENCE", 0.05)
    with pytest.raises(ts.ToolError, match=r"nobody logged in within 0\.05 s"):
        background_loop.wait(log_in(address(world.url), Logins(file), lambda _: None))


def test_a_server_that_asks_for_no_login(world: World, file: Path) -> None:
    logged_in(world, file)
    with pytest.raises(ts.UsageError, match="asks for no login"):
        background_loop.wait(
            log_in(
                address(world.url, headers={"Authorization": f"Bearer {world.given[-1].access_token}"}),
                Logins(file),
                lambda _: None,
            )
        )


def test_a_port_that_is_taken(world: World, file: Path) -> None:
    port = int(world.origin.rpartition(":")[2])
    with pytest.raises(ts.UsageError, match=f"cannot listen at port {port}"):
        background_loop.wait(log_in(address(world.url), Logins(file), lambda _: None, port=port))


def test_a_server_that_ends_no_login_is_told_of(world: World, file: Path) -> None:
    logged_in(world, file)
    world.answers["/revoke"] = (500, {})
    assert background_loop.wait(log_out(address(world.url), Logins(file))) == "HTTP 500"
    assert json.loads(file.read_text())["logins"] == {}


def test_no_secret_is_sent_to_a_server_that_is_not_encrypted(world: World, file: Path) -> None:
    """Also where the address came from the metadata or the file, and only the end of a login needs it."""
    logged_in(world, file)
    content = json.loads(file.read_text())
    [login] = content["logins"].values()
    login |= {"revocation_endpoint": "http://login.example/revoke", "token_endpoint": "http://login.example/token"}
    file.write_text(json.dumps(content))
    world.forget_tokens()
    with pytest.raises(ts.ToolError, match="cannot be renewed: a login goes over https only"):
        ts.mcp(world.url, pins=False).open()
    assert background_loop.wait(log_out(address(world.url), Logins(file))).startswith("a login goes over https only")


@pytest.mark.parametrize(
    "text", ["no json", "[]", '{"form": 1}', '{"form": 1, "logins": {"a": 1}}', '{"form": 2, "logins": {}}', "\x00"]
)
def test_a_file_that_is_damaged_is_told_of(world: World, file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(ts.UsageError, match=r"the logins in .* cannot be read: .* Remove the file"):
        ts.mcp(world.url, pins=False).open()
    with pytest.raises(ts.UsageError, match="cannot be read"):
        logged_in(world, file)


def test_a_login_that_lacks_a_field(world: World, file: Path) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps({"form": 1, "logins": {world.url: {"access_token": "a"}}}))
    with pytest.raises(ts.UsageError, match="it lacks a field of a login"):
        ts.mcp(world.url, pins=False).open()


def test_logins_that_are_switched_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_LOGINS", "off")
    with pytest.raises(ts.ToolError, match="it asks for a login"):
        ts.mcp(world.url, pins=False).open()
    with pytest.raises(ts.UsageError, match=r"logins are switched off by \$TOOLSPEAK_LOGINS"):
        background_loop.wait(log_in(address(world.url), Logins(None), lambda _: None))
