"""Hunyuan 3 and 4: GLM's tags inside a section. Every tag has a suffix that the checkpoint's tokenizer defines."""

from dataclasses import replace

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Maybe, Results, Speech, Tagged, Thinking, ToolJson
from ._json import JSON_CALL
from .glm import TOOLS_PROMPT

FORMAT_PROMPT = """
</tools>

For function call returns, you should first print <tool_calls:opensource>
For each function call, you should return object like:
<tool_call:opensource>{function-name}<tool_sep:opensource>
<arg_key:opensource>{arg-key-1}</arg_key:opensource>
<arg_value:opensource>{arg-value-1}</arg_value:opensource>
<arg_key:opensource>{arg-key-2}</arg_key:opensource>
<arg_value:opensource>{arg-value-2}</arg_value:opensource>
...
</tool_call:opensource>
At the end of function call returns, you should print </tool_calls:opensource>"""

HY_V3 = Dialect(
    "hy-v3",
    (
        "<tool_call>",
        NAME,
        "<tool_sep>\n",
        Tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"),
        "</tool_call>",
    ),
    open="<tool_calls>\n",
    between="\n",
    close="\n</tool_calls>",
    forms=(("<tool_call>", JSON_CALL, "</tool_call>"),),
    thinking=Thinking("<think>", "</think>"),
    frame=("<｜hy_eos｜>",),
    stop=("<｜hy_eos｜>",),
    control=(
        *("<｜hy_begin_of_sentence｜>", "<｜hy_eos｜>", "<｜hy_pad｜>", "<｜hy_User｜>", "<｜hy_Assistant｜>"),
        *("<｜reasoning_mode｜>", "<tool_responses>", "</tool_responses>", "<tool_response>", "</tool_response>"),
    ),
    speech=Speech(
        results=Results(
            each=("<tool_response>\n", RESULT, "\n</tool_response>"),
            open="<tool_responses>\n",
            close="\n</tool_responses>",
        )
    ),
)

OPENSOURCE = Tagged(
    "<arg_key:opensource>", "</arg_key:opensource>\n<arg_value:opensource>", "</arg_value:opensource>\n"
)
OBJECT = ("<tool_call:opensource>", JSON_CALL, "</tool_call:opensource>")

HY_V3_OPENSOURCE = replace(
    HY_V3,
    name="hy-v3-opensource",
    call=("<tool_call:opensource>", NAME, "<tool_sep:opensource>\n", OPENSOURCE, "</tool_call:opensource>"),
    open="<tool_calls:opensource>\n",
    close="\n</tool_calls:opensource>",
    forms=(OBJECT,),
    thinking=Thinking("<think:opensource>", "</think:opensource>"),
    frame=("<｜hy_eos:opensource｜>",),
    stop=("<｜hy_eos:opensource｜>",),
    control=(
        *("<｜hy_begin_of_sentence:opensource｜>", "<｜hy_eos:opensource｜>", "<｜hy_pad:opensource｜>"),
        *("<｜hy_User:opensource｜>", "<｜hy_Assistant:opensource｜>", "<｜reasoning_mode:opensource｜>"),
        *("<tool_responses:opensource>", "</tool_responses:opensource>"),
        *("<tool_response:opensource>", "</tool_response:opensource>"),
    ),
    models=("hy3", "hunyuan-3"),
    speech=Speech(
        (TOOLS_PROMPT, TOOLS, FORMAT_PROMPT),
        tools=ToolJson(wrapped=True, lines=True),
        results=Results(
            each=("<tool_response:opensource>\n", RESULT, "\n</tool_response:opensource>"),
            open="<tool_responses:opensource>\n",
            close="\n</tool_responses:opensource>",
        ),
    ),
)

HY_V4_OPENSOURCE = replace(
    HY_V3_OPENSOURCE,
    name="hy-v4-opensource",
    call=(
        "<tool_call:opensource>",
        NAME,
        Maybe(("<tool_sep:opensource>",)),
        Tagged("<arg_key:opensource>", "</arg_key:opensource><arg_value:opensource>", "</arg_value:opensource>"),
        "</tool_call:opensource>",
    ),
    open="<tool_calls:opensource>",
    between="",
    close="</tool_calls:opensource>",
    models=("hy4-preview",),
    speech=Speech(results=HY_V3_OPENSOURCE.speech.results),
)

HY_V4 = replace(
    HY_V3,
    name="hy-v4",
    call=(
        "<tool_call:6124c78e>",
        NAME,
        Maybe(("<tool_sep:6124c78e>",)),  # some servers of Hy3 have this suffix
        "\n",
        Tagged("<arg_key:6124c78e>", "</arg_key:6124c78e>\n<arg_value:6124c78e>", "</arg_value:6124c78e>\n"),
        "</tool_call:6124c78e>",
    ),
    open="<tool_calls:6124c78e>\n",
    close="\n</tool_calls:6124c78e>",
    forms=(("<tool_call:6124c78e>", JSON_CALL, "</tool_call:6124c78e>"),),
    thinking=Thinking("<think:6124c78e>", "</think:6124c78e>"),
    frame=("<｜hy_eos:6124c78e｜>",),
    stop=("<｜hy_eos:6124c78e｜>",),
    control=("<｜hy_eos:6124c78e｜>", "<｜hy_User:6124c78e｜>", "<｜hy_Assistant:6124c78e｜>"),
    models=("hy4", "hunyuan-4"),
    speech=Speech(
        results=Results(
            each=("<tool_response:6124c78e>\n", RESULT, "\n</tool_response:6124c78e>"),
            open="<tool_responses:6124c78e>\n",
            close="\n</tool_responses:6124c78e>",
        )
    ),
)
