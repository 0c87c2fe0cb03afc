"""Muse: a message to each tool, `to=name<|message|><atem:function_calls>..`; thoughts are addressed to the model
itself, text to the user."""

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Header, Results, Speech, Tagged, ToolJson

TOOLS_PROMPT = """\
In this environment you have access to a set of tools you can use to answer the user's question.

You can invoke a function by writing a "<atem:function_calls>" block like the following:
<atem:function_calls>
<atem:invoke name="$FUNCTION_NAME">
<atem:parameter name="$PARAMETER_NAME">$PARAMETER_VALUE</atem:parameter>
...
</atem:invoke>
</atem:function_calls>

String and scalar parameters should be specified as is, while lists and objects should use JSON format. Note that spaces for string values are not stripped. The output is not expected to be valid XML and is parsed with regular expressions.
Here are the functions available in JSONSchema format:
// Function schemas
"""
FORMAT_PROMPT = """

Here's an example of how to call a function in the tool set:
(If the tool namespace is not specified, invoke the function directly as `example_function_name` rather than `example_tool_name.example_function_name`)

to=example_tool_name.example_function_name

<atem:function_calls>
<atem:invoke name="example_tool_name.example_function_name">
<atem:parameter name="example_parameter_1">value_1</atem:parameter>
<atem:parameter name="example_parameter_2">This is the value for the second parameter
that can span
"multiple" lines
</atem:parameter>
</atem:invoke>
</atem:function_calls>"""

MUSE = Dialect(
    "muse",
    (
        '<atem:invoke name="',
        NAME,
        '">\n',
        Tagged('<atem:parameter name="', '">', "</atem:parameter>\n"),
        "</atem:invoke>",
    ),
    open="<atem:function_calls>\n",
    between="<|eom|>",
    close="\n</atem:function_calls>",
    thinking=None,
    header=Header(
        "<|start|>assistant",
        "<|message|>",
        (("to=self", "thought"), ("to=user", "text"), ("to=", "call")),
        ends=("<|eom|>", "<|eot|>"),
        call=(" to=", NAME),
        thought=" to=self",
        text=" to=user",
        end="<|eot|>",
    ),
    stop=("<|eot|>",),
    control=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>", "<tool_output", "</tool_output>"),
    models=("muse-glimmer", "muse-"),
    speech=Speech(
        (TOOLS_PROMPT, TOOLS, FORMAT_PROMPT),
        tools=ToolJson(lines=True),
        results=Results(each=('<tool_output name="', NAME, '">\n', RESULT, "\n</tool_output>")),
    ),
)
