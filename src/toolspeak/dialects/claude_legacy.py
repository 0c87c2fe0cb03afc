"""Claude 2 and models prompted as it was: `<function_calls><invoke name=".."><parameter name="..">`."""

from ..wire.syntax import NAME, Dialect, Tagged, Thinking

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
)
