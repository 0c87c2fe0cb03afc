"""The page at /ui: off unless it is on, its files open and harmless, all else behind the key and for the page alone."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from toolspeak import Toolbox
from toolspeak.dialects import get
from toolspeak.errors import UsageError
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.call_policy import CallPolicy
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import Budget, Key, PageSettings, Rates, StoreSettings
from toolspeak.gateway.telemetry.log_lines import LogLines
from toolspeak.gateway.telemetry.observer import Observer
from toolspeak.gateway.telemetry.request_record import RequestRecord
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.policy.policy import Policy
from toolspeak.types import Message, Request
from toolspeak.ui import live as ui_live
from toolspeak.ui.assets import _all, asset
from toolspeak.ui.prompt_parts import RequestParts

KEY = "a-key-of-twenty-letters-and-more"
BEARER = {"Authorization": f"Bearer {KEY}"}
PASTED = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"


def visit(serve_models: Callable[..., Any], *requests: Any, ui: PageSettings | None, **settings: Any) -> list[Any]:
    """What came of each request, (method, path, body, headers): status, headers, text. The model writes `reply`."""
    model = Scripted(settings.pop("reply", [CALL, "Hello"]))
    settings = {"keys": (Key("page", digest(KEY)),), "ui": ui, **settings}

    async def go() -> list[Any]:
        found: list[Any] = []
        async with (
            serve_models(settings=settings, m=model) as running,
            aiohttp.ClientSession() as session,
        ):
            for method, path, body, headers in requests:
                async with session.request(
                    method, running.url + path, json=body, headers=headers, allow_redirects=False
                ) as response:
                    found.append((response.status, response.headers, await response.text()))
        return found

    return asyncio.run(go())


def test_with_a_policy_no_call_runs_past_it(serve_models: Callable[..., Any]) -> None:
    """Not by the page's own way to run one, nor as a tool that was pasted; without one nothing can be resumed."""
    asked = {"model": "m", "messages": [{"role": "user", "content": "Rain?"}]}
    paused = {"messages": asked["messages"], "pending": [{}]}
    requests = [
        ("POST", "/ui/api/run", {"name": "weather", "arguments": {"city": "Rome"}}, BEARER),
        ("POST", "/ui/api/turn", {**asked, "tools": [{"name": "weather", "parameters": {}}]}, BEARER),
        ("POST", "/ui/api/resume", {**asked, "paused": paused, "answers": {"a": True}}, BEARER),
        ("POST", "/ui/api/resume", {**asked, "paused": paused, "answers": {"a": {"approve": True}}}, BEARER),
    ]
    page = PageSettings(tools=Toolbox(weather), policy=Policy(ask=["weather"]))
    ran, pasted, wrong, unknown = visit(serve_models, *requests, ui=page)
    assert (ran[0], "calls run only as part of a conversation" in ran[2]) == (403, True)
    assert (pasted[0], "cannot run: give it with `toolspeak ui --tools`" in pasted[2]) == (400, True)
    assert (wrong[0], "expected a Reply, or its JSON" in wrong[2]) == (400, True)
    assert unknown[0] == 400
    [without] = visit(serve_models, requests[2], ui=PageSettings(tools=Toolbox(weather)))
    assert (without[0], "no policy was given" in without[2]) == (400, True)


