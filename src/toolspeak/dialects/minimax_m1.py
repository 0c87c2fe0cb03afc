"""MiniMax M1: one object to a line between `<tool_calls>` marks."""

from ..wire.syntax import Dialect
from ._json import BARE, JSON_CALL

MINIMAX_M1 = Dialect(
    "minimax-m1",
    (JSON_CALL,),
    open="<tool_calls>\n",
    between="\n",
    close="\n</tool_calls>",
    before="\n",
    forms=BARE,
    stop=("<end_of_sentence>",),
    control=("<begin_of_document>", "<beginning_of_sentence>", "<end_of_sentence>"),
    models=("minimax-m1", "minimax-text-01"),
)
