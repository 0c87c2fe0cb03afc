"""Apertus: a list of objects whose only key is the tool's name."""

from ..wire.dialect import ARGS, NAME, Dialect, JsonCall, Thinking
from ._json import LIST

APERTUS = Dialect(
    "apertus",
    (JsonCall(((NAME, ARGS),)),),
    open="<|tools_prefix|>",
    close="<|tools_suffix|>",
    items=LIST,
    thinking=Thinking("<|inner_prefix|>", "<|inner_suffix|>"),
    frame=("<|assistant_end|>",),
    stop=("<|assistant_end|>",),
    control=(
        "<|system_start|>",
        "<|system_end|>",
        "<|developer_start|>",
        "<|developer_end|>",
        "<|user_start|>",
        "<|user_end|>",
        "<|assistant_start|>",
        "<|assistant_end|>",
    ),
    models=("apertus",),
)