def test_a_swapped_call_is_not_approved_and_an_approval_is_good_for_once(
    serve_models: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSPEAK_APPROVALS", str(tmp_path / "approvals.sqlite"))
    ran: list[str] = []

    def remove(name: str) -> str:
        """Removes a note."""
        ran.append(name)
        return f"removed {name}"

    call = '<tool_call>\n{"name": "remove", "arguments": {"name": "a"}}\n</tool_call>'
    asked = {"model": "m", "offered": ["remove"]}
    page = PageSettings(tools=Toolbox(remove), policy=Policy(ask=["remove"]))

    async def go() -> list[str]:
        settings = {"keys": (Key("page", digest(KEY)),), "ui": page}
        model = Speaker(Scripted([call, "Done.", "Done again."]), "hermes")
        async with serve_models(settings=settings, m=model) as running, aiohttp.ClientSession(headers=BEARER) as http:

            async def rows(path: str, **body: Any) -> list[Any]:
                async with http.post(f"{running.url}/ui/api/{path}", json={**asked, **body}) as response:
                    return [json.loads(line[6:]) for line in (await response.text()).splitlines() if line]

            reply = (await rows("turn", messages=[{"role": "user", "content": "Remove a."}]))[-1]
            paused = {"messages": reply["messages"], "pending": reply["pending"]}
            answers = {reply["calls"][0]["id"]: True}
            swapped = json.loads(json.dumps(paused).replace('"a"', '"b"').replace('\\"a\\"', '\\"b\\"'))
            tries = [await rows("resume", paused=one, answers=answers) for one in (swapped, paused, paused)]
            return [json.dumps(one[-1]) + json.dumps(one) for one in tries]

    swapped, first, again = asyncio.run(go())
    assert "StaleApproval" in swapped
    assert "Done." in first
    assert ran == ["a"]
    assert "Done again." in again


def test_there_is_no_page_unless_it_is_asked_for(serve_models: Callable[..., Any]) -> None:
    told = visit(serve_models, *(("GET", path, None, BEARER) for path in ("/ui", "/ui/", "/ui/api/about")), ui=None)
    assert [status for status, _, _ in told] == [404, 404, 404]


def test_its_files_need_no_key_and_everything_else_does(serve_models: Callable[..., Any]) -> None:
    there, page, script, missing, closed, opened = visit(
        serve_models,
        ("GET", "/ui", None, {}),
        ("GET", "/ui/", None, {}),
        ("GET", "/ui/main.js", None, {}),
        ("GET", "/ui/app.py", None, {}),
        ("GET", "/ui/api/about", None, {}),
        ("GET", "/ui/api/about", None, BEARER),
        ui=PageSettings(),
    )
    assert (there[0], there[1]["location"]) == (308, "/ui/")
    assert (page[0], page[1]["content-type"]) == (200, "text/html; charset=utf-8")
    policy = page[1]["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert script[1]["content-type"] == "text/javascript; charset=utf-8"
    assert missing[0] == 404
    assert closed[0] == 401
    assert json.loads(opened[2])["models"][0]["name"] == "m"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, "host_not_allowed"),
        ({"Origin": "https://evil.example"}, "origin_not_allowed"),
        ({"Origin": "null"}, "origin_not_allowed"),
        ({"Sec-Fetch-Site": "cross-site"}, "origin_not_allowed"),
    ],
)
def test_no_other_page_may_ask_even_with_the_key(
    serve_models: Callable[..., Any], headers: dict[str, str], code: str
) -> None:
    ((status, _, text),) = visit(
        serve_models, ("GET", "/ui/api/about", None, {**BEARER, **headers}), ui=PageSettings(), cors=("*",)
    )
    assert (status, json.loads(text)["error"]["code"]) == (403, code)
    assert "weather" not in text


def test_the_page_is_small_and_names_no_other_place() -> None:
    files = _all()
    assert sum(len(content) for content, _ in files.values()) <= 300_000
    for name, (content, _) in files.items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z]+\.[a-z]", text), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )
    assert asset("../assets.py") is None


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.split("\n\n") if line]


def test_calls_and_results_in_messages_are_no_definitions() -> None:
    """Who wrote a stretch that names a tool is told by its turn: the definitions stand before the first question."""
    asked: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Rome?"}]
    seen = [
        {"role": "system", "content": "Be brief.\nTools: weather"},
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": CALL},
        {"role": "user", "content": "Result of weather: sunny"},
        {"role": "system", "content": "Call the tool weather."},
    ]

    def kinds(message: Any) -> list[str]:
        return [kind for kind, _ in message["parts"] if kind != "control"]

    told = RequestParts(asked, list(Toolbox(weather)), None).question(Request(seen))["messages"]
    assert [kinds(message) for message in told] == [["system", "tools"], ["user"], ["assistant"], ["tool"], ["tools"]]
    first = RequestParts(asked[1:], list(Toolbox(weather)), None).question(Request([
        {"role": "user", "content": "Tools: weather\nWeather in Rome?"},
    ]))["messages"]  # fmt: skip
    assert [kind for kind, _ in first[0]["parts"]] == ["tools", "user"]


