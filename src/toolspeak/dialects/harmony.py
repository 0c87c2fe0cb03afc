"""Harmony, gpt-oss: messages on channels; a call is a message whose recipient is a tool."""

from ..wire.dialect import NAME, Dialect, Header, Maybe
from ._json import JSON

HARMONY = Dialect(
    "harmony",
    (JSON,),
    between="<|call|>",
    forms=tuple(  # what is left after an engine has removed the special tokens
        (f"assistant{channel} to=functions.", NAME, Maybe((" json",)), Maybe((" code",)), JSON)
        for channel in ("commentary", "analysis")
    ),
    before="<|end|>",
    thinking=None,
    header=Header(
        "<|start|>assistant",
        "<|message|>",
        (
            ("to=functions.", "call"),
            ("to=assistant<|channel|>analysis", "thought"),
            ("to=assistant", "text"),
            ("to=user", "text"),
            ("to=all", "text"),
            ("to=", "call"),
            ("analysis", "thought"),
            ("final", "text"),
            ("commentary", "text"),
        ),
        ("<|end|>", "<|return|>", "<|call|>"),
        ("<|channel|>",),
        ("<|channel|>commentary to=functions.", NAME, " <|constrain|>json"),
        "<|channel|>analysis",
        "<|channel|>final",
        "<|call|>",
    ),
    stop=("<|return|>", "<|call|>"),
    control=("<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|startoftext|>", "<|endoftext|>"),
    models=("gpt-oss",),
)
