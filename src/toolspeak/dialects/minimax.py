"""MiniMax M2: `<invoke name=".."><parameter name="..">`; M3: a tree of elements, each after a marker."""

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Results, Speech, Tagged, Thinking, ToolJson, Tree

TURNS = ("]~!b[", "]~b]", "[e~[", "<response>", "</response>")

TOOLS_PROMPT = """\
# Tools
You may call one or more tools to assist with the user query.
Here are the tools available in JSONSchema format:

<tools>
"""
FORMAT_PROMPT = """
</tools>

When making tool calls, use XML format to invoke tools and pass parameters:

<minimax:tool_call>
<invoke name="tool-name-1">
<parameter name="param-key-1">param-value-1</parameter>
<parameter name="param-key-2">param-value-2</parameter>
...
</invoke>
</minimax:tool_call>"""
FORMAT_PROMPT_M3 = """
</tools>

To call tools, wrap all invocations in a single ]<]minimax[>[<tool_call>]<]minimax[>[</tool_call> block. Parameter values containing nested objects or arrays are recursively expanded into XML elements. Example:

]<]minimax[>[<tool_call>
]<]minimax[>[<invoke name="tool-name-1">]<]minimax[>[<param-1>value-1]<]minimax[>[</param-1>]<]minimax[>[<param-2>]<]minimax[>[<item>]<]minimax[>[<key-a>val-a]<]minimax[>[</key-a>]<]minimax[>[<key-b>val-b]<]minimax[>[</key-b>]<]minimax[>[</item>]<]minimax[>[</param-2>]<]minimax[>[</invoke>
]<]minimax[>[<invoke name="tool-name-2">]<]minimax[>[<param-1>value-1]<]minimax[>[</param-1>]<]minimax[>[</invoke>
]<]minimax[>[</tool_call>"""
JSON_LINES = ToolJson(lines=True)
RESULTS = Results(each=("<response>", RESULT, "</response>"))

MINIMAX_M2 = Dialect(
    "minimax-m2",
    ('<invoke name="', NAME, '">\n', Tagged('<parameter name="', '">', "</parameter>\n"), "</invoke>"),
    open="<minimax:tool_call>\n",
    between="\n",
    close="\n</minimax:tool_call>",
    before="\n",
    frame=("[e~[",),
    stop=("[e~[",),
    control=TURNS,
    models=("minimax-m2",),
    thinkers=("minimax-m2",),
    speech=Speech((TOOLS_PROMPT, TOOLS, FORMAT_PROMPT), tools=JSON_LINES, results=RESULTS),
)

MINIMAX_M3 = Dialect(
    "minimax-m3",
    (']<]minimax[>[<invoke name="', NAME, '">', Tree("]<]minimax[>["), "]<]minimax[>[</invoke>"),
    open="]<]minimax[>[<tool_call>\n",
    between="\n",
    close="\n]<]minimax[>[</tool_call>",
    thinking=Thinking("<mm:think>", "</mm:think>"),
    frame=("[e~[",),
    stop=("[e~[",),
    control=(*TURNS, "]<]minimax[>["),
    models=("minimax-m3",),
    speech=Speech((TOOLS_PROMPT, TOOLS, FORMAT_PROMPT_M3), tools=JSON_LINES, results=RESULTS),
)
