"""Kimi K2: a call's id is its tool's name and a counter over the whole conversation, `functions.f:0`."""

from ..wire.dialect import ID, RESULT, Dialect, NumberedName, Results, Speech, Thinking
from ._json import JSON

KIMI_K2 = Dialect(
    "kimi-k2",
    (
        "<|tool_call_begin|>",
        NumberedName("functions.", ":"),
        "<|tool_call_argument_begin|>",
        JSON,
        "<|tool_call_end|>",
    ),
    open="<|tool_calls_section_begin|>",
    close="<|tool_calls_section_end|>",
    also=(("<|tool_call_section_begin|>", "<|tool_call_section_end|>"),),
    thinking=Thinking("<think>", "</think>", frame_ends=True),
    frame=("<|im_end|>",),
    stop=("<|im_end|>",),
    control=(
        "<|im_system|>",
        "<|im_user|>",
        "<|im_assistant|>",
        "<|im_middle|>",
        "<|im_end|>",
        "[BOS]",
        "[EOS]",
        "<|media_begin|>",
        "<|media_content|>",
        "<|media_end|>",
        "<|media_pad|>",
    ),
    models=("kimi-k2", "kimi-linear"),
    speech=Speech(results=Results("user", ("## Return of ", ID, "\n", RESULT))),
)
