"""NVIDIA Nemotron Nano v2: `<TOOLCALL>[{"name": .., "arguments": {..}}]</TOOLCALL>`."""

from ..wire.syntax import Dialect
from ._json import BARE, JSON_CALL, LIST

NEMOTRON_NANO_V2 = Dialect(
    "nemotron-nano-v2",
    (JSON_CALL,),
    open="<TOOLCALL>",
    close="</TOOLCALL>",
    items=LIST,
    before="\n",
    forms=BARE,
    stop=("<SPECIAL_12>",),
    control=("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>", "</TOOL_RESPONSE>"),
    models=("nemotron-nano-9b-v2", "nemotron-nano-12b-v2", "nemotron-nano-v2", "nemotron-nano"),
)