def test_control_tokens_within_definitions_do_not_end_them() -> None:
    text = "Be brief.\nTools: weather\nCall them within <tool_call></tool_call> tags."
    asked: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    seen = Request([{"role": "system", "content": text}])
    told = RequestParts(asked, list(Toolbox(weather)), get("hermes")).question(seen)["messages"]
    assert [kind for kind, _ in told[0]["parts"]] == ["system", "tools", "control", "control", "tools"]


def test_a_turn_tells_prompt_raw_text_events_and_reply(serve_models: Callable[..., Any]) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Weather in Rome?"}], "offered": ["weather"]}
    ((status, headers, text),) = visit(
        serve_models, ("POST", "/ui/api/turn", body, BEARER), ui=PageSettings(tools=Toolbox(weather))
    )
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    rows = rows_of(text)
    assert rows[0]["row"] == "strategy"
    ask = next(row for row in rows if row["row"] == "ask")
    parts = [part for message in ask["messages"] for part in message["parts"]]
    assert ["user", "Weather in Rome?"] in parts
    assert any(kind == "tools" and "weather" in text for kind, text in parts)
    assert "".join(row["text"] for row in rows if row["row"] == "raw") == CALL
    assert rows[-1]["row"] == "reply"
    assert rows[-1]["calls"][0]["arguments"] == {"city": "Rome"}


def test_a_tool_runs_if_it_was_given_at_the_start(serve_models: Callable[..., Any]) -> None:
    ran, unknown, wrong = visit(
        serve_models,
        ("POST", "/ui/api/run", {"name": "weather", "arguments": {"city": "Rome"}}, BEARER),
        ("POST", "/ui/api/run", {"name": "os.system", "arguments": {}}, BEARER),
        ("POST", "/ui/api/run", {"name": "weather", "arguments": {"town": "Rome"}}, BEARER),
        ui=PageSettings(tools=Toolbox(weather)),
    )
    assert json.loads(ran[2])["text"] == "Sunny in Rome"
    assert unknown[0] == 400
    assert json.loads(wrong[2])["error"].startswith("InvalidCall")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("turn", {"model": "m"}),
        ("turn", {"model": "m", "messages": []}),
        ("turn", {"model": "m", "messages": [{"role": "nobody", "content": "x"}]}),
        ("turn", {"model": "m", "messages": [{"role": "user", "content": "x"}], "dialect": "none-such"}),
        ("turn", {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [{"name": 3}]}),
        ("turn", {"model": "none", "messages": [{"role": "user", "content": "x"}]}),
        ("run", {"name": "weather", "arguments": []}),
        ("read", {"text": 3}),
        ("read", {"text": "x", "dialect": "none-such"}),
        ("draft", {"template": "no template"}),
        ("none", {}),
    ],
)
def test_what_cannot_be_is_a_mistake_of_the_client(serve_models: Callable[..., Any], path: str, body: Any) -> None:
    ((status, _, text),) = visit(serve_models, ("POST", f"/ui/api/{path}", body, BEARER), ui=PageSettings())
    assert 400 <= status < 500, text
    assert json.loads(text)["error"]["message"]


# ------------------------------------------------------------------ the requests that pass

OTHER = "another-key-of-twenty-letters"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
QUESTION = {"model": "m", "messages": [{"role": "user", "content": "Weather in Rome?"}], "tools": [TOOL]}


def live(serve_models: Callable[..., Any], *requests: Any, **page: Any) -> list[Any]:
    """What came of requests to a gateway with two keys and a page."""
    keys = (Key("page", digest(KEY)), Key("other", digest(OTHER)))
    return visit(serve_models, *requests, ui=PageSettings(**page), keys=keys)


