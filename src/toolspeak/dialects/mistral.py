"""Mistral: a JSON list after `[TOOL_CALLS]` (tokenizers v2 to v7), or name, id and arguments, each after a marker."""

from dataclasses import replace

from ..wire.dialect import ARGS, ID, NAME, Dialect, JsonCall, Maybe, Thinking
from ._json import ALSO, JSON, LIST

LISTED = JsonCall((("name", NAME), ("arguments", ARGS), ("id", ID)), ALSO)
CONTROL = (
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CONTENT]",
    "<s>",
    "</s>",
)
ARGS_MARK = Maybe(("[ARGS]",), written=True)
PLAIN = (NAME, Maybe(("[CALL_ID]", ID)), ARGS_MARK, JSON)

MISTRAL_V3 = Dialect(
    "mistral-v3",
    (LISTED,),
    open="[TOOL_CALLS] ",
    items=LIST,
    forms=(PLAIN, (LISTED,)),
    thinking=None,
    frame=("</s>",),
    stop=("</s>",),
    control=CONTROL,
    id_length=9,
    models=(
        *("mistral-7b", "mistral-large-2407", "mistral-large-instruct-2407", "mixtral", "codestral"),
        *("mistral-small-2409", "mistral-small-instruct-2409", "mistral-small:22b"),
        *("mistral-large-2402?", "mistral-small-2402?"),
        "mistral?",  # on Ollama, Mistral 7B
    ),
)

MISTRAL_NEMO = replace(
    MISTRAL_V3,
    name="mistral-nemo",
    open="[TOOL_CALLS]",
    models=(
        *("mistral-nemo", "ministral-8b", "pixtral", "mistral-large-2411", "mistral-large-instruct-2411"),
        *("mistral-small-24b", "mistral-small-2501", "mistral-small-2503"),
        *("mistral-small-3.1", "mistral-small-3"),
        "voxtral-mini-3b",
        "mistral-small?",
        "mistral-large?",
        "voxtral?",
    ),
)

MISTRAL_V11 = Dialect(
    "mistral-v11",
    ("[TOOL_CALLS]", NAME, Maybe(("[CALL_ID]", ID), written=True), ARGS_MARK, JSON),
    forms=(("[TOOL_CALLS]", LISTED),),
    frame=("</s>",),
    stop=("</s>",),
    control=CONTROL,
    id_length=9,
    models=(
        *("mistral-small-3.2", "mistral-small-2506", "magistral-small-2506", "mistral-medium"),
        *("devstral-small-2505", "devstral-small-1.0"),
    ),
)

MISTRAL_V13 = replace(
    MISTRAL_V11,
    name="mistral-v13",
    call=("[TOOL_CALLS]", *PLAIN),
    thinking=Thinking("[THINK]", "[/THINK]"),
    models=(
        *("devstral", "magistral", "ministral-3", "mistral-large-3", "mistral-small-4", "mistral-large-2512"),
        *("ministral-3b-2512", "ministral-8b-2512", "ministral-14b"),
        *("mistral-small-2603", "ministral?", "mistral-large-4?"),
    ),
)
