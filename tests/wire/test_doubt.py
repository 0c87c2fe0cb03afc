"""A call of which something is left out, or that can be read in two ways, is told and never whole."""

from __future__ import annotations

import random
import re
import zlib
from itertools import islice
from typing import Any

import pytest
from spoken import TALKING, wire
from wire_cases import DIALECTS, cuts, merged, one_of, stream

import toolspeak as ts
from properties import rotated
from toolspeak.models.scripted import Scripted
from toolspeak.schema.infer import as_tools
from toolspeak.types import Tool, ToolCall
from toolspeak.wire.decode import parse
from toolspeak.wire.dialect import Dialect, Tagged
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.reading.collect import collect


def delete(path: str, dry_run: bool = False) -> str:
    """Delete what stands at a path."""
    raise AssertionError(f"{path} was deleted, dry_run={dry_run}")


TOOLS = as_tools([delete])
ARGS = '{"path": "/data"}'
MORE = '{"dry_run": true}'
CALL = '{"name": "delete", "arguments": {"path": "/data"}}'
KIMI = "<|tool_calls_section_begin|><|tool_call_begin|>functions.delete:0<|tool_call_argument_begin|>%s<|tool_call_end|><|tool_calls_section_end|>"
DEEPSEEK = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>delete<｜tool▁sep｜>%s<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
DEEPSEEK_V3 = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>delete\n```json\n%s\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
HARMONY = "<|channel|>commentary to=functions.delete <|constrain|>json<|message|>%s<|call|>"
MARK = "]<]minimax[>["
DOUBTFUL = [
    # more keys than the object of a call has, or one of them twice
    ("hermes", f'<tool_call>{CALL[:-1]}, "dry_run": true}}</tool_call>'),
    ("hermes", f'<tool_call>{{"dry_run": true, {CALL[1:]}</tool_call>'),
    ("hermes", f'<tool_call>{CALL[:-1]} "dry_run": true}}</tool_call>'),
    ("hermes", f'<tool_call>{CALL[:-1]}, "arguments": {MORE}}}</tool_call>'),
    ("hermes", f'<tool_call>{CALL[:-1]}, "parameters": {MORE}}}</tool_call>'),
    ("hermes", f'<tool_call>{CALL[:-1]}, "name": "other"}}</tool_call>'),
    ("hermes", f'{CALL[:-1]}, "dry_run": true}}'),
    ("llama3-json", f'{{"name": "delete", "parameters": {ARGS}, "dry_run": true}}'),
    ("tool-json", f'{{"tool": "delete", "tool_input": {ARGS}, "dry_run": true}}'),
    ("generic-json", f'{{"tool_calls": [{CALL}], "dry_run": true}}'),
    ("apertus", f'<|tools_prefix|>[{{"delete": {ARGS}, "dry_run": true}}]<|tools_suffix|>'),
    ("qwen3-coder", "<tool_call>\n<function=delete>\n<parameter=path>\n/a\n</parameter>\n<parameter=path>\n/b\n</parameter>\n</function>\n</tool_call>"),
    ("minimax-m3", f'{MARK}<tool_call>\n{MARK}<invoke name="delete">{MARK}<path>/a{MARK}</path>{MARK}<path>/b{MARK}</path>{MARK}</invoke>\n{MARK}</tool_call>'),
    ("pythonic", '[delete(path="/a", path="/b")]'),
    # the opening mark of a text is missing, so that the one before takes it in
    ("gemma4", '<|tool_call>call:delete{path:<|"|>/a<|"|>,/b<|"|>}<tool_call|>'),
    ("gemma4", '<|tool_call>call:delete{path:[<|"|>/a<|"|>, /b<|"|>,<|"|>/c<|"|>]}<tool_call|>'),
    ("gemma4", '<|tool_call>call:delete{path:{a:<|"|>/a<|"|>},/b<|"|>}<tool_call|>'),
    ("functiongemma", "<start_function_call>call:delete{path:[<escape>/a<escape>,/b<escape>]}<end_function_call>"),
    # a brace is missing, before or behind the last key
    ("mistral-nemo", '[TOOL_CALLS][{"name": "delete", "arguments": {"path": "/data", "id": "123456789"}]'),
    ("apriel", '<tool_calls>[{"name": "delete", "arguments": {"path": "/data", "id": "1"</tool_calls>'),
    ("apriel", '[{"name": "delete", "arguments": {"path": "/data", "id": "1"}]'),
    ("tool-json", '{"tool": "delete", "tool_input": {"path": "/data", "message": "Done"}'),
    # more behind the arguments, before what closes the call
    ("hermes", f"<tool_call>{CALL}{MORE}</tool_call>"),
    ("hermes", f"<tool_call>{CALL[:-1]}{MORE}}}</tool_call>"),
    ("hermes", f"<tool_call>{CALL} but only as a dry run</tool_call>"),
    ("hermes", f"{CALL}{MORE}"),
    ("hermes", f'{CALL}, "dry_run": true}}'),
    ("llama3-json", f'{{"name": "delete", "parameters": {ARGS}}}{MORE}'),
    ("kimi-k2", KIMI % f"{ARGS} as a dry run"),
    ("kimi-k2", KIMI % f"{ARGS}{MORE}"),
    ("deepseek-v31", DEEPSEEK % f'{ARGS}, "dry_run": true'),
    ("deepseek-v3", DEEPSEEK_V3 % f"{ARGS}\n{MORE}"),
    ("functionary-v31", f'<function=delete>{ARGS}"dry_run": true}}</function>'),
    ("functionary-v3", f">>>delete\n{ARGS}{MORE}"),
    ("mistral-v13", f"[TOOL_CALLS]delete[ARGS]{ARGS}{MORE}"),
    ("mistral-v13", f'[TOOL_CALLS]delete[ARGS]{ARGS}, "dry_run": true}}'),
    ("mistral-v3", f"[TOOL_CALLS] [{CALL}, {MORE}]"),
    ("harmony", HARMONY % f"{ARGS} as a dry run"),
    ("apertus", f'<|tools_prefix|>[{{"delete": {ARGS}}}, "dry_run"]<|tools_suffix|>'),
    ("react", f"Action: delete\nAction Input: {ARGS}, dry_run=True"),
    ("react", f"Action: delete\nAction Input: {ARGS}{MORE}"),
    ("pythonic", '[delete(path="/data"), dry_run=True]'),
    ("lfm2", '<|tool_call_start|>[delete(path="/data"), dry_run=True]<|tool_call_end|>'),
    ("pythonic", '[delete(path="/data") if sure else None]'),
    ("olmo3", '<function_calls>delete(path="/data") dry_run=True</function_calls>'),
    ("gemma4", '<|tool_call>call:delete{path:<|"|>/data<|"|>}{dry_run:true}<tool_call|>'),
    ("qwen3-coder", "<tool_call>\n<function=delete>\n<parameter=path>\n/data\n</parameter>\ndry_run=True\n</function>\n</tool_call>"),
    ("glm45", "<tool_call>delete\n<arg_key>path</arg_key>\n<arg_value>/data</arg_value>\ndry_run: true</tool_call>"),
    # a part of the closer is missing
    *(("kimi-k3", f'<|open|>tools<|sep|><|open|>call tool="delete" index="1"<|sep|><|open|>argument key="path" type="string"<|sep|>/data{part}<|close|>call<|sep|><|close|>tools<|sep|>') for part in (
        "argument<|sep|>", "<|close|>argument", "<|close|>", "<|sep|>",
    )),
    # an object without its brace, and without the beginning of its first key, where a text may replace the object
    *((name, before + arguments + after) for arguments in ('path": "/data", "dry_run": true}', 'h": "/data"}', '"dry_run": true}') for name, before, after in (
        ("react", "Action: delete\nAction Input: ", ""),
        ("functionary-v3", ">>>delete\n", ""),
        ("cwm", "<tool: delete>\n", "\n</tool>"),
    )),
    # a text that only ends like an object
    *((name, before + arguments + after) for arguments in ('/data", "dry_run": true}', '/data"}', '/data"\n}\n', "a {} }") for name, before, after in (
        ("react", "Action: delete\nAction Input: ", "<|im_end|>"),
        ("functionary-v3", ">>>delete\n", ""),
        ("cwm", "<tool: delete>\n", "\n</tool>"),
    )),
    # words behind the code block inside the marks of a call, or behind an object that is not closed
    ("deepseek-v3", DEEPSEEK_V3.replace("\n```<", "\n```\nOnly if you agree.<") % ARGS),
    *(("hermes", f"<tool_call>{CALL[:-1]} {word} dry run}}") for word in ("//", "--", "<code>")),
    ("llama3-json", f'{{"name": "delete", "parameters": {ARGS} // dry run}}'),
    # an unquoted word that is incomplete
    ("lfm2", "<|tool_call_start|>[delete(Rom<|tool_call_end|>"),
    ("olmo3", "<function_calls>\ndelete(pat<|im_end|>"),
    ("gemma4", "<|tool_call>call:delete{path:Rom<tool_call|>"),
    # a variable or a placeholder
    *((name, form % arguments) for arguments in (
        "path", "path=target", "path=TARGET", "path=file.name", "path=[target]", "path=...", "path=<path>", "path=here if sure else there",
    ) for name, form in (
        ("pythonic", "[delete(%s)]"), ("llama4-pythonic", "[delete(%s)]"), ("lfm2", "<|tool_call_start|>[delete(%s)]<|tool_call_end|>"),
        ("olmo3", "<function_calls>delete(%s)</function_calls>"), ("gemma3", "```tool_code\ndelete(%s)\n```"),
    )),
    ("pythonic", '[delete(path=("/data"))]'),
    # a value that is to be worked out
    ("hermes", '<tool_call>{"name": "delete", "arguments": {"path": "/da" + "ta"}}</tool_call>'),
    ("pythonic", '[delete(path="/da" + "ta")]'),
    ("pythonic", '[delete(path=BASE + "/data")]'),
    ("pythonic", "[delete(path=os.getcwd())]"),
    ("gemma3", '```tool_code\ndelete(path="/data") + 1\n```'),
    ("gemma3", '```tool_code\ndelete(path=f"/data/{name}")\n```'),
    ("pythonic", '[delete(path=f"/data/{name}")]'),
    ("lfm2", '<|tool_call_start|>[delete(path=F"/{x}" "/b")]<|tool_call_end|>'),
    *(("pythonic", f"[delete(path={value})]") for value in (
        '"/a" f"{b}"', '"/a" rf"{b}"', 'f"/a" "/c" f"{b}"', '"""/a""" f"""{b}"""', '["/a" f"{b}"]', '"/a" if b else f"{c}"',
        '"/%s" % b', '"/{}".format(b)', '"/a".upper()', '"/a"[1:]', 'b or "/a"', "2**b", "10//b", "5 if b else 3", "await b", "not b",
    )),
    ("lfm2", '<|tool_call_start|>[delete(path="/a" f"{b}", dry_run=True)]<|tool_call_end|>'),
    ("gemma3", '```tool_code\ndelete(path="/data") + delete(path="/tmp")\n```'),
    ("gemma3", '```tool_code\ndelete(path="/data"), delete(path="/tmp")\n```'),
    ("gemma3", '```tool_code\nprint(delete(path="/data"), delete(path="/tmp"))\n```'),
    ("gemma3", '```tool_code\nprint(delete(path="/data") + "x")\n```'),
    ("gemma3", '```tool_code\nprint(delete(path=os.getcwd()))\n```'),
    ("pythonic", '[delete(path="/data") + delete(path="/tmp")]'),
    # the closing quote of a string is missing, or a quote in it is not escaped
    *(("hermes", f'<tool_call>{{"name": "delete", "arguments": {arguments}}}</tool_call>') for arguments in (
        '{"path": "/data, "dry_run": "true"}',
        '{"path": "/data,\n  "dry_run" : "true"}',
        '{"path": "/data", dry_run": "true"}',
        '{"path": "/data""dry_run": "true"}',
        '{"path": "/data, "mode": 3, "dry_run": "true"}',
        '{"path": "/data}, "id": "a"}',
        "{'path': '/data, 'dry_run': 'true'}",
        "{“path”: “/data, “dry_run”: “true”}",
        '{"path": ["/a, "/b"]}',
        '{"path": ["/a", "/b, "/c"]}',
        '{"path": [{"a": "/a, "b": "/b"}]}',
        '"{\\"path\\": \\"/data, \\"dry_run\\": \\"true\\"}"',
        f'{{"path": "/data{", x" * 300},{" " * 200}"dry_run": "true"}}',
        f'{{"path": ["/a{", x" * 300},{" " * 200}"/b"]}}',
        f'"{{\\"path\\": \\"/data{", x" * 300},{" " * 200}\\"dry_run\\": \\"true\\"}}"',
    )),
    *(("pythonic", f"[delete({arguments})]") for arguments in (
        'path="/data, dry_run="true"',
        'path="/data,\n  dry_run = "true"',
        'path="/data" dry_run="true"',
        "path='/data, dry_run='true'",
        '"/data, "true"',
        'path=["/a, "/b"]',
        'path={"a": "/a, "b": "/b"}',
        '**{"path": "/data, "dry_run": "true"}',
        f'path="/data{", x" * 300},{" " * 200}dry_run{" " * 200}= "true"',
    )),
    ("gemma4", '<|tool_call>call:delete{path:<|"|>/data, dry_run:<|"|>true<|"|>}<tool_call|>'),
    # the same, and the string ends inside a quotation
    ("gemma3", "```tool_code\ndelete(path='/data'\ndelete(path='/tmp')\n```"),
    ("olmo3", "<function_calls>delete(path='/data'\ndelete(path='/tmp')</function_calls>"),
    ("olmo3", "<function_calls>delete(path='print('/data')</function_calls>"),
    ("hermes", '<tool_call>{"name": "delete", "arguments": {"path": "rm "/data"}}</tool_call>'),
    ("pythonic", f"[delete(path='{'x' * 600} '/data')]"),
    # text behind the markers of another dialect
    ("tool-json", f"<tool_call>{CALL}</tool_call> is how it is called."),
    ("tool-json", f"The tag <tool_call>{CALL}</tool_call>" + "<b>" * 60),
    ("tool-json", f"One may write {CALL} < 3."),
    # what the end cuts off
    ("hermes", f'<tool_call>{CALL[:-1]}, "dry'),
    ("hermes", f'<tool_call>{CALL[:-1]}, "dry_run": tr'),
]  # fmt: skip
WHOLE = [
    ("hermes", f"<tool_call>{CALL}"),
    ("hermes", f"<tool_call>{CALL[:-1]}</tool_call>"),
    ("hermes", f"<tool_call>{CALL}}}</tool_call>"),
    ("hermes", f"<tool_call>{CALL}</tool_c"),
    ("hermes", f"{CALL}\n\nI deleted it."),
    # between the markers of another dialect
    ("tool-json", f"<tool_call>{CALL}</tool_call>"),
    ("tool-json", f"<tool_call> {CALL} </tool_call><|im_end|>\nDone."),
    ("tool-json", f"<|tool_call_start|>{CALL}<|tool_call_end|> \n"),
    ("hermes", f'<tool_call>{CALL[:-1]}, "error": null}}</tool_call> Done.'),
    ("hermes", f'<tool_call>{{"type": "function", "id": "a", "index": 0, {CALL[1:]}</tool_call>'),
    ("llama3-json", f'{{"name": "delete", "parameters": {ARGS}}} Done: it is gone.'),
    ("mistral-v13", f"[TOOL_CALLS]delete[ARGS]{ARGS} Done."),
    ("pythonic", '[delete(path="/data")] Done.'),
    *(("pythonic", f"[delete(path={value})]") for value in ("Rome", "New York", "東京", "/data", '("/a", "/b")', '("/a",)')),
    ("deepseek-v3", DEEPSEEK_V3.replace("```<", "```\n<") % ARGS),
    ("gemma3", '```tool_code\nprint(delete(path="/data"))\n```'),
    ("gemma3", '```tool_code\nprint(default_api.delete(path="/data"))\n```'),
    ("gemma3", '```tool_code\ndefault_api.delete(path="/data")\n```'),
    ("pythonic", '[delete(path=\'say "a" and "b"\')]'),
    *(("pythonic", f"[delete(path={value})]") for value in (
        '"/a" f"b"', '"/a"\n    r"\\d"', '"/a" F"{{b}}"'[:-8] + '"/b"', "'it' u's'", '"He said "a" f"', '"the "b" road"',
    )),
    ("hermes", '<tool_call>{"name": "delete", "arguments": {"path": "a "b" c"}}</tool_call>'),
    ("hermes", '<tool_call>{"name": "delete", "arguments": {"path": "/data", "id": "1"}</tool_call>'),
    ("kimi-k3", '<|open|>tools<|sep|><|open|>call tool="delete" index="1"<|sep|><|open|>argument key="path" type="string"<|sep|>a <|close|> b<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'),
    ("mistral-v3", '[TOOL_CALLS] [{"name": "delete", "arguments": {"id": "1", "path": "/data"}]'),
    ("mistral-v3", '[TOOL_CALLS] [{"name": "delete", "arguments": {"path": "/data", "id": 1}]'),
    *(("hermes", f'<tool_call>{{"name": "delete", "arguments": {{"path": {value}}}}}</tool_call>') for value in (
        '"He said "hi", then left"', '"say "yes", then "no""', '"Hi, "you""', '"x = {"a": 1}"', '"x "y": z"', "'it's, isn't it'",
        '["x "y", z", "w"]', '"a, \\"dry_run\\": b"',
    )),
    *(("pythonic", f"[delete(path={value})]") for value in (
        '"He said "hi", then left"', '"say, "hi""', '"a, dry_run=b"', '"<a href="x" class="y">"', '["x "y", z", "w"]',
    )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "wire"), DOUBTFUL, ids=lambda part: part[:80])
def test_a_call_in_doubt_is_told_and_not_whole(name: str, wire: str) -> None:
    d = one_of(name)
    events = stream(d, [wire], TOOLS)
    reply = collect(events)
    assert [(call.name, call.whole) for call in reply.calls] == [("delete", False)]
    assert reply.calls[0].notes
    assert "tool_calls" not in reply.messages[0]
    for chunks in cuts(wire, random.Random(wire)):
        assert merged(stream(d, chunks, TOOLS)) == merged(events)


@pytest.mark.parametrize(("name", "wire"), WHOLE, ids=lambda part: part[:80])
def test_a_call_is_whole_where_all_that_stands_in_it_is_accounted_for(name: str, wire: str) -> None:
    d = one_of(name)
    events = stream(d, [wire], TOOLS)
    assert [(call.name, call.whole) for call in collect(events).calls] == [("delete", True)]
    for chunks in cuts(wire, random.Random(wire)):
        assert merged(stream(d, chunks, TOOLS)) == merged(events)


def test_an_unquoted_word_that_the_schema_lists_is_no_variable() -> None:
    unit: dict[str, Any] = {"anyOf": [{"enum": ["celsius", "kelvin"]}, {"type": "null"}]}
    tools = [Tool("f", "", {"type": "object", "properties": {"unit": unit, "all": {"type": "array", "items": unit}}})]
    for arguments, whole in (
        ("unit=celsius", True), ("celsius", True), ("all=[kelvin, celsius]", True), ("unit=degrees", False), ("all=[kelvin, x]", False),
    ):  # fmt: skip
        assert [call.whole for call in parse(f"[f({arguments})]", one_of("pythonic"), tools).calls] == [whole], (
            arguments
        )


@pytest.mark.parametrize("wire", [wire for name, wire in WHOLE if name == "tool-json"], ids=lambda part: part[:80])
def test_markers_of_another_dialect_are_told(wire: str) -> None:
    events = stream(one_of("tool-json"), [wire], TOOLS)
    assert [note.rule for note in collect(events).notes] == ["other-markers"]


@pytest.mark.parametrize(
    ("name", "wire", "notes"),
    [
        ("hermes", f'<tool_call>{{"type": "f", "index": 3, {CALL[1:]}</tool_call>', ['type: "f"', "index: 3"]),
        ("hermes", f'<tool_call>{{"id": "a", {CALL[1:-1]}, "id": "b"}}</tool_call>', ["id: a"]),
        ("hermes", f'<tool_call>{{"id": "a", {CALL[1:-1]}, "id": "a"}}</tool_call>', []),
        ("apriel", f'<tool_calls>[{{"id": "a", "id": 1, {CALL[1:]}]</tool_calls>', ["id: 1"]),
        ("hermes", f'<tool_call>{{"type": ["f"], {CALL[1:]}</tool_call>', ['type: ["f"]']),
        ("tool-json", '{"tool": null, "tool_input": {"path": "/a"}, "message": "Hi"}', ['tool_input: {"path": "/a"}']),
        ("tool-json", '{"tool_input": {"path": "/a"}, "tool": null, "message": "Hi"}', ['arguments: {"path": "/a"}']),
        ("tool-json", '{"tool": null, "tool_input": {}, "message": "Hi"}', []),
        ("tool-json", '{"tool": "", "tool_input": {}, "message": "Hi"}', []),
    ],
)
def test_what_is_no_part_of_a_call_is_told(name: str, wire: str, notes: list[str]) -> None:
    """The call is as whole as it was: what was left out could not have been an argument."""
    d = one_of(name)
    reply = collect(stream(d, [wire], TOOLS))
    assert [note.detail for note in reply.notes if note.rule == "ignored-key"] == notes
    assert [call.whole for call in reply.calls] == [True][: name != "tool-json"]
    for chunks in cuts(wire, random.Random(wire)):
        assert merged(stream(d, chunks, TOOLS)) == merged(stream(d, [wire], TOOLS))


OPEN_ENDED = [d for d in TALKING if d.name == "llama3-builtin" or isinstance(d.call[-1], Tagged)]
"""Code is whole wherever it ends; and where nothing but the end of the message closes a call, servers take that off."""


@pytest.mark.parametrize("d", [d for d in TALKING if d not in OPEN_ENDED], ids=lambda d: d.name)
def test_no_beginning_of_a_call_is_whole_with_fewer_arguments(d: Dialect) -> None:
    """Nor where nobody knows what arguments the tool has."""
    arguments = {"path": "/data", "dry_run": True}
    text = wire(d, ("delete", arguments))
    for tools, step in ((None, 1), (TOOLS, 3)):
        for end in range(0, len(text), step):
            whole = [call.arguments for call in parse(text[:end], d, tools).calls if call.whole]
            assert whole in ([], [arguments]), text[:end]


def test_the_model_is_told_of_the_doubt_and_nothing_runs() -> None:
    model = Scripted([f'{CALL[:-1]}, "dry_run": true}}', "I leave it."])
    reply = ts.run("Clean up", tools=[delete], model=model)
    assert reply.text == "I leave it."
    assert "more than one way (unknown-key: dry_run)" in str(model.requests[1])


def test_the_toolbox_says_what_is_in_doubt() -> None:
    call = ts.parse(f'<tool_call>{CALL[:-1]}, "dry_run": true}}</tool_call>', "hermes", [delete]).calls[0]
    problems = ts.Toolbox(delete).validate(call).problems
    assert len(problems) == 1
    assert "dry_run" in problems[0].message


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_text_as_the_argument_is_whole_only_with_its_closer(size: int) -> None:
    tools = [ts.Tool("bash", "", {"type": "object", "properties": {"command": {"type": "string"}}})]
    for text, whole in (("<tool: bash>\nrm -r /tmp/a\n</tool>", True), ("<tool: bash>\nrm -r /tmp/a", False)):
        decoder = ts.Decoder("cwm", tools, "")
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        reply = ts.collect([*(event for piece in pieces for event in decoder.feed(piece)), *decoder.close()])
        assert [(call.arguments, call.whole) for call in reply.calls] == [({"command": "rm -r /tmp/a"}, whole)]


TOKEN = re.compile(r"<[^<>\n]*>|\[/?[A-Z_]+\]|\w+|[^\w\s]")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "z": {"type": "string"}},
}
TWO = [
    ToolCall("a1B2c3D4e", "weather", {"city": "Rome", "days": 2, "z": "x y"}),
    ToolCall("Z9y8X7w6v", "search", {"city": "Paris"}),
]


@pytest.mark.parametrize("d", [d for d in DIALECTS if d.call], ids=lambda d: d.name)
def test_a_call_that_lacks_one_of_its_marks_takes_in_nothing_of_the_next(d: Dialect) -> None:
    """Whatever is left out of two calls, or stands there twice: none is whole with an argument of the other."""
    tools: list[Tool[..., Any]] = [Tool("weather", "", SCHEMA), Tool("search", "", SCHEMA)]
    text, rng = write_calls(TWO, d), random.Random(d.name)
    for m in rotated(list(TOKEN.finditer(text)), 8, zlib.crc32(d.name.encode())):
        for damaged in (text[: m.start()] + text[m.end() :], text[: m.end()] + text[m.start() :]):
            events = stream(d, [damaged], tools)
            for call in collect(events).calls:
                other = {"weather": "Paris", "search": "Rome"}.get(call.name)
                assert not (call.whole and other and other in call.json), (m[0], damaged)
            for chunks in islice(cuts(damaged, rng), 1):
                assert merged(stream(d, chunks, tools)) == merged(events)
