"""K2 Horizon: keys and values in `<ifm|..>` tags; `k2-horizon-typed` is its mode in which each value tells its type."""

from dataclasses import replace

from ..wire.syntax import ARGS, NAME, Dialect, JsonCall, Tagged, Thinking, Typed

VALUE = "</ifm|arg_value>\n"
XML = (
    "<ifm|tool_call>",
    NAME,
    "\n",
    Tagged("<ifm|arg_key>", "</ifm|arg_key>\n<ifm|arg_value>", VALUE),
    "</ifm|tool_call>",
)
TYPED = Typed("</ifm|arg_key>\n<ifm|arg_type>")
XML_TYPED = (
    "<ifm|tool_call>",
    NAME,
    "\n",
    Tagged("<ifm|arg_key>", "</ifm|arg_type>\n<ifm|arg_value>", VALUE, typed=TYPED),
    "</ifm|tool_call>",
)
JSON = ("<ifm|tool_call>", JsonCall(also=(("parameters", ARGS),)), "</ifm|tool_call>")

K2_HORIZON = Dialect(
    "k2-horizon",
    XML,
    open="<ifm|tool_calls>\n",
    between="\n",
    close="\n</ifm|tool_calls>",
    before="\n",
    forms=(XML_TYPED, JSON),
    thinking=Thinking("<ifm|think>\n", "</ifm|think>\n"),
    frame=("<|ifm|im_end|>",),
    stop=("<|ifm|im_end|>",),
    control=("<|ifm|begin_of_text|>", "<|ifm|im_start|>", "<|ifm|im_end|>"),
    models=("k2-horizon", "k2-v3"),
)

K2_HORIZON_TYPED = replace(K2_HORIZON, name="k2-horizon-typed", call=XML_TYPED, forms=(XML, JSON), models=())
