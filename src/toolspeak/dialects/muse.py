"""Muse: a message to each tool, `to=name<|message|><atem:function_calls>..`; thoughts go to itself, text to the user."""

from ..wire.syntax import NAME, Dialect, Header, Tagged

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
)
