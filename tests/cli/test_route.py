"""`toolspeak route`: what of many tools a question brings, and how well that goes on one's own examples."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from world import Cli

import toolspeak as ts
from many import NAMES, THINGS, definition
from toolspeak.cli.command_group import root
from toolspeak.models.embedded.weights import present
from toolspeak.search.router import ToolRouter
from toolspeak.types import Request

pytest.importorskip("Stemmer", reason="the extra search is not installed")


@pytest.fixture(autouse=True)
def many(place: Path) -> list[dict[str, Any]]:
    """160 tools in many.json, three in few.json."""
    made = [definition(name) for name in NAMES]
    (place / "many.json").write_text(json.dumps(made), "utf-8")
    (place / "few.json").write_text(json.dumps(made[:3]), "utf-8")
    return made


def run(*args: str, stdin: str = "", tools: str = "many.json", model: str = "scripted:x") -> Result:
    return CliRunner().invoke(root, ["route", *args, "--tools", tools, "--model", model], input=stdin)


def told(*args: str, **more: str) -> dict[str, Any]:
    done = run(*args, "--json", **more)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def written(*lines: Any, name: str = "examples.jsonl") -> str:
    told = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    Path(name).write_text("".join(f"{line}\n" for line in told), "utf-8")
    return name


# ------------------------------------------------------------------ one question


def test_the_ranking_and_what_of_it_is_shown() -> None:
    done = run("Cancel my hotel")
    assert done.exit_code == 0
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["shown", "score", "tool", "what", "it", "does"]
    first = rows[0].split()
    assert (first[:2], first[3]) == (["1", "✓"], "cancel_hotel")
    assert rows[0].rstrip().endswith("To cancel one hotel of the user.")
    marks = [row.split()[1] for row in rows if row.split()[0].isdigit()]
    assert marks == ["✓"] * 20 + ["–"] * 3
    assert re.fullmatch(
        r"scripted is shown 20 of 160 tools and search_tools: about \d{3} tokens of \d,\d{3} \(\d+ %\)", rows[-1]
    )


def test_what_is_told_to_be_shown_is_what_the_model_is_sent(many: list[dict[str, Any]]) -> None:
    found = told("Book me a flight")
    index = ts.ToolIndex(many)
    router = ToolRouter(ts.model("scripted:x"), index)
    request = router.narrowed_now(Request([{"role": "user", "content": "Book me a flight"}], tuple(index)))
    assert [*found["shown"], found["search"]] == [tool.name for tool in request.tools or ()]
    assert [one["name"] for one in found["ranking"]] == [
        tool.name for tool, _ in index.search("Book me a flight", len(found["ranking"]))
    ]
    assert {one["name"] for one in found["ranking"] if one["shown"]} == set(found["shown"])
    assert found["tools"] == 160
    assert 0 < found["tokens"]["shown"] < found["tokens"]["all"] / 5
    assert found["tokens"]["counted"] is False


def test_how_many_are_listed() -> None:
    assert len(told("Cancel my hotel", "-k", "2")["ranking"]) == 2
    assert "… and 23 more (-k N)" in run("Cancel my hotel", "-k", "2").stdout
    assert "more" not in run("Cancel my hotel", "-k", "500").stdout


def test_few_tools_are_all_shown() -> None:
    done = run("the weather, please", tools="few.json")
    assert done.stdout.splitlines()[-1].startswith("scripted is shown all 3 tools: about ")
    found = told("the weather, please", tools="few.json")
    assert found["tokens"]["shown"] == found["tokens"]["all"]
    assert found["search"] is None


def test_a_question_that_shares_no_word_with_a_tool() -> None:
    done = run("Do I need an umbrella?")
    assert done.exit_code == 0
    assert "No tool shares a word with the question" in done.stdout
    assert "shown 20 of 160" in done.stdout  # the slots are filled, whatever is asked


def test_a_question_from_a_pipe() -> None:
    assert told("-", stdin="Cancel my hotel\n")["question"] == "Cancel my hotel"
    assert told(stdin="Cancel my hotel\n")["ranking"][0]["name"] == "cancel_hotel"


def test_a_terminal_is_safe_from_descriptions(place: Path, terminal: Callable[..., Any]) -> None:
    one = {**definition("get_hotel"), "description": "A hotel\x1b]0;gotcha\x07 and more"}
    (place / "bad.json").write_text(json.dumps([one]), "utf-8")
    code, seen = terminal("route", "hotel", "--tools", "bad.json", "--model", "scripted:x").end()
    assert code == 0
    assert "\x1b]0;" not in seen
    assert "get_hotel" in seen


@pytest.fixture
def counting() -> Iterator[str]:
    """A server that counts: 7 tokens for what is said, and 10 for each tool."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known = self.path.endswith("/tokenize") and "messages" in body
            raw = json.dumps({"count": 7 + 10 * len(body.get("tools", []))} if known else {}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1#m"
        server.shutdown()
        thread.join()


def test_tokens_are_counted_by_the_models_server(counting: str) -> None:
    found = told("Cancel my hotel", model=counting)
    assert found["tokens"] == {"shown": 10 * (len(found["shown"]) + 1), "all": 1600, "counted": True}


def test_a_server_that_is_away_leaves_an_estimate() -> None:
    found = told("Cancel my hotel", model="http://127.0.0.1:1/v1#m")
    assert found["tokens"]["counted"] is False
    assert len(found["shown"]) == 20


@pytest.mark.skipif(not present(), reason="the embedded model is not here")
def test_the_embedded_model_counts_what_it_is_shown(cli: Cli) -> None:
    done = cli("route", "Cancel my hotel", "--tools", "many.json")
    assert done.returncode == 0
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"local is shown 10 of 160 tools: \d{3} tokens of \d,\d{3} \([\d.]+ %\)", last)


