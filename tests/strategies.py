"""The specification of how models are asked: a row a situation. `tests/models/test_strategy.py` holds the code to it, and
`docs/how-to/models.md` prints it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A template that knows no tools."""
HERMES = (
    "{% if tools %}<|im_start|>system\n{{ tools|tojson }}<|im_end|>\n{% endif %}{% for m in messages %}<|im_start|>"
    "{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function|tojson }}\n</tool_call>"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A template that writes calls as hermes does."""


@dataclass(frozen=True)
class Case:
    """What a model is and what is known of it, in words and as data, and how it is `asked` then.

    `file` is the head of a GGUF file: name, template, parameters. `server` is what a server was seen to do, by the names of
    a probe; None is one that nobody has looked at. `wants` is what the user says.
    """

    model: str
    known: str
    asked: str
    why: str
    file: tuple[str, str, int] | None = None
    server: Mapping[str, Any] | None = None
    wants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    name: str = "mine"


def seen(tools: str, evidence: str = "", **more: Any) -> dict[str, Any]:
    """What was seen of a server, whose chat works and which continues prompts unless more says otherwise."""
    return {"tools": (tools, evidence), "chat": ("yes", ""), "completions": ("yes", ""), **more}


NO = "this model does not support tools"
TAKES_NONE = f"tools go into the prompt, because none reach the model otherwise: {NO}"
SMALL = "it has 350 million parameters, fewer than 500, and its template has no place for tools"

CASES = (
    Case("the embedded model", "", "scored", "the embedded model was not trained on tools"),
    Case("a GGUF file", "template of hermes, 3B", "prompted in hermes by its chat template",
         "its template identifies the dialect", file=("mine", HERMES, 3_000_000_000)),
    Case("a GGUF file", "template of hermes, 350M", "prompted in hermes by its chat template",
         "its template identifies the dialect", file=("mine", HERMES, 350_000_000)),
    Case("a GGUF file", "template without tools, named SmolLM3-3B", "prompted in hermes in messages",
         "its name, SmolLM3-3B, identifies the dialect", file=("SmolLM3-3B", CHATML, 3_000_000_000)),
    Case("a GGUF file", "template without tools, named LFM2.5-1.2B", "prompted in lfm2 in messages",
         "its name, LFM2.5-1.2B, identifies the dialect", file=("LFM2.5-1.2B", CHATML, 1_200_000_000)),
    Case("a GGUF file", "template without tools, 3B", "prompted in tool-json in messages",
         "its dialect is unknown", file=("mine", CHATML, 3_000_000_000)),
    Case("a GGUF file", "template without tools, 500M", "prompted in tool-json in messages",
         "its dialect is unknown", file=("mine", CHATML, 500_000_000)),
    Case("a GGUF file", "template without tools, 350M", "scored", SMALL, file=("mine", CHATML, 350_000_000)),
    Case("a GGUF file", "no template, 3B", "prompted in tool-json in messages",
         "its dialect is unknown", file=("mine", "", 3_000_000_000)),
    Case("a GGUF file", "template of hermes; with `dialect=\"react\"`", "prompted in react in messages",
         "the dialect was given", file=("mine", HERMES, 3_000_000_000), wants={"dialect": "react"}),
    Case("a GGUF file", "template of hermes; with `way=\"scored\"`", "scored",
         "it was chosen", file=("mine", HERMES, 3_000_000_000), wants={"way": "scored"}),
    Case("a GGUF file", "template without tools, 350M; with `way=\"prompted\"`", "prompted in tool-json in messages",
         "its dialect is unknown", file=("mine", CHATML, 350_000_000), wants={"way": "prompted"}),
    Case("a server", "nothing", "native", "its API has tools; whether the model gets them was not checked yet"),
    Case("a server", "it takes tools", "native", "called get_weather", server=seen("yes", "called get_weather")),
    Case("a server", "it refuses tools", "prompted in tool-json in messages",
         f"its dialect is unknown; {TAKES_NONE}", server=seen("no", NO)),
    Case("a server", "it refuses tools, model Qwen2.5-7B-Instruct", "prompted in hermes in messages",
         f"its name, Qwen2.5-7B-Instruct, identifies the dialect; {TAKES_NONE}", server=seen("no", NO),
         name="Qwen2.5-7B-Instruct"),
    Case("a server", "it refuses tools and reports a template of hermes", "prompted in hermes by its chat template",
         f"its template identifies the dialect; {TAKES_NONE}", server=seen("no", NO, template=HERMES)),
    Case("a server", "the same, and it does not complete prompts", "prompted in hermes in messages",
         f"its template identifies the dialect; {TAKES_NONE}",
         server=seen("no", NO, template=HERMES, completions=("no", ""))),
    Case("a server", "it refuses tools, reports likelihoods, size unknown", "prompted in tool-json in messages",
         f"its dialect is unknown; {TAKES_NONE}", server=seen("no", NO, template=CHATML, score_way="forced")),
    Case("a server", "the same, 8B", "prompted in tool-json in messages", f"its dialect is unknown; {TAKES_NONE}",
         server=seen("no", NO, template=CHATML, score_way="forced", parameters=8_000_000_000)),
    Case("a server", "the same, 350M", "scored", SMALL,
         server=seen("no", NO, template=CHATML, score_way="forced", parameters=350_000_000)),
    Case("a server", "it refuses tools and reports a template of hermes, 350M", "prompted in hermes by its chat template",
         f"its template identifies the dialect; {TAKES_NONE}",
         server=seen("no", NO, template=HERMES, score_way="forced", parameters=350_000_000)),
    Case("a server", "it takes tools, reports likelihoods, 350M", "native", "called get_weather",
         server=seen("yes", "called get_weather", score_way="forced", parameters=350_000_000)),
    Case("a server", "it only completes prompts", "prompted in tool-json by an exact prompt",
         "its dialect is unknown; tools go into the prompt, because none reach the model otherwise: it does not answer chat requests",
         server=seen("no", "it does not answer chat requests", chat=("no", ""))),
)  # fmt: skip


def header(path: Path, name: str, template: str, parameters: int) -> Path:
    """Writes the head of a GGUF file, with one tensor of so many numbers and no data."""

    def text(value: str) -> bytes:
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    pairs = {"general.architecture": "llama", "general.name": name, "tokenizer.chat_template": template}
    data = b"GGUF" + struct.pack("<IQQ", 3, 2, len(pairs))
    for key, value in pairs.items():
        data += text(key) + struct.pack("<I", 8) + text(value)
    half = parameters // 2
    for tensor, shape in (("a.weight", (half // 1000, 1000)), ("b.weight", (parameters - half,))):
        data += text(tensor) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 2, 0)
    path.write_bytes(data)
    return path
