"""The embedded model, in this very process: what it streams, what holds it, what stops it."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import subprocess
import sys
import threading
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import toolspeak as ts
from toolspeak.cli.command_group import root
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.models.base import Model, Scorer
from toolspeak.models.embedded import gguf_header, weights
from toolspeak.models.embedded.local import EMBEDDED, Local
from toolspeak.models.speaker import Speaker
from toolspeak.models.tool_calling import calling
from toolspeak.types import Request

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
if not weights.present():
    pytest.skip("the embedded model was not fetched: make fetch", allow_module_level=True)

MODEL = Local()
HI = [{"role": "user", "content": "Say hello."}]


def ask(model: Local = MODEL, **request: Any) -> list[Event]:
    async def main() -> list[Event]:
        return [event async for event in model.stream(Request(**{"max_tokens": 6, **request}))]

    return asyncio.run(main())


def text(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def finished(events: list[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def test_it_is_a_model() -> None:
    assert isinstance(MODEL, Model)
    assert isinstance(MODEL, Scorer)
    assert MODEL.name == "local"


def test_it_streams_and_counts() -> None:
    events = ask(messages=HI)
    assert len(events) > 3
    assert finished(events).finish == "length"
    assert finished(events).usage.completion_tokens == 6
    assert finished(events).usage.prompt_tokens > 5


def test_greedy_is_the_same_every_time_and_a_seed_too() -> None:
    prompt = "Once upon a time"
    assert text(ask(prompt=prompt)) == text(ask(prompt=prompt))
    warm = {"prompt": prompt, "temperature": 1.5, "max_tokens": 12}
    one, two, other = (text(ask(seed=seed, **warm)) for seed in (1, 1, 2))
    assert one == two != other


def test_it_stops_at_a_stop_string() -> None:
    events = ask(prompt="one, two, three, four, five,", stop=(",",), max_tokens=20)
    assert "," not in text(events)
    assert finished(events).finish == "stop"


def test_a_json_schema_holds_it() -> None:
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer"}},
        "required": ["age"],
        "additionalProperties": False,
    }
    made = json.loads(text(ask(prompt="Alice is 31 years old. As JSON: ", schema=schema, max_tokens=30)))
    assert isinstance(made["age"], int)


def test_a_grammar_holds_it() -> None:
    assert text(ask(prompt="Is the sky blue? ", grammar='root ::= "yes" | "no"')) in ("yes", "no")


def ping(host: str = "localhost") -> str:
    """Check that a host is alive."""
    return host


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_it_takes_the_grammars_of_dialects(choice: str) -> None:
    python = ts.Tool("python", "", {"properties": {"code": {"type": "string"}}})
    for name in ("tool-json", "qwen3-coder", "gemma4", "minimax-m3", "functionary-v3", "llama3-builtin"):
        grammar = ts.grammar(name, [ping, python], choice, "gbnf")
        assert ask(prompt="Is localhost alive? ", grammar=grammar, max_tokens=1), name


@pytest.mark.parametrize("name", ["hermes", "qwen3-coder", "pythonic"])
def test_it_is_held_to_the_call_that_is_wanted(name: str) -> None:
    """A model of this size seldom writes a call by itself, in a dialect that it was not taught never."""
    call = ts.call("Is example.org alive?", tools=[ping], model=Speaker(MODEL, name))
    assert (call.name, call.whole) == ("ping", True)
    assert "root ::=" in str(ts.explain("Hi", tools=[ping], model=Speaker(MODEL, name), choice="ping").grammar)
    # with a free choice it may say words, and is held once it calls
    assert "root ::=" in str(ts.explain("Hi", tools=[ping], model=Speaker(MODEL, name)).grammar)


def test_an_image_is_refused() -> None:
    seen = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x.invalid/y.png"}}]}]
    with pytest.raises(ts.UsageError, match="takes text alone"):
        ask(messages=seen)


@pytest.mark.parametrize(
    "asked", [{"prompt": "One, two, \ud800"}, {"messages": [{"role": "user", "content": "Hi \udfff"}]}]
)
def test_half_a_surrogate_pair_is_read_as_a_replacement_mark(asked: dict[str, Any]) -> None:
    *_, end = ask(**{"messages": [], **asked})
    assert isinstance(end, Finished)


def test_a_broken_grammar_is_told_of() -> None:
    with pytest.raises(ts.BadRequest, match=r"expecting '\)'"):
        ask(prompt="x", grammar="root ::= bad ((")


def test_earlier_prompts_are_remembered() -> None:
    first = [{"role": "user", "content": "Remember this number: 4711. " * 5}]
    said = finished(ask(messages=first, max_tokens=2))
    more = [*first, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Which?"}]
    again = finished(ask(messages=more, max_tokens=2))
    assert again.usage.cached_tokens > said.usage.cached_tokens
    assert again.usage.cached_tokens > said.usage.prompt_tokens // 2


def test_likelihoods() -> None:
    def score(prompt: str, *texts: str) -> list[float]:
        return asyncio.run(MODEL.score(prompt, texts))

    paris, rome = score("The capital of France is", " Paris", " Rome")
    assert rome < paris < 0
    (whole,) = score("The capital", " of France")
    (head,), (tail,) = score("The capital", " of"), score("The capital of", " France")
    assert whole == pytest.approx(head + tail, abs=0.5)
    assert all(-100 < told < 0 for told in score("x", "é", " 厦门", "🙂"))
    assert score("x", "") == [0.0]


def test_closing_the_stream_stops_it() -> None:
    async def main() -> str:
        async with aclosing(MODEL.stream(Request(prompt="Count: 1 2 3", max_tokens=3000))) as events:
            async for _ in events:
                break
        return text([event async for event in MODEL.stream(Request(prompt="2 + 2 =", max_tokens=2))])

    assert asyncio.run(asyncio.wait_for(main(), 600))


def test_a_request_without_a_bound_has_one() -> None:
    from toolspeak.models.embedded.llama_cpp_messages import LONGEST, body_of

    assert body_of(Request(prompt="x"))["max_tokens"] == LONGEST
    assert body_of(Request(prompt="x", max_tokens=3))["max_tokens"] == 3


def test_a_conversation_that_is_too_long() -> None:
    with pytest.raises(ts.BadRequest, match=r"context.*fewer tools or messages"):
        ask(prompt="word " * 6000)


def test_two_threads_at_once() -> None:
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(text(ask(Local(), prompt="A B C")))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert len(said) == 3
    assert len(set(said)) == 1


def weather(city: str) -> str:
    """Get the current weather in a city."""
    return f"Sunny in {city}, 21 degrees"


def test_a_run() -> None:
    reply = ts.run("What is the weather in Rome?", tools=[weather], model=MODEL, choice="required")
    assert [result.value for result in reply.steps[0].results] == ["Sunny in Rome, 21 degrees"]
    assert "21" in reply.text
    assert "Rome" in reply.text


@pytest.mark.parametrize("question", ["Book a table.", "Please book a table for tonight"])
def test_a_call_that_cannot_be_filled_is_said_not_to_be_made(question: str) -> None:
    def book_table(people: int, time: str) -> str:
        """Book a table in the restaurant."""
        raise AssertionError

    reply = ts.run(question, tools=[book_table], model="local")
    assert reply.text == "book_table was not called: the required argument 'people' is missing (an integer)."
    assert [note.rule for note in reply.notes] == ["unfilled"]


def test_an_extraction() -> None:
    from dataclasses import make_dataclass

    person = make_dataclass("Person", [("name", str), ("age", int)])
    assert ts.extract("Alice is 31", person, model=MODEL) == person("Alice", 31)


# ------------------------------------------------------------------ files


def with_template(source: Path, target: Path, template: str) -> None:
    """The model file again, with another chat template in its head."""
    data = source.read_bytes()
    key = b"tokenizer.chat_template"
    at = data.index(struct.pack("<Q", len(key)) + key) + 8 + len(key) + 4
    (length,) = struct.unpack_from("<Q", data, at)
    spare = length - len(template.encode()) - 4
    assert spare >= 0, "the head must keep its length"
    written = template.encode() + b"{#" + b" " * spare + b"#}"
    target.write_bytes(data[:at] + struct.pack("<Q", length) + written + data[at + 8 + length :])


HERMES = (
    "{% for m in messages %}<|im_start|>{{m.role}}\n{{m.content}}{% for c in m.tool_calls or [] %}<tool_call>\n"
    "{{c.function|tojson}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}{% if tools %}{{tools|tojson}}{% endif %}<|im_start|>assistant\n"
)


def test_a_file_whose_template_knows_tools_is_spoken_to_in_its_dialect(tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    with_template(weights.path_of(), path, HERMES)
    model = calling(Local(path))
    assert isinstance(model, Speaker)
    assert model.dialect.name == "hermes"
    told = ts.explain("Weather in Rome?", tools=[weather], model=f"local:{path}")
    assert told.prompt.startswith("<|im_start|>")
    assert "weather" in told.prompt
    assert told.prompt.endswith("<|im_start|>assistant\n")
    reply = ts.decide("Hi", tools=[weather], model=f"local:{path}", max_tokens=3)
    assert reply.finish == "length"


def test_a_file_whose_template_knows_none_decides_by_likelihood() -> None:
    model = calling(Local(weights.path_of()))
    assert isinstance(model, Speaker)
    assert (model.strategy.way, model.template) == ("scored", None)
    told = ts.explain("Weather in Rome?", tools=[weather], model=f"local:{weights.path_of()}")
    assert len(told.continuations) == 3  # the tool, and the two that stand for none


def test_the_head_of_a_file() -> None:
    known = gguf_header.known(weights.path_of())
    assert "<|im_start|>" in known.template
    assert known.variables["eos_token"] == "<|im_end|>"
    assert known.parameters == EMBEDDED.parameters


def broken(tmp_path: Path, what: str) -> Path:
    with weights.path_of().open("rb") as file:
        head = file.read(3_000_000)
    path = tmp_path / "model.gguf"
    if what != "missing":
        path.write_bytes({"no gguf": b"PK" + head, "empty": b"", "cut head": head[:5000], "cut body": head}[what])
    return path


FAILS = """
import sys, toolspeak as ts
try:
    ts.run("Hi", model="local:" + sys.argv[1])
