"""OLMo 3: Python calls, one per line, with values in JSON notation."""

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Keywords, Results, Speech, Thinking, ToolJson
from ._chatml import CHATML, CONTROL

OLMO3 = Dialect(
    "olmo3",
    (NAME, Keywords(quotes=('"', "'"), constants=("true", "false", "null"))),
    open="<function_calls>",
    between="\n",
    close="</function_calls>",
    thinking=Thinking("<think>", "</think>\n\n"),
    stop=("<|im_end|>", "<|endoftext|>"),
    control=(*CONTROL, "<functions>", "</functions>"),
    models=("olmo-3",),
    thinkers=("think",),
    speech=Speech(
        (
            "You are a helpful function-calling AI assistant. You are provided with function signatures within"
            " <functions></functions> XML tags. You may call one or more functions to assist with the user query. Output"
            " any function calls within <function_calls></function_calls> XML tags. Do not make assumptions about what"
            " values to plug into functions.<functions>",
            TOOLS,
            "</functions>",
        ),
        tools=ToolJson(wrapped=True),
        native_results=Results("environment", (RESULT,), grouped=False),
    ),
    layout=CHATML,
)
