"""Solar Open: id, name and arguments behind a mark each; ids of ten letters and digits."""

from ..wire.syntax import ID, NAME, Dialect, Thinking
from ._json import JSON

SOLAR_OPEN = Dialect(
    "solar-open",
    (
        "<|tool_call:begin|>",
        ID,
        "<|tool_call:name|>",
        NAME,
        "<|tool_call:args|>",
        JSON,
        "<|tool_call:end|>",
    ),
    open="<|tool_calls|>",
    close="<|calls|>",
    thinking=Thinking("<|think|>", "<|end|>"),
    frame=("<|begin|>assistant", "<|content|>", "<|end|>"),
    stop=("<|calls|>", "<|flush|>"),
    control=(
        "<|begin|>",
        "<|tools:begin|>",
        "<|tools:end|>",
        "<|tool:begin|>",
        "<|tool:end|>",
        "<|tool_response|>",
        "<|tool_response:begin|>",
        "<|tool_response:id|>",
        "<|tool_response:name|>",
        "<|tool_response:result|>",
        "<|tool_response:end|>",
        "<|flush|>",
    ),
    id_length=10,
    models=("solar-open",),
)