def test_a_request_is_kept_with_its_prompt_its_reply_and_what_the_client_got(serve_models: Callable[..., Any]) -> None:
    _, lines, one = live(
        serve_models,
        ("POST", "/v1/chat/completions", QUESTION, BEARER),
        ("GET", "/ui/api/live", None, BEARER),
        ("GET", "/ui/api/request?number=1", None, BEARER),
        live=2,
    )
    (line,) = json.loads(lines[2])["requests"]
    assert (line["model"], line["status"], line["done"]) == ("m", 200, True)
    told = json.loads(one[2])
    assert told["raw"] == CALL
    assert told["asks"][0]["messages"]
    assert json.loads(told["sent"])["choices"][0]["message"]["tool_calls"]
    assert json.loads(told["body"]) == QUESTION
    assert json.loads(told["case"])["calls"] == [{"name": "weather", "arguments": {"city": "Rome"}}]
    assert KEY not in one[2]


def test_a_key_sees_its_own_requests_and_an_operator_all(serve_models: Callable[..., Any]) -> None:
    asked = [
        ("POST", "/v1/chat/completions", QUESTION, BEARER),
        ("GET", "/ui/api/live", None, BEARER),
        ("GET", "/ui/api/live", None, {"Authorization": f"Bearer {OTHER}"}),
        ("GET", "/ui/api/request?number=1", None, {"Authorization": f"Bearer {OTHER}"}),
    ]
    _, own, others, hidden = live(serve_models, *asked, live=2)
    assert len(json.loads(own[2])["requests"]) == 1
    assert json.loads(others[2])["requests"] == []
    assert hidden[0] == 404
    _, _, operators, _ = live(serve_models, *asked, live=2, operators=("other",))
    assert len(json.loads(operators[2])["requests"]) == 1


def test_only_so_many_are_kept_and_none_unless_that_is_wanted(serve_models: Callable[..., Any]) -> None:
    wrong = ("POST", "/v1/chat/completions", {"model": "none", "messages": []}, BEARER)
    *_, lines = live(serve_models, wrong, wrong, wrong, ("GET", "/ui/api/live", None, BEARER), live=2)
    assert [row["number"] for row in json.loads(lines[2])["requests"]] == [2, 3]
    *_, none = live(serve_models, wrong, ("GET", "/ui/api/live", None, BEARER))
    assert none[0] == 404


def test_a_long_request_is_kept_in_part(serve_models: Callable[..., Any]) -> None:
    long = {**QUESTION, "messages": [{"role": "user", "content": "x" * 500_000}]}
    _, one = live(
        serve_models,
        ("POST", "/v1/chat/completions", long, BEARER),
        ("GET", "/ui/api/request?number=1", None, BEARER),
        live=2,
    )
    assert "more" in json.loads(one[2])["body"][-30:]
    assert len(json.loads(one[2])["body"]) < 110_000


