"""Salesforce xLAM: a bare JSON list, or one in a fence or behind another family's marks."""

from ..wire.syntax import Dialect
from ._json import JSON_CALL, LIST

XLAM = Dialect(
    "xlam",
    (JSON_CALL,),
    items=LIST,
    also=(("[TOOL_CALLS]", ""), ("<tool_call>", "</tool_call>")),
    before="\n",
    guard=True,
    stop=("<|im_end|>", "<|eot_id|>"),
    control=("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    models=("xlam",),
)
