"""DeepSeek 3.2 and 4, GigaChat 3.5: `<｜DSML｜invoke name=".."><｜DSML｜parameter name=".." string="true">`.

An attribute of each value says whether it is a string or JSON. The versions differ in the name of the section, and 4.1
writes a space before every tag name.
"""

from dataclasses import replace

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Part, Results, Speech, Tagged, Thinking, ToolJson, Typed

STRING = Typed('" string="', "true", "false")
TURNS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜System｜>")

TOOLS_PROMPT = """\
## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part of your reply to the user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types (numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. Here is an example:

<｜DSML｜function_calls>
...
</｜DSML｜function_calls>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>
"""
TOOLS_PROMPT_V4 = """\
## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜tool_calls>" block like the following:

<｜DSML｜tool_calls>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜tool_calls>

"""
TOOLS_PROMPT_V41 = """\
## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

"""
RULES_V4 = """\
String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

"""
END_V4 = "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n"
JSON_LINES = ToolJson(lines=True)
RESULTS_V4 = Results(each=("<tool_result>", RESULT, "</tool_result>"), between="\n\n")

BARS = ("｜｜", "||", "|", "‖")
"""Other bars that models write around the mark, mostly in conversations that contain it in that spelling."""


def _call(bar: str = "｜", space: str = "") -> tuple[Part, ...]:
    """A call with these bars, and this space, in its tags."""
    mark = f"{bar}DSML{bar}{space}"
    parameters = Tagged(f'<{mark}parameter name="', '">', f"</{mark}parameter>\n", typed=STRING)
    return (f'<{mark}invoke name="', NAME, '">\n', parameters, f"</{mark}invoke>")


def _sections(name: str) -> tuple[tuple[str, str], ...]:
    """Sections of this name with other bars."""
    return tuple((f"<{bar}DSML{bar}{name}>\n", f"\n</{bar}DSML{bar}{name}>") for bar in BARS)


DEEPSEEK_DSML = Dialect(
    "deepseek-dsml",
    _call(),
    forms=tuple(map(_call, BARS)),
    also=_sections("function_calls"),
    open="<｜DSML｜function_calls>\n",
    between="\n",
    close="\n</｜DSML｜function_calls>",
    before="\n\n",
    thinking=Thinking("<think>", "</think>", frame_ends=True),
    frame=("<｜end▁of▁sentence｜>",),
    stop=("<｜end▁of▁sentence｜>",),
    control=(*TURNS, "<function_results>", "</function_results>", "｜DSML｜"),
    models=("deepseek-v3.2",),
    speech=Speech(
        (TOOLS_PROMPT, TOOLS, "\n</functions>\n"),
        tools=JSON_LINES,
        results=Results(
            each=("<result>", RESULT, "</result>"), open="<function_results>\n", close="\n</function_results>"
        ),
    ),
)

DEEPSEEK_V4 = replace(
    DEEPSEEK_DSML,
    name="deepseek-v4",
    open="<｜DSML｜tool_calls>\n",
    close="\n</｜DSML｜tool_calls>",
    also=_sections("tool_calls"),
    control=(*TURNS, "<tool_result>", "</tool_result>", "｜DSML｜"),
    models=("deepseek-v4",),
    speech=Speech((f"{TOOLS_PROMPT_V4}{RULES_V4}", TOOLS, END_V4), tools=JSON_LINES, results=RESULTS_V4),
)

DEEPSEEK_V41 = replace(
    DEEPSEEK_V4,
    name="deepseek-v4.1",
    call=_call(space=" "),
    open="<｜DSML｜ calls>\n",
    close="\n</｜DSML｜ calls>",
    forms=tuple(_call(bar, " ") for bar in BARS),
    also=_sections(" calls"),
    models=("deepseek-v4.1",),
    speech=Speech((f"{TOOLS_PROMPT_V41}{RULES_V4}", TOOLS, END_V4), tools=JSON_LINES, results=RESULTS_V4),
)

GIGACHAT35 = replace(
    DEEPSEEK_DSML,
    name="gigachat-3.5",
    call=(
        '<｜GCML｜invoke name="',
        NAME,
        '">\n',
        Tagged('<｜GCML｜parameter name="', '">', "</｜GCML｜parameter>\n", typed=STRING),
        "</｜GCML｜invoke>",
    ),
    open="<｜GCML｜tool_calls>\n",
    close="\n</｜GCML｜tool_calls>",
    forms=(),
    also=(),
    frame=("<|message_sep|>",),
    stop=("<|message_sep|>", "</s>"),
    control=("<|message_sep|>", "<|role_sep|>", "<s>", "</s>", "｜GCML｜"),
    models=("gigachat-3.5",),
    speech=Speech(),
)
