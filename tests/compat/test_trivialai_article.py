"""The article's interface: its transcript as printed, and every promise and quirk of `Tools`."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import subprocess
import sys
from typing import Any, List, Optional  # noqa: UP035 - the article's own spelling

import pytest
from fake_ollama import serving

from peers import peer
from toolspeak import errors
from toolspeak.compat.trivialai import (
    GenerationError,
    LLMResult,
    Ollama,
    ToolCallError,
    Tools,
    TransformError,
    generate,
    generate_checked,
    generate_tool_call,
    generateToolCall,
    loadch,
)
from toolspeak.compat.trivialai.llm import as_llm
from toolspeak.compat.trivialai.thinking import split_thoughts
from toolspeak.events import Finished, TextDelta, ThoughtDelta
from toolspeak.models.scripted import Scripted

TRANSCRIPT = """
>>> from typing import Optional, List
>>> def _screenshot(url: str, selectors: Optional[List[str]] = None) -> None:
...     "Takes a url and an optional list of selectors. Takes a screenshot"
...     print(f"GOT {url}, {selectors}!")
>>> from toolspeak.compat.trivialai import tools, ollama
>>> tls = tools.Tools()
>>> tls.define("screenshot", _screenshot)
True
>>> tls.list()
[{'name': 'screenshot', 'type': {'url': <class 'str'>, 'selectors': typing.Optional[typing.List[str]]}, 'description': 'Takes a url and an optional list of selectors. Takes a screenshot'}]
>>> client = ollama.Ollama("gemma2:2b", "http://localhost:11434/")
>>> tools.generate_tool_call(tls, client, "Take a screenshot of the Google website and highlight the search box")
LLMResult(raw=<Response [200]>, content={'functionName': 'screenshot', 'args': {'url': 'https://www.google.com/', 'selectors': ['#search']}})
>>> res = _
>>> res.content
{'functionName': 'screenshot', 'args': {'url': 'https://www.google.com/', 'selectors': ['#search']}}
>>> tls.call(res.content)
GOT https://www.google.com/, ['#search']!
"""

CALL = {"functionName": "screenshot", "args": {"url": "https://www.google.com/", "selectors": ["#search"]}}
ANSWER = "```json\n" + json.dumps(CALL) + "\n```\n"
SYSTEM = (
    "You are a computer specialist. Your job is translating client requests into tool calls. Your client has sent a "
    "request to use a tool; return the function call corresponding to the request and no other commentary. Return a "
    'value of type `{"functionName" :: string, "args" :: {arg_name: arg value} }`. You have access to the tools: '
    "[{'name': 'screenshot', 'type': {'url': <class 'str'>, 'selectors': typing.Optional[typing.List[str]]}, "
    "'description': 'Takes a screenshot'}]."
)


def screenshot(url: str, selectors: Optional[List[str]] = None) -> str:  # noqa: UP006, UP045
    "Takes a screenshot"
    return f"GOT {url}, {selectors}!"


def box() -> Tools:
    tools = Tools()
    assert tools.define("screenshot", screenshot)
    return tools


def test_the_transcript_runs_as_printed() -> None:
    with serving(ANSWER) as server:
        text = TRANSCRIPT.replace("http://localhost:11434/", server.url)
        runner = doctest.DocTestRunner(verbose=False)
        test = doctest.DocTestParser().get_doctest(text, {}, "transcript", None, 0)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = runner.run(test, out=out.write)
    assert result.attempted == 11
    assert result.failed == 0, out.getvalue()
    assert [path for path, _ in server.requests] == ["/api/generate"]
    body = server.requests[0][1]
    assert body["model"] == "gemma2:2b"
    assert body["stream"] is False
    assert body["prompt"].endswith(" PROMPT: Take a screenshot of the Google website and highlight the search box")


def test_the_prompt_is_the_articles_to_the_byte() -> None:
    with serving(ANSWER) as server:
        result = generate_tool_call(box(), Ollama("gemma2:2b", server.url), "Shoot it")
    assert server.requests[0][1]["prompt"] == f"SYSTEM PROMPT: {SYSTEM} PROMPT: Shoot it"
    assert result.content == CALL
    assert repr(result.raw) == "<Response [200]>"
    assert result.raw.json()["response"] == ANSWER
    assert generateToolCall is generate_tool_call


def test_define_keeps_the_first_of_a_name() -> None:
    tools = box()

    def other(url: str) -> str:
        "Another"
        return "other"

    assert tools.define("screenshot", other) is False
    assert tools.call(CALL) == "GOT https://www.google.com/, ['#search']!"
    assert tools.define("other", other) is True


def test_define_wants_annotations_and_a_docstring() -> None:
    def bare(url):  # type: ignore[no-untyped-def]
        "Says what it does"

    def silent(url: str) -> None: ...

    with pytest.raises(AssertionError, match=r"^Interned functions must be annotated$"):
        Tools().define("bare", bare)
    with pytest.raises(AssertionError, match=r"^Interned functions must have docstrings$"):
        Tools().define("silent", silent)
    with pytest.raises(AssertionError, match=r"^either annotate the function or pass in a type dictionary"):
        Tools().define(bare)
    with pytest.raises(AssertionError, match=r"^either document the function or pass in a description$"):
        Tools().define(silent)
    with pytest.raises(TypeError, match="a name and a function"):
        Tools().define("screenshot", 5)  # type: ignore[arg-type]


def test_define_takes_the_packages_order_too() -> None:
    def bare(url):  # type: ignore[no-untyped-def]
        return url

    tools = Tools()
    assert tools.define(screenshot)
    assert tools.define(bare, "plain", {"url": str}, "Gives it back")
    assert tools.list()[1] == {"name": "plain", "type": {"url": str}, "description": "Gives it back"}
    assert tools.call({"functionName": "plain", "args": {"url": "x"}}) == "x"
    assert not tools.validate({"functionName": "plain", "args": {"url": 5}})


def test_types_that_were_written_as_strings_are_shown_as_types() -> None:
    def later(n: int) -> None:
        "Later"

    tools = Tools()
    tools.define("later", later)
    assert tools.list() == [{"name": "later", "type": {"n": int}, "description": "Later"}]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ({"functionName": "screenshot"}, "invalid-object-structure"),
        ({"args": {}}, "invalid-object-structure"),
        ({"functionName": "rm", "args": {}}, "no-such-tool"),
        ({"functionName": ["screenshot"], "args": {}}, "no-such-tool"),
        ({"functionName": "screenshot", "args": {"url": "u", "depth": 1}}, "unexpected-tool-arg"),
        # The article checks none of these; each would have run with what is not there.
        ({"functionName": "screenshot", "args": {}}, "missing-tool-arg"),
        ({"functionName": "screenshot", "args": {"url": 5}}, "invalid-tool-arg-type"),
        ({"functionName": "screenshot", "args": {"url": "u", "selectors": [1]}}, "invalid-tool-arg-type"),
        ({"functionName": "screenshot", "args": ["u"]}, "invalid-tool-args"),
        ({"functionName": "screenshot", "args": None}, "invalid-tool-args"),
        ("screenshot", "invalid-object-structure"),
        (None, "invalid-object-structure"),
    ],
)
def test_what_cannot_be_run_is_not(call: Any, code: str) -> None:
    tools = box()
    assert tools.validate(call) is False
    assert tools.call(call) is None
    with pytest.raises(ToolCallError, match=rf"^{code}$"):
        tools.check(call)
    assert tools.transform(json.dumps(call)) == (None, False)


def test_optional_arguments_may_be_left_out() -> None:
    assert box().validate({"functionName": "screenshot", "args": {"url": "u"}})
    assert box().validate({"functionName": "screenshot", "args": {"url": "u", "selectors": None}})


def test_transform_gives_the_call_and_whether() -> None:
    assert box().transform(ANSWER) == (CALL, True)
    assert box().transform("I would rather not.") == (None, False)
    assert box().transform(None) == (None, False)


def test_another_environment_restricts_a_model() -> None:
    assert Tools().transform(ANSWER) == (None, False)
    assert Tools().call(CALL) is None


def test_a_tools_own_error_comes_through() -> None:
    def broken(n: int) -> int:
        "Divides"
        return n // 0

    tools = Tools()
    tools.define("broken", broken)
    with pytest.raises(ZeroDivisionError):
        tools.call({"functionName": "broken", "args": {"n": 1}})


def test_generation_that_never_fits_gives_no_content() -> None:
    with serving("no", "nor this") as server:
        result = generate_tool_call(box(), Ollama("m", server.url), "Shoot it", retries=3)
    assert len(server.requests) == 3
    assert len({body["prompt"] for _, body in server.requests}) == 1
    assert result.content is None
    assert result.raw.json()["response"] == "nor this"


def test_generation_that_fits_at_last() -> None:
    with serving("no", ANSWER) as server:
        assert generate_tool_call(box(), Ollama("m", server.url), "Shoot it").content == CALL
    assert len(server.requests) == 2


def test_a_transform_that_raises_ends_in_an_error_with_every_try() -> None:
    with serving("no", "{") as server, pytest.raises(GenerationError, match=r"^failed-on-2-retries$") as caught:
        generate_checked(Ollama("m", server.url), loadch, "s", "p", 2)
    assert caught.value.raw == "{"
    assert [attempt.reply.text for attempt in caught.value.attempts] == ["no", "{"]
    assert isinstance(caught.value, errors.GenerationError)


def test_at_least_one_try() -> None:
    with serving("{}") as server:
        assert Ollama("m", server.url).generate_checked(loadch, "s", "p", retries=0).content == {}
        with pytest.raises(GenerationError, match=r"^failed-on-0-retries$"):
            Ollama("m", server.url).generate_checked(fail, "s", "p", retries=0)
    assert len(server.requests) == 2


def fail(_: Any) -> Any:
    raise TransformError("never")


def test_only_a_transform_error_is_tried_again() -> None:
    with serving("{}") as server, pytest.raises(ZeroDivisionError):
        Ollama("m", server.url).generate_checked(lambda text: 1 // 0, "s", "p")
    assert len(server.requests) == 1


def test_generate_json_takes_any_value() -> None:
    with serving("(7, True)") as server:
        assert Ollama("m", server.url).generate_json("s", "p").content == (7, True)


def test_thoughts_are_split_off() -> None:
    with serving("<think>\nhm\n</think>\n\nYes.", "<think>for ever", "a<!--b-->c") as server:
        client = Ollama("m", server.url)
        first = client.generate("s", "p")
        assert first[1:] == ("Yes.", "hm")
        assert repr(first) == "LLMResult(raw=<Response [200]>, content='Yes.', scratchpad='hm')"
        assert client.generate("s", "p")[1:] == ("", "for ever")
        assert Ollama("m", server.url, open_think="<!--", close_think="-->").generate("s", "p")[1:] == ("ac", "b")


@pytest.mark.parametrize(
    ("text", "here", "package"),
    [
        ("plain ", ("plain ", None), None),
        (" a <think> b </think> c ", ("a  c", "b"), None),
        ("<think></think>a", ("a", None), None),
        ("a</think>b", ("a</think>b", None), None),
        ("a<think>b", ("a", "b"), ("a<think>b", None)),
        ("<think>a</think>b<think>c</think>d", ("bd", "a\n\nc"), ("b<think>c</think>d", "a")),
    ],
)
def test_thoughts_against_the_package(text: str, here: tuple[str, Any], package: tuple[str, Any] | None) -> None:
    assert split_thoughts(text, "<think>", "</think>") == here
    theirs = peer("trivialai", "llm")._split_think_full_with_tags(text, "<think>", "</think>")
    assert theirs == (package or here)


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (404, b'{"error": "model \'m\' not found"}', errors.BadRequest, "model 'm' not found.*ollama pull"),
        (401, b"no", errors.KeyRefused, "401: no"),
        (429, b"{}", errors.RateLimited, "429"),
        (500, b'{"error": "out of memory"}', errors.ServerFailed, "out of memory"),
        (400, b'{"error": "bad"}', errors.BadRequest, "bad"),
        (200, b"<html>", errors.ServerFailed, "no Ollama server.*<html>"),
        (200, b"[]", errors.ServerFailed, "no Ollama server"),
    ],
)
def test_a_server_that_answers_otherwise(status: int, body: bytes, error: type[Exception], says: str) -> None:
    with serving((status, body)) as server, pytest.raises(error, match=says):
        generate(Ollama("m", server.url), "s", "p")


def test_a_server_that_is_not_there() -> None:
    with serving("x") as server:
        url = server.url
    with pytest.raises(errors.ModelUnreachable, match="ollama serve"):
        Ollama("m", url).generate("s", "p")
    with pytest.raises(errors.UsageError, match="begins with http"):
        Ollama("m", "localhost:11434")


def test_images_go_along() -> None:
    with serving("A cat.") as server:
        client = Ollama("m", server.url)
        client.generate_checked(lambda text: text, "s", "p", [b"cat"])
        with pytest.raises(errors.UsageError, match="bytes or a Path"):
            client.generate("s", "p", ["cat.png"])  # type: ignore[list-item]
    assert server.requests[0][1]["images"] == ["Y2F0"]


async def ask_in_a_loop(model: Scripted) -> LLMResult:
    return generate(model, "s", "p")


def test_a_toolspeak_model_stands_in() -> None:
    import asyncio

    model = Scripted([ANSWER, [ThoughtDelta("hm"), TextDelta("Yes. "), Finished("stop")]])
    assert generate_tool_call(box(), model, "Shoot it").content == CALL
    assert [message["role"] for message in model.requests[0].messages] == ["system", "user"]
    assert model.requests[0].messages[0].get("content") == SYSTEM
    assert asyncio.run(ask_in_a_loop(model))[1:] == ("Yes.", "hm")
    assert generate("scripted:Yes.", "s", "p").content == "Yes."
    with pytest.raises(TypeError, match="has neither"):
        generate(5, "s", "p")  # type: ignore[arg-type]
    with pytest.raises(errors.UsageError, match="content parts"):
        as_llm(model).generate("s", "p", [b"cat"])  # type: ignore[call-arg]


def test_a_result_unpacks() -> None:
    raw, content, scratchpad = LLMResult(1, 2)
    assert (raw, content, scratchpad) == (1, 2, None)
    assert repr(LLMResult(1, 2)) == "LLMResult(raw=1, content=2)"


def test_it_loads_the_standard_library_only() -> None:
    code = "import sys; before = set(sys.modules); import toolspeak.compat.trivialai, toolspeak.compat.empower; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) == {"toolspeak"}