def test_of_large_requests_only_the_beginning_is_kept(
    serve_models: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All together have a limit, beyond which the oldest are dropped."""
    monkeypatch.setattr(ui_live, "LARGE", 200_000)
    monkeypatch.setattr(ui_live, "ROOM", 500_000)
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * 300_000}], "tools": [TOOL]}
    large = ("POST", "/v1/chat/completions", body, BEARER)
    *_, listed, shown = live(
        serve_models,
        *[large] * 4,
        ("GET", "/ui/api/live", None, BEARER),
        ("GET", "/ui/api/request?number=4", None, BEARER),
        live=100,
    )
    assert [row["number"] for row in json.loads(listed[2])["requests"]] == [3, 4]
    one = json.loads(shown[2])
    assert (one["asks"], one["case"]) == ([], None)
    assert one["model"] == "m"
    assert len(one["body"]) < 110_000


@pytest.mark.parametrize("path", ["live?after=x", "request?number=", "request?number=99", "request"])
def test_what_is_asked_of_requests_is_checked(serve_models: Callable[..., Any], path: str) -> None:
    ((status, _, text),) = live(serve_models, ("GET", f"/ui/api/{path}", None, BEARER), live=2)
    assert status in (400, 404)
    assert json.loads(text)["error"]["message"]


def test_reports_are_those_of_the_folder_and_no_other_file(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    head = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    folder = tmp_path / "reports"
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "report.html").write_text(f"{head}<title>A &amp; B</title>")
    (folder / "page.html").write_text("<title>Not ours</title>")
    (tmp_path / "outside.html").write_text(head)
    (folder / "link.html").symlink_to(tmp_path / "outside.html")
    names = ("one/report.html", "../outside.html", "link.html", "page.html")
    listed, ticket, *refused = live(
        serve_models,
        ("GET", "/ui/api/reports", None, BEARER),
        *(("POST", "/ui/api/report", {"name": name}, BEARER) for name in names),
        ("GET", "/ui/report/guess", None, BEARER),
        reports=str(folder),
        operators=("page",),
    )
    rows = json.loads(listed[2])["reports"]
    assert [(row["name"], row["title"]) for row in rows] == [("one/report.html", "A & B")]
    assert json.loads(ticket[2])["address"].startswith("report/")
    assert [status for status, _, _ in refused] == [404] * 4


def test_the_configuration_has_the_page() -> None:
    text = "[models.m]\nupstream = 'scripted:Hi'\n[ui]\nlive = 50\noperators = ['me']\n"
    key = f"[keys.me]\nhash = 'sha256:{'0' * 64}'\n"
    assert parse_config(text + key).ui == PageSettings(live=50, operators=("me",))
    assert parse_config("[models.m]\nupstream = 'scripted:Hi'\n").ui is None
    with pytest.raises(UsageError, match=r"workers = 1"):
        parse_config(text + key + "[server]\nworkers = 2\n")
    with pytest.raises(UsageError, match="operators"):
        parse_config(text + key.replace("me]", "you]"))
    with pytest.raises(UsageError, match=r"ui\.reports: expected `operators`, the keys that see the reports"):
        parse_config(text.replace("operators = ['me']", "reports = '.'") + key)
    assert parse_config(text.replace("operators = ['me']", "reports = '.'")).ui


def test_a_turn_counts_on_the_budget_of_its_key(serve_models: Callable[..., Any], tmp_path: Path) -> None:
    turn = ("POST", "/ui/api/turn", {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, BEARER)
    first, second = visit(
        serve_models,
        turn,
        turn,
        ui=PageSettings(),
        keys=(Key("page", digest(KEY), budget=Budget(tokens=1)),),
        store=StoreSettings(str(tmp_path / "counts.sqlite")),
    )
    assert first[0] == 200
    assert second[0] == 429


def test_a_turn_counts_against_the_rates_of_its_key(serve_models: Callable[..., Any]) -> None:
    turn = ("POST", "/ui/api/turn", {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, BEARER)
    about = ("GET", "/ui/api/about", None, BEARER)
    key = Key("page", digest(KEY), rates=Rates(requests=1))
    found = visit(serve_models, about, turn, turn, about, ui=PageSettings(), keys=(key,))
    assert [status for status, _, _ in found] == [200, 200, 429, 200]


def test_a_turn_has_no_call_that_the_policy_of_its_key_refuses(serve_models: Callable[..., Any]) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "Rain?"}], "tools": [PASTED]}
    turn = ("POST", "/ui/api/turn", asked, BEARER)
    for deny, calls in ((["weather"], []), ([], ["weather"])):
        key = Key("page", digest(KEY), policy=CallPolicy(Policy(allow=["weather"], deny=deny)))
        [(_, _, text)] = visit(serve_models, turn, ui=PageSettings(), keys=(key,), reply=[CALL] * 2)
        rows = [json.loads(line[6:]) for line in text.splitlines() if line]
        assert [call["name"] for call in rows[-1]["calls"]] == calls
        assert ("The call of weather was left out" in rows[-1]["text"]) == bool(deny)


def test_the_page_fills_no_log_but_its_questions_to_models_are_there(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+b") as log:
        observer = Observer(LogLines(log.fileno()))
        for route in ("/ui", "/ui/api/turn"):
            observer.end(RequestRecord("id", "POST", route), None, gone=False)
        assert [json.loads(line)["route"] for line in (tmp_path / "log").read_text().splitlines()] == ["/ui/api/turn"]