# ------------------------------------------------------------------ on one's own examples


def test_recall_on_examples_and_cases() -> None:
    examples = written(
        {"question": "Cancel my hotel", "tools": ["cancel_hotel"]},
        {"question": "Book me a flight and a hotel", "tools": ["book_flight", "book_hotel"]},
        {"question": "Send that invoice", "calls": [{"name": "send_invoice", "arguments": {}}], "group": "mail"},
        {"question": "Do I need an umbrella?", "tools": ["get_weather"]},
        {"question": "Hello!", "calls": []},
    )
    done = run("--eval", examples)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0][:4] == ["4", "questions", "of", "examples.jsonl,"]
    assert ["words"] in lines
    assert ["recall@1", "62", "%", "(22–91)"] in lines  # half of the two that the second one needs
    assert ["recall@10", "75", "%", "(30–95)"] in lines
    assert [
        "shown",
        "to",
        "the",
        "model",
        "100",
        "%",
        "(51–100)",
    ] in lines  # the slots that nothing fits are filled, too
    assert ["MRR", "0.75", "(0.30–0.95)"] in lines
    assert "✗ line 4: Do I need an umbrella?\n    needs  get_weather (not found)\n    came   nothing\n" in done.stdout
    assert done.stderr == "left out, because they need no tool: 1 line\n"


def test_recall_for_programs_and_where_a_miss_begins() -> None:
    examples = written({"question": "my hotel", "tools": ["send_hotel"]}, {"question": "song", "tools": ["get_song"]})
    (by_words,) = json.loads(run("--eval", examples, "--json").stdout)
    assert by_words["misses"] == []
    assert [by_words["recall"][k]["value"] for k in ("1", "10", "20")] == [0.5, 1, 1]
    (by_words,) = json.loads(run("--eval", examples, "--json", "-k", "2").stdout)
    assert "2" in by_words["recall"]
    (miss,) = by_words["misses"]
    assert (miss["line"], miss["question"]) == (1, "my hotel")
    rank = miss["needed"]["send_hotel"]
    assert 2 < rank <= 10
    assert len(miss["first"]) == 3
    assert "send_hotel" not in miss["first"]
    assert by_words["mrr"]["value"] == pytest.approx((1 + 1 / rank) / 2)


def test_what_is_asked_in_a_conversation_counts_with_what_was_asked_before() -> None:
    said = [
        {"role": "user", "content": "Please cancel the train for Monday"},
        {"role": "assistant", "content": "It is cancelled."},
        {"role": "user", "content": "and the taxi?"},
    ]
    (by_words,) = json.loads(run("--eval", written({"messages": said, "tools": ["cancel_taxi"]}), "--json").stdout)
    assert by_words["recall"]["1"]["value"] == 1


