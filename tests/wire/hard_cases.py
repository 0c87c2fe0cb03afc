"""Texts that break other parsers, by hand: what stands in them, and what they mean.

A `Hard` names the dialects it is written in. `told`: reading it takes a repair or a doubt that a note has to tell of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolspeak.types import Tool

STRING = {"type": "string"}
TOOLS = (
    Tool(
        "note",
        "",
        {
            "type": "object",
            "properties": {
                "text": STRING,
                "count": {"type": "integer"},
                "maybe": {"anyOf": [STRING, {"type": "null"}]},
                "flag": {"type": "boolean"},
                "box": {"type": "object"},
                "tags": {"type": "array", "items": STRING},
                "place": {"$ref": "#/$defs/place"},
            },
            "$defs": {"place": {"type": "object", "properties": {"floor": {"type": "integer"}}}},
        },
    ),
    Tool("find", "", {"type": "object", "properties": {"query": STRING}}),
    Tool("ping", "", {"type": "object", "properties": {}}),
    Tool("code_interpreter", "", {"type": "object", "properties": {"code": STRING}}),
)
Call = tuple[str, dict[str, Any]]
PING: Call = ("ping", {})


def note(**arguments: Any) -> Call:
    return ("note", arguments)


def find(query: str) -> Call:
    return ("find", {"query": query})


@dataclass(frozen=True)
class Hard:
    what: str
    dialects: str
    wire: str
    calls: tuple[Call, ...] = ()
    text: str = ""
    thought: str = ""
    told: bool = False


def function(*values: tuple[str, str], tool: str = "note") -> str:
    """A call by tags, as Qwen3-Coder writes it."""
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values)
    return f"<tool_call>\n<function={tool}>\n{inner}</function>\n</tool_call>"


def tree(inner: str, tool: str = "note") -> str:
    m = "]<]minimax[>["
    return f'{m}<tool_call>\n{m}<invoke name="{tool}">{inner.replace("@", m)}{m}</invoke>\n{m}</tool_call>'


ONE = '{"name": "note", "arguments": {"count": 1}}'
ONE_LLAMA = '{"name": "note", "parameters": {"count": 1}}'
RECORD = 'The record is {"name": "note", "age": 3}.'
FENCED = '```json\n{"name": "Ann", "parameters": {"x": 1}}\n```'
NESTED = '{"parameters": {"a": {"b": 1}}, "x": [1, 2]} and so on'
LISTS = "a list: [1, 2] and [a link](http://x.example)"

CLOSERS = [
    Hard("a parameter's closer in its value", "qwen3-coder", function(("text", "a </parameter> b"), ("count", "1")),
         (note(text="a </parameter> b", count=1),)),
    Hard("all closers in a value of code", "qwen3-coder", function(("text", "print('</function></tool_call>')")),
         (note(text="print('</function></tool_call>')"),)),
    Hard("a value's closer in a value", "glm47",
         "<tool_call>note<arg_key>text</arg_key><arg_value>a</arg_value>b</arg_value></tool_call>",
         (note(text="a</arg_value>b"),)),
    Hard("a call's closer in a JSON string", "hermes granite4",
         '<tool_call>\n{"name": "note", "arguments": {"text": "</tool_call>"}}\n</tool_call>',
         (note(text="</tool_call>"),)),
    Hard("a call's closer in a string of its own quotes", "gemma4",
         '<|tool_call>call:note{text:<|"|>a<tool_call|>b<|"|>}<tool_call|>', (note(text="a<tool_call|>b"),)),
    Hard("a message's start in a JSON string", "functionary-v3", '>>>all\nI look.>>>note\n{"count": 1}>>>find\n{"query": ">>>note"}',
         (note(count=1), find(">>>note")), "I look."),
]  # fmt: skip
TYPES = [
    Hard("types come from the schema", "qwen3-coder",
         function(("text", "00123"), ("count", "12"), ("maybe", "null"), ("flag", "True")),
         (note(text="00123", count=12, maybe=None, flag=True),)),
    Hard("what does not fit stays a string", "qwen3-coder",
         function(("text", "null"), ("count", "2026-01-15"), ("maybe", "nul")),
         (note(text="null", count="2026-01-15", maybe="nul"),), told=True),
    Hard("a Python repr where JSON was meant", "seed-oss",
         "<seed:tool_call>\n<function=note>\n<parameter=box>{'x': [1, None, True]}</parameter>\n</function>\n</seed:tool_call>",
         (note(box={"x": [1, None, True]}),)),
    Hard("entities stay as they are", "qwen3-coder", function(("text", "a &lt; b &amp;&amp; c")), (note(text="a &lt; b &amp;&amp; c"),)),
    Hard("elements by the schema: a list of none, an object by reference", "minimax-m3",
         tree("@<text>a < b@</text>@<tags>@</tags>@<place>@<floor>1@</floor>@</place>"),
         (note(text="a < b", tags=[], place={"floor": 1}),)),
]  # fmt: skip
FOREIGN = [
    Hard("another dialect's call between the same marks", "qwen3-coder",
         f"Hm.<tool_call>\n{ONE}\n</tool_call>\n" + function(("count", "2")), (note(count=1), note(count=2)), "Hm."),
    Hard("marks around what is no call", "qwen3-coder hermes", "<tool_call>\n{oops}\n</tool_call> is a tag",
         text="<tool_call>\n{oops}\n</tool_call> is a tag"),
    Hard("marks in a sentence", "qwen3-coder", "Use <tool_call> tags. " + function(tool="ping"), (PING,), "Use <tool_call> tags."),
    Hard("an unknown tool is told, and ends nothing", "hermes",
         '<tool_call>{"name": "zz", "arguments": {}}</tool_call>\n<tool_call>{"name": "ping", "arguments": {}}</tool_call>',
         (("zz", {}), PING), told=True),
]  # fmt: skip
EMPTY = [
    Hard("no arguments", "hermes", '<tool_call>{"name": "ping"}</tool_call>', (PING,)),
    Hard("arguments that are null", "hermes", '<tool_call>{"name": "ping", "arguments": null}</tool_call>', (PING,)),
    Hard("a name alone", "glm47", "<tool_call>ping</tool_call>", (PING,)),
    Hard("nothing where the JSON should be", "kimi-k2",
         "<|tool_calls_section_begin|><|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|><|tool_call_end|><|tool_calls_section_end|>",
         (PING,)),
]  # fmt: skip
KEYS = [
    Hard("the arguments before the name", "hermes", '<tool_call>{"arguments": {"text": "x"}, "name": "note"}</tool_call>', (note(text="x"),)),
    Hard("another word for the arguments", "hermes", '<tool_call>{"name": "note", "parameters": {"text": "x"}}</tool_call>', (note(text="x"),)),
    Hard("OpenAI's keys, the arguments a string", "hermes",
         '<tool_call>{"id": "call_1", "type": "function", "name": "note", "arguments": "{\\"text\\": \\"x\\\\n\\"}"}</tool_call>',
         (note(text="x\n"),)),
    Hard("arguments as a string", "empower", '<f>[{"name": "note", "arguments": "{\\"count\\": 1}"}]', (note(count=1),)),
    Hard("a frame around a text", "empower", "<c>hello", text="hello"),
    Hard("a raw line break in a JSON string", "hermes", '<tool_call>{"name": "note", "arguments": {"text": "a\nb", "count": 1}}</tool_call>',
         (note(text="a\nb", count=1),), told=True),
    Hard("an escape that JSON does not know", "hermes", '<tool_call>{"name": "note", "arguments": {"text": "\\d+"}}</tool_call>',
         (note(text="\\d+"),), told=True),
]  # fmt: skip
MISSING = [
    Hard("the outer brace", "hermes", '<tool_call>{"name": "note", "arguments": {"count": 1}</tool_call>', (note(count=1),), told=True),
    Hard("the closer", "hermes", f"<tool_call>{ONE}", (note(count=1),), told=True),
    Hard("the opener", "qwen3-coder", function(("count", "1")).removeprefix("<tool_call>\n"), (note(count=1),), told=True),
    Hard("the inner closer", "qwen3-coder", function(("count", "1")).replace("</function>\n", ""), (note(count=1),), told=True),
    Hard("a parameter's closer before the next", "qwen3-coder",
         "<tool_call>\n<function=note>\n<parameter=count>\n1\n<parameter=text>\nx\n</parameter>\n</function>\n</tool_call>",
         (note(count=1, text="x"),), told=True),
    Hard("the word before the arguments", "mistral-v11", '[TOOL_CALLS]note{"count": 1}', (note(count=1),)),
    Hard("a list's brackets", "nemotron-nano-v2", f"<TOOLCALL>{ONE}</TOOLCALL>", (note(count=1),)),
    Hard("the section's opener and closer", "deepseek-v31",
         '<｜tool▁call▁begin｜>note<｜tool▁sep｜>{"count": 1}<｜tool▁call▁end｜>', (note(count=1),), told=True),
    Hard("the word for the type", "deepseek-dsml",
         '<｜DSML｜function_calls>\n<｜DSML｜invoke name="note">\n<｜DSML｜parameter name="text">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
         (note(text="1"),)),
]  # fmt: skip
BARE = [
    Hard("a call without any mark", "llama3-json", ONE_LLAMA, (note(count=1),)),
    Hard("two, and OpenAI's key", "llama3-json",
         '{"type": "function", "name": "note", "parameters": {"count": 1}}; {"name": "find", "parameters": {"query": "v"}}',
         (note(count=1), find("v"))),
    Hard("a mark that may be there", "llama3-json", "<|python_tag|>" + ONE_LLAMA, (note(count=1),)),
    Hard("a tool's name in a record", "llama3-json hermes", RECORD, text=RECORD),
    Hard("a record with the keys of a call", "llama3-json hermes", FENCED, text=FENCED),
    Hard("arguments of nothing", "llama3-json", NESTED, text=NESTED),
    Hard("a bare list of calls", "xlam", '[{"name": "note", "arguments": {"count": 1}}, {"name": "find", "arguments": {"query": "v"}}]',
         (note(count=1), find("v"))),
    Hard("a list in a fence", "xlam", f"```json\n[{ONE}]\n```", (note(count=1),)),
    Hard("a list behind a foreign mark", "xlam", f"[TOOL_CALLS][{ONE}]", (note(count=1),)),
    Hard("a list behind a thought", "xlam", f"<think>hm</think>[{ONE}]", (note(count=1),), thought="hm"),
    Hard("lists that are none", "xlam pythonic", LISTS, text=LISTS),
]  # fmt: skip
LITERALS = [
    Hard("Python's literals", "pythonic",
         "[note(text='it\\'s', count=-3, tags=['a', \"b\"], box={'k': None, 'x': (1, 2.5)}), ping()]",
         (note(text="it's", count=-3, tags=["a", "b"], box={"k": None, "x": [1, 2.5]}), PING)),
    Hard("unescaped quotes", "pythonic", "[note(text='she said 'hi' ok', count=1)]", (note(text="she said 'hi' ok", count=1),), told=True),
    Hard("arguments by position", "pythonic", "[note('abc', 3)]", (note(text="abc", count=3),), told=True),
    Hard("marks around the list", "llama4-pythonic", "<|python_start|>[note(count=1)]<|python_end|>", (note(count=1),)),
    Hard("a call a line", "olmo3", '<function_calls>note(count=1)\nfind(query="x")</function_calls>', (note(count=1), find("x"))),
    Hard("a long string in a fence", "gemma3", "Sure.\n```tool_code\nnote(text='''a\nb''')\n```", (note(text="a\nb"),), "Sure."),
    Hard("JSON's words", "lfm2", "<|tool_call_start|>[note(flag=true, maybe=null)]<|tool_call_end|>", (note(flag=True, maybe=None),)),
    Hard("bare keys, words of two languages", "gemma4",
         '<|tool_call>call:note{box:{a:[1,None,true]},maybe:null,text:<|"|>x"y<|"|>}<tool_call|>',
         (note(box={"a": [1, None, True]}, maybe=None, text='x"y'),)),
    Hard("all the rest is code", "llama3-builtin", "<|python_tag|>print('x')\nprint(1)", (("code_interpreter", {"code": "print('x')\nprint(1)"}),)),
]  # fmt: skip
HEADERS = [
    Hard("a thought, a preamble, a call", "harmony",
         "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
         '<|channel|>commentary to=functions.note <|constrain|>json<|message|>{"count": 1}<|call|>',
         (note(count=1),), "I look.", "hm"),
    Hard("the recipient in the role", "harmony",
         '<|start|>assistant to=functions.note<|channel|>commentary json<|message|>{"count": 1}<|call|>', (note(count=1),)),
    Hard("a call on the channel of thoughts", "harmony",
         '<|channel|>analysis to=functions.note <|constrain|>json<|message|>{"count": 1}<|call|>', (note(count=1),)),
    Hard("an answer alone", "harmony", "<|channel|>final<|message|>Hi<|return|>", text="Hi"),
    Hard("a start that is none", "functionary-v3", ">>>all\nThe prompt >>> is\nfine", text="The prompt >>> is\nfine"),
    Hard("a thought to oneself, a call to another", "muse",
         ' to=self<|message|>hm<|eom|><|start|>assistant to=note<|message|><atem:function_calls>\n<atem:invoke name="note">\n'
         '<atem:parameter name="count">1</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>',
         (note(count=1),), thought="hm"),
    Hard("a call whose message is its parameters", "beam",
         'to=note<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="text">\nx\n</rfl:parameter><|call|>', (note(text="x"),)),
]  # fmt: skip
THOUGHTS = [
    Hard("a call ends a thought", "kimi-k2",
         '<think>I call <|tool_calls_section_begin|><|tool_call_begin|>functions.note:0<|tool_call_argument_begin|>{"count": 1}'
         "<|tool_call_end|><|tool_calls_section_end|>",
         (note(count=1),), thought="I call"),
    Hard("a call in a closed thought is thought", "hermes", f"<think>\nmaybe <tool_call>{ONE}</tool_call>?\n</think>\n\nno",
         text="no", thought=f"maybe <tool_call>{ONE}</tool_call>?"),
    Hard("a mark in a thought", "qwen3-coder", "<think>\nI could write <tool_call> here\n</think>\n\nok",
         text="ok", thought="I could write <tool_call> here"),
    Hard("a thought in words, JSON after it", "react", 'Thought: I need it\nAction: note\nAction Input: {"count": 1}\nObservation:',
         (note(count=1),), thought="I need it"),
    Hard("a thought in words, a text after it", "react", "Thought: I need it\nAction: find\nAction Input: hello world",
         (find("hello world"),), thought="I need it"),
]  # fmt: skip
HARD = [*CLOSERS, *TYPES, *FOREIGN, *EMPTY, *KEYS, *MISSING, *BARE, *LITERALS, *HEADERS, *THOUGHTS]
