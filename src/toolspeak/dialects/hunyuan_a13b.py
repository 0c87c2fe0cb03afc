"""Tencent Hunyuan A13B: `<tool_calls>[..]</tool_calls>`, the answer between `<answer>` tags."""

from ..wire.dialect import RESULT, Dialect, Results, Speech, Thinking
from ._json import BARE, JSON_CALL, LIST

HUNYUAN_A13B = Dialect(
    "hunyuan-a13b",
    (JSON_CALL,),
    open="<tool_calls>",
    close="</tool_calls>",
    items=LIST,
    forms=BARE,
    thinking=Thinking("<think>\n", "\n</think>\n"),
    frame=("<answer>\n", "\n</answer>"),
    stop=("<|eos|>",),
    control=(
        "<|startoftext|>",
        "<|extra_0|>",
        "<|extra_4|>",
        "<|eos|>",
        "<tool_response>",
        "</tool_response>",
        "<tool_responses>",
        "</tool_responses>",
    ),
    models=(
        "hunyuan-a13b",
        "hunyuan-0.5b?",
        "hunyuan-1.8b?",
        "hunyuan-4b?",
        "hunyuan-7b?",
    ),
    speech=Speech(results=Results("user", ("<tool_response>", RESULT, "</tool_response>"))),
)
