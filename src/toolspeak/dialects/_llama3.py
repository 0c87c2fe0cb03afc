"""Turn layout, control tokens and the JSON form of a call that Llama models share."""

from ..wire.dialect import ARGS, CALL, ID, NAME, JsonCall, Kind, Layout

CONTROL = (
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|python_tag|>",
)
LLAMA3 = Layout(("<|start_header_id|>", "<|end_header_id|>\n\n"), "<|eot_id|>", bos="<|begin_of_text|>")
JSON_CALL = JsonCall(
    (("name", NAME), ("parameters", ARGS)),
    (
        ("type", Kind("function")),
        ("function", CALL),
        ("arguments", ARGS),
        ("args", ARGS),
        ("id", ID),
    ),
)
