"""LongCat Flash: calls as Hermes writes them between marks of its own, or as key and value pairs."""

from ..wire.syntax import NAME, Dialect, Tagged, Thinking
from ._json import JSON_CALL

PAIR = Tagged("<longcat_arg_key>", "</longcat_arg_key>\n<longcat_arg_value>", "</longcat_arg_value>\n")
PAIRS = ("<longcat_tool_call>", NAME, "\n", PAIR, "</longcat_tool_call>")
OBJECT = ("<longcat_tool_call>\n", JSON_CALL, "\n</longcat_tool_call>")
THINKING = Thinking("<longcat_think>\n", "\n</longcat_think>\n")
CONTROL = ("<longcat_s>", "</longcat_s>", "<longcat_tool_response>", "</longcat_tool_response>")

LONGCAT = Dialect(
    "longcat",
    OBJECT,
    before="\n",
    forms=(PAIRS, (JSON_CALL,)),
    thinking=THINKING,
    stop=("</longcat_s>",),
    control=CONTROL,
    models=("longcat",),
)

LONGCAT_PAIRS = Dialect(
    "longcat-pairs",
    PAIRS,
    between="\n",
    before="\n",
    forms=(OBJECT,),
    thinking=THINKING,
    stop=("</longcat_s>",),
    control=CONTROL,
    models=("longcat-2", "longcat-next"),
)