except ts.WeightsError as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["missing", "no gguf", "empty", "cut head", "cut body"])
def test_a_file_that_is_none(tmp_path: Path, what: str) -> None:
    path = broken(tmp_path, what)
    done = subprocess.run([sys.executable, "-c", FAILS, path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    assert str(path) in done.stdout
    assert "GGUF" in done.stdout
    assert len(done.stdout.splitlines()) == 1


# ------------------------------------------------------------------ processes of their own

QUIET = """
import toolspeak as ts
from toolspeak.types import Request
print(ts.generate("local", "Hi", max_tokens=3))
import asyncio
async def refused():
    async for _ in ts.Local().stream(Request(prompt="x", grammar="root ::= bad ((")):
        pass
try:
    asyncio.run(refused())
except ts.BadRequest:
    print("refused")
"""


def test_llama_cpp_is_silent() -> None:
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, timeout=100, check=False)
    assert done.stderr == ""
    assert done.stdout.endswith("refused\n")
    assert done.returncode == 0


def test_without_the_library(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('no xllamacpp here')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    script = "import toolspeak as ts\ntry:\n ts.run('Hi', model='local')\nexcept ts.MissingExtra as e: print(e)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert "pip install 'toolspeak[local]'" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_without_the_library_nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    with pytest.raises(ts.MissingExtra, match="pip install"):
        ts.run("Hi", model="local")
    done = CliRunner().invoke(root, ["ask", "Hi", "--model", "local"])
    assert "pip install 'toolspeak[local]'" in done.stderr
    assert not list(tmp_path.iterdir())


INTERRUPTED = """
import sys, toolspeak as ts
print("asking", flush=True)
try:
    for event in ts.stream("Tell me a long story.", model="local", max_tokens=3000):
        print("more", flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to one process")
def test_ctrl_c_during_a_reply() -> None:
    import signal

    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(3)] == ["asking\n", "more\n", "more\n"]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=800)
    assert (process.returncode, err) == (130, "")


def test_the_embedded_model_is_told_what_it_is_where_nobody_says() -> None:
    from toolspeak.models.embedded.llama_cpp_messages import body_of
    from toolspeak.models.embedded.local import EMBEDDED_SYSTEM

    assert ts.generate(MODEL, "Hello!", max_tokens=2).startswith("Hello")
    own = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert body_of(Request(messages=own), EMBEDDED_SYSTEM)["messages"] == own
    assert body_of(Request(messages=own[1:]), EMBEDDED_SYSTEM)["messages"][0]["content"] == EMBEDDED_SYSTEM
