"""AI21 Jamba: `<tool_calls>[..]</tool_calls>`, one call per line."""

from ..wire.dialect import Dialect
from ._json import BARE, JSON_CALL, LINES

JAMBA = Dialect(
    "jamba",
    (JSON_CALL,),
    open="<tool_calls>",
    close="</tool_calls>",
    items=LINES,
    forms=BARE,
    thinking=None,
    stop=("<|eom|>",),
    control=("<|startoftext|>", "<|bom|>", "<|eom|>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"),
    models=("jamba",),
)
