"""The marks of the end of a turn that a reply may end with, of all families.

A server that does not know the token with which its model ends a turn leaves it in the text: `Sunny.<|im_end|>`. A dialect
drops its own (see `Dialect.stop`). The others are dropped at the end of a text (`plan.end_marks`), and are no part of an
argument that nothing closes.
"""

from __future__ import annotations

TURN_ENDS = (
    *("</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>"),
    *("<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>"),
)
"""The marks that are no part of a call, a thought or the head of a message in any dialect."""
