"""openPangu: a list between two special tokens, which some tokenizers name and others only number."""

from ..wire.dialect import Dialect, Thinking
from ._json import BARE, JSON_CALL, LIST

OPENPANGU = Dialect(
    "openpangu",
    (JSON_CALL,),
    open="[unused11]",
    close="[unused12]",
    items=LIST,
    also=(("<|tool_call_start|>", "<|tool_call_end|>"),),
    forms=BARE,
    thinking=Thinking("[unused16]", "[unused17]"),
    frame=("[unused10]",),
    stop=("[unused10]",),
    control=("[unused9]", "[unused10]"),
    models=("openpangu", "pangu-embedded"),
)
