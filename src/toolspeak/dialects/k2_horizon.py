"""K2 Horizon: keys and values in `<ifm|..>` tags, with or without the type of each value, or JSON.

`k2-horizon` writes the types and reads all three forms; `k2-horizon-xml` is the default of the model's template.
"""

from dataclasses import replace

from ..wire.dialect import ARGS, NAME, TOOLS, Dialect, JsonCall, Speech, Tagged, Thinking, ToolJson, Typed

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

TOOLS_PROMPT = """\
# Tools
You may call one or more tools to assist with the user query.

Available tools are:

"""
FORMAT_PROMPT = """

When calling tools, you MUST follow the tool-call format below:

Wrap all tool calls in a single <ifm|tool_calls></ifm|tool_calls> block. For each call, write the function name at the start of <ifm|tool_call>, followed by """
EXAMPLE_PROMPT = """\
paired <ifm|arg_key> and <ifm|arg_value> tags for each argument:

<ifm|tool_calls>
<ifm|tool_call>$FUNCTION_NAME
<ifm|arg_key>$PARAMETER_NAME</ifm|arg_key>
<ifm|arg_value>$PARAMETER_VALUE</ifm|arg_value>
...
</ifm|tool_call>
</ifm|tool_calls>

"""
EXAMPLE_PROMPT_TYPED = """\
<ifm|arg_key>, <ifm|arg_type>, and <ifm|arg_value> tags for each argument:

<ifm|tool_calls>
<ifm|tool_call>$FUNCTION_NAME
<ifm|arg_key>$PARAMETER_NAME</ifm|arg_key>
<ifm|arg_type>$ARGUMENT_TYPE</ifm|arg_type>
<ifm|arg_value>$PARAMETER_VALUE</ifm|arg_value>
...
</ifm|tool_call>
</ifm|tool_calls>

Use the parameter type shown in the tool definition. If that type contains anyOf or oneOf, use the actual argument value type instead. """
RULES = (
    "String and scalar parameters should be written as plain text. Array and object parameters should be written as"
    " JSON literals."
)

K2_HORIZON = Dialect(
    "k2-horizon",
    XML_TYPED,
    open="<ifm|tool_calls>\n",
    between="\n",
    close="\n</ifm|tool_calls>",
    before="\n",
    forms=(JSON,),
    thinking=Thinking("<ifm|think>\n", "</ifm|think>\n", also=("<ifm|think_fast>", "<ifm|think_faster>")),
    frame=("<|ifm|im_end|>",),
    stop=("<|ifm|im_end|>",),
    control=("<|ifm|begin_of_text|>", "<|ifm|im_start|>", "<|ifm|im_end|>"),
    models=("k2-horizon", "k2-v3"),
    speech=Speech((TOOLS_PROMPT, TOOLS, f"{FORMAT_PROMPT}{EXAMPLE_PROMPT_TYPED}{RULES}"), tools=ToolJson(lines=True)),
)

K2_HORIZON_XML = replace(
    K2_HORIZON,
    name="k2-horizon-xml",
    call=XML,
    models=(),
    speech=Speech((TOOLS_PROMPT, TOOLS, f"{FORMAT_PROMPT}{EXAMPLE_PROMPT}{RULES}"), tools=ToolJson(lines=True)),
)
