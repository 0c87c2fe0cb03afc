"""Beam: messages as in harmony, with each argument as `<rfl:parameter name="..">`."""

from ..wire.dialect import NAME, Dialect, Header, Tagged

BEAM = Dialect(
    "beam",
    (Tagged('<rfl:parameter name="', '">\n', "\n</rfl:parameter>"),),
    between="<|call|>",
    before="<|end|>",
    thinking=None,
    header=Header(
        "<|start|>assistant",
        "<|message|>",
        (("to=functions.", "call"), ("to=", "call"), ("analysis", "thought"), ("final", "text")),
        ends=("<|call|>", "<|end|>", "<|return|>"),
        also=("<|channel|>",),
        call=(" to=", NAME, "<|channel|>analysis <|constrain|>xml"),
        thought="<|channel|>analysis",
        text="<|channel|>final",
        end="<|call|>",
    ),
    stop=("<|call|>", "<|return|>"),
    control=("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>"),
    models=("/beam",),
)
