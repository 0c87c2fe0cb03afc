"""Turn layout and control tokens shared by Llama 3 models. It holds no call format."""

from ..wire.dialect import Layout

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
