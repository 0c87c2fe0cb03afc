"""Ling 3: the tags of GLM 4.5, but no line break between one argument and the next."""

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Results, Speech, Tagged, Thinking, ToolJson
from .glm import IN_JSON, LINES, TOOLS_PROMPT

LING3 = Dialect(
    "ling-3",
    ("<tool_call>", NAME, "\n", Tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>"), "\n</tool_call>"),
    between="\n",
    before="\n",
    forms=(IN_JSON,),
    thinking=Thinking("<think>", "</think>", frame_ends=True),
    frame=("<|role_end|>",),
    stop=("<|role_end|>",),
    control=("<role>", "</role>", "<|role_end|>", "<tool_response>", "</tool_response>"),
    models=("ling-3",),
    speech=Speech(
        (
            TOOLS_PROMPT,
            TOOLS,
            "\n</tools>\n\nIf none of the functions can be used, point it out. If the given question lacks the parameters"
            " required by the function, also point it out.\nIf you need to use a function, for each function call, output"
            f" the function name and arguments within the following XML format:\n{LINES}",
        ),
        tools=ToolJson(wrapped=True, lines=True),
        results=Results(each=("<tool_response>\n", RESULT, "\n</tool_response>")),
    ),
)
