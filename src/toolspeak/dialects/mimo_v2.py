"""MiMo V2: the tags of Qwen 3 Coder with the values exactly as they are, no line to themselves."""

from ..wire.syntax import NAME, Dialect, Tagged, Thinking

MIMO_V2 = Dialect(
    "mimo-v2",
    ("<tool_call>\n<function=", NAME, ">\n", Tagged("<parameter=", ">", "</parameter>\n"), "</function>\n</tool_call>"),
    thinking=Thinking("<think>", "</think>"),
    stop=("<|im_end|>",),
    control=("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_response>", "</tool_response>"),
    models=("mimo-v2",),
)
