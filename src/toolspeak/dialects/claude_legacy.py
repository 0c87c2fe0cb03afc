"""Claude 2, and models prompted in its format: `<function_calls><invoke name=".."><parameter name="..">`."""

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Results, Speech, Tagged, Thinking, ToolJson

TOOLS_PROMPT = """\
In this environment you have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<function_calls>" block like the following as part of your reply to the user:
<function_calls>
<invoke name="$FUNCTION_NAME">
<parameter name="$PARAMETER_NAME">$PARAMETER_VALUE</parameter>
...
</invoke>
</function_calls>

String and scalar parameters should be specified as is, while lists and objects should use JSON format.

Here are the functions available in JSONSchema format:
<functions>
"""

CLAUDE_LEGACY = Dialect(
    "claude-legacy",
    ('<invoke name="', NAME, '">\n', Tagged('<parameter name="', '">', "</parameter>\n"), "</invoke>"),
    open="<function_calls>\n",
    between="\n",
    close="\n</function_calls>",
    before="\n",
    thinking=Thinking("<thinking>", "</thinking>"),
    control=("<function_results>", "</function_results>"),
    models=("claude-2", "claude-instant"),
    speech=Speech(
        (TOOLS_PROMPT, TOOLS, "\n</functions>"),
        tools=ToolJson(lines=True),
        results=Results(
            each=("<result>\n<name>", NAME, "</name>\n<output>", RESULT, "</output>\n</result>"),
            open="<function_results>\n",
            close="\n</function_results>",
        ),
    ),
)
