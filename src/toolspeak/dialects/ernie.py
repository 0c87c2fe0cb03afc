"""ERNIE 4.5, thinking: calls as in Hermes, the answer between `<response>` tags."""

from ..wire.dialect import RESULT, Dialect, Results, Speech
from ._json import BARE, JSON_CALL

ERNIE45 = Dialect(
    "ernie45",
    ("<tool_call>\n", JSON_CALL, "\n</tool_call>"),
    between="\n",
    before="\n",
    forms=BARE,
    frame=("<response>\n", "\n</response>\n"),
    stop=("</s>",),
    control=("<|im_start|>", "<|im_end|>", "<tool_output>", "</tool_output>", "<s>", "</s>"),
    speech=Speech(results=Results("user", ("<tool_output>\n", RESULT, "\n</tool_output>"))),
    models=("ernie-4.5",),
    thinkers=("thinking",),
)
