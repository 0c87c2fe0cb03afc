"""Python calls in a list: `[f(k='v', n=3), g()]`, bare or (Llama 4) between markers."""

from dataclasses import replace

from ..wire.syntax import NAME, Dialect, Keywords

PYTHONIC = Dialect(
    "pythonic",
    (NAME, Keywords()),
    items=("[", ", ", "]"),
    also=(("<|python_start|>", "<|python_end|>"),),
    before="\n",
    guard=True,
    thinking=None,
    stop=("<|eot_id|>", "<|eom_id|>"),
    models=("toolace",),
)

LLAMA4_PYTHONIC = replace(
    PYTHONIC,
    name="llama4-pythonic",
    open="<|python_start|>",
    close="<|python_end|>",
    also=(),
    before="",
    stop=("<|eot|>", "<|eom|>"),
    control=("<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|eot|>", "<|eom|>", "<|eom_id|>", "<|step|>"),
    models=("llama-4", "llama4"),
)