def test_the_page_loads_nothing_and_escapes(place: Path) -> None:
    examples = written(
        {"question": "<script>alert(1)</script>", "tools": ["get_weather"]},
        {"question": "Cancel my hotel", "tools": ["cancel_hotel"]},
    )
    done = run("--eval", examples, "--out", "recall.html")
    assert done.exit_code == 0
    assert done.stderr == "report: recall.html\n"
    page = (place / "recall.html").read_text("utf-8")
    assert "<svg" in page
    assert "recall@20" in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)=|@import|url\(", page)


def test_words_beside_meaning(place: Path) -> None:
    from toolspeak.search.minilm import WEIGHTS

    if not WEIGHTS.present():
        pytest.skip("all-MiniLM-L6-v2 is not here: python -m toolspeak.search.minilm fetches it")
    examples = written({"question": "Do I need an umbrella?", "tools": ["get_weather"]})
    tools = [definition(f"get_{thing}") for thing in THINGS]
    (place / "gets.json").write_text(json.dumps(tools), "utf-8")
    done = run("--eval", examples, "--embed", "minilm", "--json", tools="gets.json")
    words, both = json.loads(done.stdout)
    assert (words["by"], both["by"]) == ("words", "words and minilm")
    assert words["recall"]["20"]["value"] == 0
    assert both["recall"]["1"]["value"] == 1


# ------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"question": "x", "tools": ["cancel_hotl"]}, r"line 2: tools: no tool is called 'cancel_hotl'\. Did you mean 'cancel_"),
        ({"question": "x", "tools": ["qqqqqqqq"]}, r"line 2: tools: no tool is called 'qqqqqqqq'\. See them all"),
        ({"question": "x", "tools": "cancel_hotel"}, "line 2: tools: expected a list with the names"),
        ({"question": "x", "tools": [definition("get_tax")]}, "line 2: tools: expected the name of a tool"),
        ({"question": "x"}, "line 2: tools: expected a list .* received nothing"),
        ({"tools": ["get_tax"]}, "line 2: expected a question, or messages"),
        ({"question": " ", "tools": ["get_tax"]}, "line 2: the question is empty"),
        ({"messages": [{"role": "assistant", "content": "x"}], "tools": ["get_tax"]}, "line 2: messages: the user says"),
        ({"question": "x", "calls": ["get_taxes"]}, "line 2: calls: no tool is called 'get_taxes'"),
        ({"question": "x", "calls": [{"arguments": {}}]}, 'line 2: calls: expected {"name": …'),
        ({"question": "x", "tool": ["get_tax"]}, r"line 2: no field is called 'tool'\. Did you mean 'tools'"),
        (["x"], "line 2: expected an object"),
        ({"question": "x\u2028y\x85z", "tools": ["nothing"]}, "line 2: tools: no tool is called 'nothing'"),
        (f'{{"question": {"1" * 5_000}}}', "line 2: not JSON that can be read"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_told_with_its_line(line: Any, said: str) -> None:
    done = run("--eval", written({"question": "x", "tools": ["get_tax"]}, line))
    assert done.exit_code == 2
    assert re.search(said, done.stderr), done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--eval", "empty.jsonl"], "empty.jsonl holds no example, it is empty"),
        (["--eval", "none.jsonl"], "no line of it needs a tool"),
        (["--eval", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
        (["hello", "--eval", "none.jsonl"], "expected one of the two"),
        (["hello", "--out", "x.html"], "use both or neither"),
        (["--eval", "none.jsonl", "--out", "x.pdf"], "expected a file FILE.html"),
        (["--eval", "none.jsonl", "--out", "nowhere/x.html"], "in an existing folder"),
        (["hello", "-k", "0"], "0 is not in the range"),
        (["hello", "--embed", "nothing"], "there is no embedder named 'nothing'"),
        ([" "], "the question is empty"),
    ],
)
def test_wrong_usage_is_told(place: Path, args: list[str], said: str) -> None:
    (place / "empty.jsonl").write_text("\n", "utf-8")
    written({"question": "x", "calls": []}, name="none.jsonl")
    done = run(*args)
    assert done.exit_code == 2
    assert said in done.stderr


def test_without_tools_and_without_a_question(terminal: Callable[..., Any]) -> None:
    done = CliRunner().invoke(root, ["route", "hello"])
    assert done.exit_code == 2
    assert "no tools: expected --tools FILE" in done.stderr
    assert 'expected toolspeak route "…"' in terminal("route", "--tools", "many.json").end()[1]
