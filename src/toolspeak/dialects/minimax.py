"""MiniMax M2: `<invoke name=".."><parameter name="..">`; M3: a tree of elements, each behind a mark of its own."""

from ..wire.syntax import NAME, Dialect, Tagged, Thinking, Tree

TURNS = ("]~!b[", "]~b]", "[e~[", "<response>", "</response>")

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
)
