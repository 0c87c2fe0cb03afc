"""LongCat Flash Lite: the tags of GLM 4.5 under names of their own; its elder writes JSON between the same markers."""

from ..wire.syntax import NAME, Dialect, JsonCall, Tagged, Thinking

LONGCAT_XML = Dialect(
    "longcat-xml",
    (
        "<longcat_tool_call>",
        NAME,
        "\n",
        Tagged(
            "<longcat_arg_key>",
            "</longcat_arg_key>\n<longcat_arg_value>",
            "</longcat_arg_value>\n",
        ),
        "</longcat_tool_call>",
    ),
    between="\n",
    before="\n",
    forms=(("<longcat_tool_call>\n", JsonCall(), "\n</longcat_tool_call>"),),
    thinking=Thinking("<longcat_think>\n", "\n</longcat_think>\n"),
    stop=("</longcat_s>",),
    control=("<longcat_s>", "</longcat_s>", "<longcat_tool_response>", "</longcat_tool_response>"),
    models=("longcat-flash-lite",),
)
