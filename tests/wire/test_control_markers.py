"""Control markers out of what others wrote: broken on every surface, in every place, and mended exactly."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import strategies as st
from wire_cases import merged, stream

from properties import property_test, rotated
from toolspeak.dialects import get, names
from toolspeak.errors import UsageError
from toolspeak.types import Message, Note, Tool
from toolspeak.wire import nonblocking_replace
from toolspeak.wire.detect import detect
from toolspeak.wire.dialect import NAME, Dialect, Json, Layout
from toolspeak.wire.marker_forms import BREAKABLE
from toolspeak.wire.prompt.control_markers import INVISIBLE, cleaner, restore
from toolspeak.wire.prompt.known_markers import control_markers
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.render import Rendered, render

HERMES = get("hermes")
EVERYWHERE = """\
<|im_start|> <|im_end|> <|endoftext|> <|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|>
<|eom_id|> <|python_tag|> <|system|> <|user|> <|assistant|> <|end|> <|tool|> <|start|> <|channel|> <|message|> <|call|>
<|return|> <|constrain|> <|START_OF_TURN_TOKEN|> <|END_OF_TURN_TOKEN|> <|CHATBOT_TOKEN|> <|START_ACTION|> <|END_ACTION|>
<|tool_calls_section_begin|> <|tool_call_begin|> <|tool_call_argument_begin|> <|tool_call_end|> <|im_middle|> <|observation|>
<|open|> <|close|> <|sep|> <|end_of_msg|> <|message_sep|> <|role_sep|> <|function_call|> <|tool_call_start|> <|tool_call_end|>
<|start_of_role|> <|end_of_role|> <|header_start|> <|eot|> <|tools_prefix|> <|tools_suffix|> <|inner_prefix|>
<|reserved_special_token_249|> <|action_start|> <|plugin|> <|action_end|> <|content_invoke_tool_json|> <|flush|>
<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜User｜> <｜Assistant｜> <｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> <｜tool▁sep｜>
<｜tool▁call▁end｜> <｜tool▁calls▁end｜> <｜hy_eos｜> [INST] [/INST] <<SYS>> [TOOL_CALLS] [TOOL_RESULTS] [AVAILABLE_TOOLS]
<start_of_turn> <end_of_turn> <tool_call> </tool_call> <tool_response> <think> </think> <function_calls>""".split()  # noqa: SIM905
OWN = {
    "mistral-v3": ["[TOOL_CALLS]", "<s>", "</s>", "[/TOOL_RESULTS]"],
    "gemma4": ['<|"|>', "<|tool_call>", "<tool_call|>", "<turn|>", "<channel|>"],
    "minimax-m3": ["]<]minimax[>[<tool_call>", "]~b]", "[e~[", "<mm:think>"],
    "deepseek-dsml": ["<｜DSML｜function_calls>", "</｜DSML｜invoke>", "<｜DSML｜parameter"],
    "glm45": ["<arg_key>", "</arg_value>", "[gMASK]", "<sop>"],
    "seed-oss": ["<seed:tool_call>", "<function=", "</parameter>", "<seed:eos>"],
    "empower": ["<u>", "<r>", "<f>", "<c>"],
    "functiongemma": ["<escape>", "<start_function_call>"],
    "kimi-k2": ["<|tool_calls_section_begin|>", "[BOS]"],
}
TEMPLATE = """\
{{- '<|im_start|>system\n' + (tools | tojson if tools else '') + '<|im_end|>\n' }}
{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + (m.content or '') }}
{%- for c in m.tool_calls or [] %}{{- '<tool_call>\n{"name": "' + c.function.name + '", "arguments": ' + (c.function.arguments | tojson) + '}\n</tool_call>' }}
{%- endfor %}{{- '<|im_end|>\n' }}{%- endfor %}{{- '<|im_start|>assistant\n' }}"""
SURFACES = ("user", "result", "name", "description", "parameter", "enum", "replay", "argument", "system", "id")


def told(surface: str, text: str, d: Dialect, template: str | None = None) -> Rendered:
    """A conversation with the text on that surface, harmless texts on the others."""

    def at(where: str) -> str:
        return text if surface == where else "harmless"

    call = {"name": at("name"), "arguments": json.dumps({"city": at("argument"), at("parameter"): 1})}
    rows = [{"id": at("id"), "type": "function", "function": call}]
    messages: list[Message] = [
        {"role": "system", "content": at("system")},
        {"role": "user", "content": at("user")},
        {"role": "assistant", "content": at("replay")},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": None, "tool_calls": rows},
        {"role": "tool", "tool_call_id": at("id"), "content": at("result")},
    ]
    schema = {"type": "string", "description": at("description"), "enum": [at("enum")]}
    tool = Tool(at("name"), at("description"), {"type": "object", "properties": {at("parameter"): schema}})
    return render(messages, [tool], d, template=template, now=datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize("template", [None, TEMPLATE], ids=["own prompt", "template"])
@pytest.mark.parametrize("surface", SURFACES)
def test_no_marker_comes_through(surface: str, template: str | None) -> None:
    """As many control markers as with harmless texts, in the prompt and in the messages for a chat server."""
    assert len(set(EVERYWHERE)) >= 60
    calm = told(surface, "harmless", HERMES, template)
    assert not [note for note in calm.notes if note.rule == "control-marker"]
    for marker in rotated(EVERYWHERE, 3, SURFACES.index(surface)):
        for text in (marker, f"x{marker}{marker}y", f"<|{marker}"):
            wild = told(surface, text, HERMES, template)
            for known in (marker, "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"):
                assert wild.prompt.count(known) == calm.prompt.count(known), (marker, known)
                assert str(wild.messages).count(known) == str(calm.messages).count(known), (marker, known)
        assert Note("control-marker", marker) in told(surface, marker, HERMES, template).notes


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", OWN)
def test_a_dialects_own_markers_do_not_come_through(name: str, surface: str) -> None:
    d = get(name)
    calm = told(surface, "harm<less", d)  # no plain word: a dialect may quote what is none
    for marker in OWN[name]:
        wild = told(surface, f"a{marker}b", d)
        assert wild.prompt.count(marker) == calm.prompt.count(marker), marker
        assert str(wild.messages).count(marker) == str(calm.messages).count(marker), marker


@pytest.mark.parametrize("name", names())
def test_every_dialect_breaks_what_it_writes_itself(name: str) -> None:
    """No part of a call, as the dialect writes it, is one in a user's text."""
    d = get(name)
    clean = cleaner(control_markers(d), [])
    for marker in control_markers(d):
        text = (
            f"a {marker} b{marker}" if BREAKABLE.fullmatch(marker) else f"{marker}\n  {marker} b"
        )  # a label begins a line
        assert marker not in clean(text), marker


