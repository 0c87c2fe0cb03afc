"""Step 3: `<steptml:invoke name="..">` after the markers of an early DeepSeek, written with plain underscores."""

from ..wire.dialect import NAME, Dialect, Maybe, Tagged

STEP3 = Dialect(
    "step3",
    (
        "<｜tool_call_begin｜>",
        Maybe(("function<｜tool_sep｜>",), written=True),
        '<steptml:invoke name="',
        NAME,
        '">',
        Tagged('<steptml:parameter name="', '">', "</steptml:parameter>"),
        "</steptml:invoke><｜tool_call_end｜>",
    ),
    open="<｜tool_calls_begin｜>",
    close="<｜tool_calls_end｜>",
    stop=("<|EOT|>",),
    control=(
        *("<|BOT|>", "<|EOT|>", "<｜tool_outputs_begin｜>", "<｜tool_outputs_end｜>"),
        *("<｜tool_output_begin｜>", "<｜tool_output_end｜>"),
    ),
    models=("step-3",),
)
