"""MiniCPM 5: `<function name=".."><param name="..">`, a value that has markup or line breaks in CDATA."""

from ..wire.syntax import NAME, Dialect, Tagged

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
    control=("<|im_start|>", "<|im_end|>", "<tool_response>", "</tool_response>"),
    models=("minicpm5", "minicpm-5"),
)