def test_markers_are_not_put_together_from_pieces() -> None:
    parts: list[dict[str, Any]] = [{"type": "text", "text": "<|im_"}, {"type": "text", "text": "start|>"}]
    messages: list[Message] = [{"role": "user", "content": parts}]
    for template in (None, TEMPLATE):
        assert render(messages, None, HERMES, template=template).prompt.count("<|im_start|>user") == 1
        assert "user\n<|im_start|>" not in render(messages, None, HERMES, template=template).prompt
    pieces: list[Message] = [
        {"role": "user", "content": "<|im_"},
        {"role": "user", "content": "start|>system"},
        {"role": "tool", "content": "<|im_"},
        {"role": "tool", "content": "start|>"},
    ]
    for name in ("hermes", "empower", "tool-json"):
        assert "<|im_start|>system\n<|im_" not in render(pieces[:2], None, get(name)).prompt
    told = render(pieces[2:], None, HERMES).prompt.replace("</tool_response>\n<tool_response>\n", "")
    assert "<|im_\nstart|>" not in told
    assert "<|im_\nstart|>" in restore(told)


@pytest.mark.parametrize("text", ["<|im_/thinkstart|>", "<|im_/th/no_thinkinkstart|>", "a /think<|im_/no_thinkend|>"])
def test_a_template_that_removes_words_leaves_no_marker(text: str) -> None:
    template = TEMPLATE.replace(
        "(m.content or '')", "(m.content or '').replace('/no_think', '').replace(\"/think\", \"\")"
    )
    calm, wild = told("user", "/think hard", HERMES, template), told("user", text, HERMES, template)
    for marker in ("<|im_start|>", "<|im_end|>"):
        assert wild.prompt.count(marker) == calm.prompt.count(marker)
    assert "control-marker" in {note.rule for note in wild.notes}
    assert "control-marker" not in {note.rule for note in calm.notes}
    assert restore(str(wild.messages[1]["content"])) == text


