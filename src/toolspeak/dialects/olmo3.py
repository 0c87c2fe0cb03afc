"""OLMo 3: Python calls, one to a line, with values as JSON writes them."""

from ..wire.syntax import NAME, Dialect, Keywords, Thinking

OLMO3 = Dialect(
    "olmo3",
    (NAME, Keywords(quotes=('"', "'"), constants=("true", "false", "null"))),
    open="<function_calls>",
    between="\n",
    close="</function_calls>",
    thinking=Thinking("<think>", "</think>"),
    stop=("<|im_end|>", "<|endoftext|>"),
    control=("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<functions>", "</functions>"),
    models=("olmo-3", "olmo3"),
)
