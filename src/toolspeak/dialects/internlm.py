"""InternLM 2, 2.5 and 3, Intern-S1: an object between plugin markers, with the arguments under the key `parameters`."""

from dataclasses import replace

from ..wire.dialect import RESULT, Dialect, Results, Speech
from ._chatml import CHATML, CONTROL
from ._json import PARAMETERS

INTERNLM2 = Dialect(
    "internlm2",
    ("<|action_start|><|plugin|>\n", PARAMETERS, "<|action_end|>"),
    forms=((PARAMETERS,), ("<|action_start|> <|plugin|>\n", PARAMETERS, "<|action_end|>")),
    stop=("<|im_end|>",),
    control=(*CONTROL, "<|interpreter|>"),
    models=("internlm2", "internlm3", "intern-s1"),
    speech=Speech(native_results=Results("environment name=<|plugin|>", (RESULT,), grouped=False)),
    layout=replace(CHATML, bos="<s>"),
)