def test_arguments_hide_no_marker_in_their_json() -> None:
    call = {"name": "t", "arguments": '{"a": "\\u003c|im_start|>"}'}
    messages: list[Message] = [
        {"role": "user", "content": "Q"},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": call}]},
    ]
    for template in (None, TEMPLATE):
        rendered = render(messages, [Tool("t")], HERMES, template=template)
        assert rendered.prompt.count("<|im_start|>") == 4
        assert Note("control-marker", "<|im_start|>") in rendered.notes


def test_special_tokens_that_are_given_are_markers_too() -> None:
    rendered = render([{"role": "user", "content": "a<EOT>b"}], None, HERMES, variables={"eos_token": "<EOT>"})
    assert "<EOT>" not in rendered.prompt


SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "templates"
REAL = sorted(SHARED.glob("*.jinja")) if SHARED.is_dir() else []


@pytest.mark.costly
@pytest.mark.skipif(not REAL, reason="the folder shared/templates is not beside the checkout")
def test_no_marker_comes_through_a_real_template() -> None:
    for number, path in enumerate(REAL):
        template = path.read_text("utf-8")
        d = detect(template)
        markers = sorted({*control_markers(d, template), *EVERYWHERE})
        text = " ".join(["a", *markers])  # not a marker first: a reply that begins with a thought is read as one
        for surface in rotated(SURFACES, 3, number):
            calm, wild = told(surface, "harm<less", d, template), told(surface, text, d, template)
            leaks = [m for m in markers if wild.prompt.count(m) != calm.prompt.count(m)]
            assert not leaks, (path.stem, surface)


PIECES = [
    "<",
    "|",
    "im_start",
    "|>",
    INVISIBLE,
    "[",
    "]",
    "INST",
    "[/INST]",
    "<tool_call>",
    "｜",
    "tool",
    "｜>",
    " ",
    "x",
    "é",
]
HARMLESS = [
    "a < b && c > d | e [1] {x} <b>bold</b>",
    "<html lang='en'><p>Hi</p></html>",
    "if (a<|b) [i][j] [A] [x|y]",
    "| a | b |\n|---|---|\n[link](http://x) <http://y>",
    "ภาษา" + INVISIBLE + "ไทย",
    "\\[INST\\] < |im_start| > <| im_start |>",
]


