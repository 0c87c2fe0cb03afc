"""Dots: `<dots_function_call>` around invocations as in Claude 2, or around one JSON object."""

from ..wire.dialect import ARGS, NAME, Dialect, JsonCall, Tagged

DOTS = Dialect(
    "dots",
    ('<invoke name="', NAME, '">\n', Tagged('<parameter name="', '">', "</parameter>\n"), "</invoke>"),
    open="<dots_function_call>\n",
    between="\n",
    close="\n</dots_function_call>",
    before="\n",
    forms=((JsonCall(also=(("parameters", ARGS),)),),),
    models=("dots.llm", "dots-3", "/dots"),
)
