"""GLM 4.5 and later, and models with the same format: `<tool_call>name<arg_key>..</arg_key><arg_value>..`.

4.5 and 4.6 write each tag on its own line, 4.7 and 5 write no line breaks at all. 4 and Z1 have no markers: a message
starts with a line that is a tool's name, and the arguments follow as JSON.
"""

from dataclasses import replace

from ..wire.dialect import (
    NAME,
    RESULT,
    TOOLS,
    Dialect,
    Header,
    Json,
    Layout,
    Results,
    Speech,
    Tagged,
    Thinking,
    ToolJson,
)
from ._chatml import CHATML
from ._json import JSON_CALL

TOOLS_PROMPT = """\
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
FORMAT_PROMPT = """
</tools>

For each function call, output the function name and arguments within the following XML format:
"""
LINES = """\
<tool_call>{function-name}
<arg_key>{arg-key-1}</arg_key>
<arg_value>{arg-value-1}</arg_value>
<arg_key>{arg-key-2}</arg_key>
<arg_value>{arg-value-2}</arg_value>
...
</tool_call>"""
ROW = (
    "<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>{arg-value-1}</arg_value>"
    "<arg_key>{arg-key-2}</arg_key><arg_value>{arg-value-2}</arg_value>...</tool_call>"
)
JSON_LINES = ToolJson(wrapped=True, lines=True)
ON_LINES = Results(each=("<tool_response>\n", RESULT, "\n</tool_response>"))
IN_A_ROW = Results(each=("<tool_response>", RESULT, "</tool_response>"), between="")
TURNS = ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>")
TURN_ENDS = ("<|observation|>", "<|user|>")

IN_JSON = ("<tool_call>", JSON_CALL, "</tool_call>")
"""A second format that models of these families write as well."""

GLM45 = Dialect(
    "glm45",
    ("<tool_call>", NAME, "\n", Tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"), "</tool_call>"),
    between="\n",
    before="\n",
    forms=(IN_JSON,),
    thinking=Thinking("<think>", "</think>\n"),
    frame=TURN_ENDS,
    stop=(*TURN_ENDS, "<|endoftext|>"),
    control=(*TURNS, "<tool_response>", "</tool_response>"),
    models=("glm-4.5", "glm-4.6", "glm-ga", "glyph", "ring-2.6", "ling-2.6?"),
    speech=Speech(
        (TOOLS_PROMPT, TOOLS, f"{FORMAT_PROMPT}{LINES}"),
        tools=JSON_LINES,
        results=ON_LINES,
        native_results=replace(ON_LINES, role="observation"),
    ),
    layout=Layout(("<|", "|>\n"), "", bos="[gMASK]<sop>", strip=False),
)

GLM47 = Dialect(
    "glm47",
    ("<tool_call>", NAME, Tagged("<arg_key>", "</arg_key><arg_value>", "</arg_value>"), "</tool_call>"),
    forms=(IN_JSON,),
    thinking=Thinking("<think>", "</think>"),
    frame=TURN_ENDS,
    stop=(*TURN_ENDS, "<|endoftext|>"),
    control=(*TURNS, "<tool_response>", "</tool_response>"),
    models=("glm-4.7", "glm-5", "macaron-v1"),
    speech=Speech(
        (TOOLS_PROMPT, TOOLS, f"{FORMAT_PROMPT}{ROW}"),
        tools=JSON_LINES,
        results=IN_A_ROW,
        native_results=replace(IN_A_ROW, role="observation"),
    ),
    layout=Layout(("<|", "|>"), "", bos="[gMASK]<sop>", strip=False),
)

SPARK25 = replace(
    GLM47,
    name="spark-2.5",
    frame=("<｜end▁of▁sentence｜>",),
    stop=("<｜end▁of▁sentence｜>",),
    control=(
        "<｜start▁of▁sentence｜>",
        "<｜end▁of▁sentence｜>",
        *("<|System|>", "<|User|>", "<|Bot|>", "<|Tool|>", "<tool_response>", "</tool_response>"),
    ),
    models=("spark-2.5", "spark-3?"),
    speech=Speech(results=IN_A_ROW),
    layout=None,
)

LAGUNA = replace(
    GLM47,
    name="laguna",
    frame=("</assistant>",),
    stop=("</assistant>",),
    control=(
        "〈|EOS|〉",
        *(f"{mark}{role}>" for role in ("system", "user", "assistant", "tool_response") for mark in ("<", "</")),
    ),
    models=("laguna",),
    speech=Speech(results=replace(IN_A_ROW, between="\n")),
    layout=None,
)

LAGUNA_XS = replace(
    LAGUNA,
    name="laguna-xs",
    call=GLM45.call,
    between="\n",
    before="\n",
    thinking=Thinking(close="\n</think>\n"),
    models=("laguna-xs",),
    speech=Speech(
        (
            "### Tools\n\nYou may call functions to assist with the user query.\nAll available function signatures are"
            " listed below:\n<available_tools>\n",
            TOOLS,
            "\n</available_tools>\n\nFor each function call, return an unescaped XML-like object with function name and"
            " arguments within '<tool_call>' and '</tool_call>' tags, like here:\n<tool_call>function-name\n"
            "<arg_key>argument-key</arg_key>\n<arg_value>value-of-argument-key</arg_value>\n</tool_call>",
        ),
        tools=JSON_LINES,
        results=ON_LINES,
    ),
)

IQUEST_Q1 = replace(
    GLM47,
    name="iquest-q1",
    call=("<iquest_tool_call>", *GLM47.call[1:-1], "</iquest_tool_call>"),
    forms=(("<iquest_tool_call>", JSON_CALL, "</iquest_tool_call>"),),
    frame=("<|iquest_end|>",),
    stop=("<|iquest_end|>",),
    control=("<|iquest_end|>", "<|iquest_assistant|>", "<tool_response>", "</tool_response>"),
    models=("iquest-q1",),
    speech=Speech(results=IN_A_ROW),
    layout=None,
)

IQUEST_CODER_V2 = replace(
    GLM45,
    name="iquest-coder-v2",
    call=("<iquestcoder_tool_call>", *GLM45.call[1:-1], "</iquestcoder_tool_call>"),
    forms=(("<iquestcoder_tool_call>", JSON_CALL, "</iquestcoder_tool_call>"),),
    frame=("<|im_end|>",),
    stop=("<|im_end|>",),
    control=("<|im_start|>", "<|im_end|>", "<tool_response>", "</tool_response>"),
    models=("iquest-coder-v2",),
    speech=Speech(results=ON_LINES),
    layout=None,
)
"""Its marks as vLLM's parser of that name has them; what stands around them is that of the family's other models."""

HYPERCLOVAX = replace(
    GLM45,
    name="hyperclovax",
    thinking=Thinking(),
    frame=("<|im_end|>",),
    stop=("<|im_end|>",),
    control=("<|im_start|>", "<|im_end|>", "<|endofturn|>", "<tool_response>", "</tool_response>"),
    models=(
        "hyperclovax-seed-think-32b",
        "hyperclovax-seed-think?",
    ),
    speech=Speech((TOOLS_PROMPT, TOOLS, f"{FORMAT_PROMPT}{LINES}"), tools=JSON_LINES, results=ON_LINES),
    layout=CHATML,
)

GLM4 = Dialect(
    "glm4",
    (Json(),),
    guard=True,
    header=Header("<|assistant|>", "\n", (("^$", "text"), ("^", "call"))),
    frame=TURN_ENDS,
    stop=(*TURN_ENDS, "<|endoftext|>"),
    control=TURNS,
    models=("glm-4-32b", "glm-4-9b", "glm-z1", "glm-4?"),
    thinkers=("glm-z1",),
    speech=Speech(results=Results(each=(RESULT,)), native_results=Results("observation", (RESULT,), grouped=False)),
    layout=Layout(("<|", "|>\n"), "", bos="[gMASK]<sop>", strip=False),
)