@property_test(100, st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_it_is_undone_exactly(text: str) -> None:
    notes: list[Note] = []
    clean = cleaner(control_markers(HERMES), notes)
    once = clean(text)
    assert restore(once) == text
    assert restore(restore(clean(once))) == text
    assert not [m for m in control_markers(HERMES) if m in once]
    again: list[Note] = []
    cleaner(control_markers(HERMES), again)(once)
    assert not again  # what is broken holds no marker


@pytest.mark.parametrize("text", HARMLESS)
def test_nothing_else_is_changed(text: str) -> None:
    notes: list[Note] = []
    assert cleaner(control_markers(HERMES), notes)(text) == restore(text) == text
    assert not notes
    assert text in render([{"role": "user", "content": text}], None, HERMES).prompt


MARKS = [
    ("⟦call ", "⟦/call⟧", "⟦call"),
    ("((call ", "((/call))", "((call"),
    ("{{call}}", "{{/call}}", "{{call}}"),
    ("«call»", "«/call»", "«call»"),
    ("【call】", "【/call】", "【call】"),
    ("[[call]]", "[[/call]]", "[[call]]"),
    ("@@", "@@end@@", "@@"),
    ("§§", "§§", "§§"),
    ("##", "##/call##", "##"),
    ("🔧call ", "🔧/call", "🔧call"),
]


@pytest.mark.parametrize("told", [True, False], ids=["control", "the call's own"])
@pytest.mark.parametrize(("opener", "closer", "marker"), MARKS)
def test_markers_of_any_symbols_are_broken_and_restored(opener: str, closer: str, marker: str, told: bool) -> None:
    d = Dialect("x", (opener, NAME, "|", Json(), closer), control=(opener, closer) if told else ())
    text = f"{opener}find|{{}}{closer} f(x) {{a}} 50 % #1 a@b.c {marker}"
    rendered = render([{"role": "user", "content": text}], [], d)
    sent = cast("str", rendered.messages[-1]["content"])
    assert not [one for one in (marker, closer) if one in sent]
    assert "f(x) {a} 50 % #1 a@b.c" in sent
    assert marker in {note.detail for note in rendered.notes if note.rule == "control-marker"}
    assert restore(sent) == text
    clean = cleaner(control_markers(d), [])
    if len(marker) > 2:
        joined = clean(text + marker[:2]) + clean(marker[2:])
        assert marker not in joined.removeprefix(clean(text))
    for escaped in (False, True):
        call = f"{opener}find|{json.dumps({'query': sent}, ensure_ascii=escaped)}{closer}"
        events = [stream(d, chunks, None, rendered.prompt) for chunks in ([call], list(call))]
        assert merged(events[0]) == merged(events[1])
        assert collect(events[0]).calls[0].arguments == {"query": text}


@pytest.mark.parametrize("word", ["x", "[", "call", "-->", "§ "])
def test_a_control_marker_that_cannot_be_broken_is_an_error(word: str) -> None:
    with pytest.raises(UsageError, match="control"):
        replace(HERMES, control=(word,))


def test_markers_inside_markers_are_broken_as_well() -> None:
    d = replace(HERMES, control=("]<]x[>[", "<|a<|b|>"), layout=Layout(("<s1>", "</s1>"), "<e1>"))
    clean = cleaner(control_markers(d), [])
    for text in ("]<]x[>[<tool_call>", "<|a<|b|>", "<<SYS>>[INST]", "<tool_call></tool_call>", "<s1><e1>"):
        assert not [m for m in control_markers(d) if m in clean(text)]
        assert restore(clean(text)) == text


def test_a_long_text_is_cleaned_in_one_pass() -> None:
    rng = random.Random(1)
    for unit in ("<", "<|", "[", "<|a", "<\u200b", "x", "<|im_start|"):
        text = unit * 200_000
        assert restore(cleaner(control_markers(HERMES), [])(text)) == text
    text = "".join(rng.choice(PIECES) for _ in range(100_000))
    assert restore(cleaner(control_markers(HERMES), [])(text)) == text


@pytest.mark.parametrize("seed", range(6))
def test_a_long_text_is_cleaned_in_pieces_as_in_one_go(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    others = (
        "\n",
        "  ",
        INVISIBLE,
        INVISIBLE * 3,
        ":",
        "a",
        "<",
        "[",
        "<|",
        "|>",
        "x y",
        "\r",
        "\u2028",
        "User",
        "Action",
    )
    for _ in range(300):
        known = control_markers(get(rng.choice(("react", rng.choice(names())))))
        words = (*rng.sample(known, 4), *others)
        text = "".join(rng.choice(words) for _ in range(rng.randrange(60)))
        seen: list[tuple[str, list[Note]]] = []
        for piece in (10**9, rng.choice((1, 3, 7, 20))):
            monkeypatch.setattr(nonblocking_replace, "PIECE", piece)
            seen.append((text, []))
            seen[-1] = (cleaner(known, seen[-1][1])(text), seen[-1][1])
        assert seen[0] == seen[1], text
        assert restore(seen[1][0]) == text


def test_a_long_text_is_looked_through_in_short_steps() -> None:
    """One step for all of a text would keep everybody else waiting."""
    steps: list[int] = []

    class Noting:
        def finditer(self, text: str, at: int, end: int) -> Iterator[re.Match[str]]:
            steps.append(end - at)
            return re.compile("<").finditer(text, at, end)

    text = "a <b " * 400_000
    made = nonblocking_replace.replaced(cast("Any", Noting()), lambda match: match[0] + "!", text, 200)
    assert made == text.replace("<", "<!")
    assert max(steps) <= nonblocking_replace.PIECE + 300
