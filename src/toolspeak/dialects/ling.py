"""Ling 3: the tags of GLM 4.5, but no line break between one argument and the next."""

from ..wire.syntax import NAME, Dialect, Tagged, Thinking

LING3 = Dialect(
    "ling-3",
    ("<tool_call>", NAME, "\n", Tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>"), "\n</tool_call>"),
    between="\n",
    before="\n",
    thinking=Thinking("<think>", "</think>", call_ends=True),
    frame=("<|role_end|>",),
    stop=("<|role_end|>",),
    control=("<role>", "</role>", "<|role_end|>", "<tool_response>", "</tool_response>"),
    models=("ling-3", "ling3"),
)
