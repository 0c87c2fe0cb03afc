"""The layout of turns that many families share, ChatML."""

from ..wire.dialect import Layout

CONTROL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
CHATML = Layout(("<|im_start|>", "\n"), "<|im_end|>\n", strip=False)
