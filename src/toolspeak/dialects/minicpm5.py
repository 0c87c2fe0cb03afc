"""MiniCPM 5: `<function name=".."><param name="..">`; a value with markup or line breaks is in CDATA."""

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Results, Speech, Tagged, ToolJson
from ._chatml import CHATML, CONTROL

TOOLS_PROMPT = """\
# Tools

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
FORMAT_PROMPT = """
</tools>

Tool usage guidelines:
- You may call zero or more functions. If no function calls are needed, just answer normally and do not include any <function ... </function>.
- When calling a function, return an XML object within <function ... </function> using:
<function name="function-name"><param name="param-name">param-value</param></function>
- param-value may be multi-line. If it contains <, & or newline characters, wrap it in a CDATA block: <param name="param-name"><![CDATA[...multi-line value...]]></param>"""

MINICPM5 = Dialect(
    "minicpm5",
    (
        '<function name="',
        NAME,
        '">',
        Tagged('<param name="', '">', "</param>", quote=("<![CDATA[", "]]>")),
        "</function>",
    ),
    between="\n",
    before="\n",
    stop=("<|im_end|>",),
    control=(*CONTROL, "<tool_response>", "</tool_response>"),
    models=("minicpm5",),
    speech=Speech(
        (TOOLS_PROMPT, TOOLS, FORMAT_PROMPT),
        tools=ToolJson(wrapped=True, lines=True),
        results=Results(each=("<tool_response>\n", RESULT, "\n</tool_response>")),
    ),
    layout=CHATML,
)
