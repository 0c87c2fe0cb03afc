"""Step-Audio 2: `<tool_call>function`, then the name and the arguments on a line each."""

from ..wire.dialect import NAME, Dialect
from ._json import JSON

STEP_AUDIO_2 = Dialect(
    "step-audio-2",
    ("<tool_call>function\n", NAME, "\n", JSON, "</tool_call>"),
    stop=("<|EOT|>",),
    control=("<|BOT|>", "<|EOT|>"),
    models=("step-audio-2",),
)
