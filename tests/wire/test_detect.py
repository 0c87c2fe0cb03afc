"""Which dialect a model speaks: by its template, by its name, and what is said where neither tells."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from hypothesis import strategies as st

import toolspeak as ts
from cost import costs_at_most
from properties import property_test
from toolspeak.dialects import get
from toolspeak.errors import TemplateError, ToolspeakError, UnknownDialect
from toolspeak.wire.detect import by_template, detect
from toolspeak.wire.finding.drafting import draft, reads
from toolspeak.wire.finding.probe import BOTH, call, probe
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.prompt.template_capabilities import abilities, speaks
from toolspeak.wire.render import render

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "templates"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the folder shared/templates is not beside the checkout")

TURNS = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.content %}{{ m.content }}{% endif %}{% for c in m.tool_calls or [] %}CALL{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
HERMES_CALL = """
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>"""
OWN_CALL = """<go f="{{ c.function.name }}">{{ c.function.arguments | tojson }}</go>"""
NO_CALLS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"

TEMPLATES = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "Bielik-11B-v3.0-Instruct": "bielik",
    "ByteDance-Seed-OSS": "seed-oss",
    "Cohere2MoE": "command-r7b cohere2-moe",
    "CohereForAI-c4ai-command-r-plus-tool_use": "command-r-plus",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "command-r7b cohere2-moe",
    "GLM-4.6": "glm45",
    "GLM-4.7-Flash": "glm47",
    "GigaChat3-10B-A1.8B": "gigachat3",
    "GigaChat3.1-10B-A1.8B": "gigachat3.1",
    "Kimi-K2-Instruct": "kimi-k2",
    "Kimi-K2-Thinking": "kimi-k2",
    "Kimi-K3": "kimi-k3",
    "LFM2-8B-A1B": "lfm2",
    "LFM2.5-8B-A1B": "lfm2",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax-m1",
    "MiniMax-M2": "minimax-m2",
    "MiniMax-M3": "minimax-m3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral-v11",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-3",
    "NVIDIA-Nemotron-Nano-v2": "nemotron-nano-v2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3-coder",
    "Qwen3.5-4B": "qwen3-coder",
    "Reka-Edge": "reka",
    "Spark2.5": "spark-2.5",
    "StepFun3.5-Flash": "step-3.5",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek-v3",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-v3",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v31",
    "deepseek-ai-DeepSeek-V3.2": "deepseek-dsml",
    "deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek-v4",
    "fireworks-ai-llama-3-firefunction-v2": "functools",
    "google-gemma-4-31B-it": "gemma4",
    "google-gemma-4-31B-it-interleaved": "gemma4",
    "ibm-granite-granite-3.3-2B-Instruct": "granite3",
    "ibm-granite-granite-4.0": "granite4",
    "ibm-granite-granite-4.1": "granite4",
    "inclusionai-ling-3.0-flash": "ling-3",
    "llama-cpp-deepseek-r1": "deepseek-v3",
    "meetkai-functionary-medium-v3.1": "functionary-v31",
    "meetkai-functionary-medium-v3.2": "functionary-v3",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3-json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3-json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3-json",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral-v13",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral-nemo",
    "moonshotai-Kimi-K2": "kimi-k2",
    "muse-glimmer": "muse",
    "openai-gpt-oss-120b": "harmony",
    "openbmb-MiniCPM5-1B": "minicpm5",
    "poolside-Laguna-S-2.1": "laguna",
    "poolside-Laguna-XS-2.1": "laguna-xs",
    "poolside-Laguna-XS.2": "laguna-xs",
    "seed-firefunction-v2": "functools",
    "tencent-Hy3": "hy-v3-opensource",
    "unsloth-Apriel-1.5": "apriel1.5",
    "unsloth-mistral-Devstral-Small-2507": "mistral-v13",
    "upstage-Solar-Open-100B": "solar-open",
}
"""Template -> the dialect that it writes; two names where both are one wire."""

SILENT = {
    "HuggingFaceTB-SmolLM3-3B": "it writes no calls and no marker of any",
    "LFM2.5-Instruct": "it writes no calls and no marker of any",
    "google-gemma-2-2b-it": "it knows no tools",
    "llama-cpp-rwkv-world": "it knows no tools",
    "microsoft-Phi-3.5-mini-instruct": "it knows no tools",
}
"""Templates that tell no dialect, and why."""


def text_of(name: str) -> str:
    return (SHARED / f"{name}.jinja").read_text("utf-8")


@needs_shared
def test_each_real_template_has_a_row() -> None:
    assert {path.stem for path in SHARED.glob("*.jinja")} == {*TEMPLATES, *SILENT}


@needs_shared
@pytest.mark.parametrize("name", TEMPLATES)
def test_real_templates_tell_their_dialect(name: str) -> None:
    found = detect(text_of(name))
    assert found.name in TEMPLATES[name].split()
    assert found.origin in ("by its chat template", "by the words of its chat template")


@needs_shared
@pytest.mark.parametrize("name", SILENT)
def test_templates_that_tell_nothing_are_told_as_such(name: str) -> None:
    assert by_template(text_of(name)) is None
    assert detect(text_of(name)).origin == "by default: its chat template identifies no dialect"


def test_a_template_is_known_by_what_it_writes() -> None:
    found = detect(TURNS.replace("CALL", HERMES_CALL))
    assert (found, found.origin) == (get("hermes"), "by its chat template")
    found = detect(TURNS.replace("CALL", OWN_CALL))
    assert (found.name, found.origin) == ("drafted", "drafted from its chat template")
    found = detect("{{ broken <tool_call> </tool_call>")
    assert (found.name, found.origin) == ("hermes", "by the words of its chat template")


def test_a_template_is_believed_more_than_a_name() -> None:
    assert detect(TURNS.replace("CALL", OWN_CALL), "Qwen/Qwen2.5-7B-Instruct").name == "drafted"
    assert detect(TURNS.replace("CALL", HERMES_CALL), "gpt-oss-20b").name == "hermes"
    assert detect(NO_CALLS, "gpt-oss-20b").name == "harmony"


def test_of_dialects_with_one_wire_the_model_s_name_tells_which() -> None:
    template = TURNS.replace("CALL", HERMES_CALL)
    assert detect(template, "ibm-granite/granite-4.0-h-tiny").name == "granite4"
    assert detect(template, "nobody/knows-it").name == "hermes"


@pytest.mark.parametrize(
    ("template", "model", "origin"),
    [
        (NO_CALLS, None, "by default: its chat template identifies no dialect"),
        (None, "nobody/knows-it", "by default: its name, nobody/knows-it, identifies no dialect"),
        (
            NO_CALLS,
            "nobody/knows-it",
            "by default: its chat template and its name, nobody/knows-it, identify no dialect",
        ),
    ],
)
def test_without_any_sign_it_is_the_dialect_for_any_model(template: str | None, model: str | None, origin: str) -> None:
    found = detect(template, model)
    assert (found, found.origin) == (get("tool-json"), origin)


@pytest.mark.parametrize(("template", "model"), [(None, None), ("", ""), (None, "")])
def test_nothing_tells_nothing(template: str | None, model: str | None) -> None:
    with pytest.raises(UnknownDialect, match="expected a chat template, a model's name or a response template"):
        detect(template, model)


def test_a_response_template_is_believed_first() -> None:
    told = {
        "start_anchor": "<|bot|>",
        "fields": {
            "tool_calls": {
                "open": "<call>",
                "close": "</call>",
                "content": "json",
                "transform": {"type": "function", "function": "{content}"},
            }
        },
    }
    found = ts.detect(TURNS.replace("CALL", HERMES_CALL), "gpt-oss-20b", response_template=told)
    assert found.origin == "declared by its response template"
    reply = ts.parse('<call>{"name": "f", "arguments": {"a": 1}}</call>', found)
    assert [(c.name, c.arguments) for c in reply.calls] == [("f", {"a": 1})]
    with pytest.raises(TemplateError, match=r"fields.*tool_calls"):
        ts.detect(response_template={"fields": {"content": {}}})


# ---------------------------------------------------------------------------- the oracle: data against templates

DIFFERS = {
    "Apriel-1.6-15b-Thinker-fixed": "it writes ids of calls in earlier turns only",
    "GigaChat3-10B-A1.8B": "of two calls it writes the first",
    "GigaChat3.1-10B-A1.8B": "of two calls it writes the first",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "it closes the section only behind a second call",
    "meta-llama-Llama-3.1-8B-Instruct": "it refuses two calls",
    "meta-llama-Llama-3.2-3B-Instruct": "it refuses two calls",
    "meta-llama-Llama-3.3-70B-Instruct": "it refuses two calls",
    "openai-gpt-oss-120b": "it writes the name in the role, the model in the channel; of two calls it writes the first",
    "unsloth-Apriel-1.5": "it writes ids of calls in earlier turns only",
    "upstage-Solar-Open-100B": "it writes ids of any length",
}
"""Templates whose text is not, byte for byte, what the dialect writes for the same calls, and why. It only shrinks."""


@needs_shared
def test_the_dialect_writes_what_the_template_writes() -> None:
    wrong: set[str] = set()
    for name in TEMPLATES:
        if p := probe(text_of(name)):
            d = detect(text_of(name))
            for calls in ([BOTH], [call(), call(1)]):
                if write_calls(calls, d).strip() not in p.show(*calls):
                    wrong.add(name)
    assert wrong == set(DIFFERS)


THINKS = {
    "muse-glimmer": "a thought is a message of its own: its head says so",
    "openai-gpt-oss-120b": "a thought is a message of its own: its head says so",
    "unsloth-Apriel-1.5": "it writes earlier thoughts in marks of their own",
}
"""Templates whose thoughts a draft reads off otherwise than the dialect has them, and why. It only shrinks."""


@needs_shared
def test_drafts_and_dialects_agree_on_thoughts() -> None:
    wrong: set[str] = set()
    for name in TEMPLATES:
        found, d = draft(text_of(name)), detect(text_of(name))
        marks = [(t.open.strip(), t.close.strip()) if (t := each.thinking) else None for each in (found or d, d)]
        if marks[0] not in (None, marks[1]):
            wrong.add(name)
    assert wrong == set(THINKS)


@needs_shared
def test_a_template_with_tools_speaks_its_dialect_itself() -> None:
    """So that a prompt is told by the template alone, not in words beside it."""
    for name in TEMPLATES:
        known = abilities(text_of(name))
        if known.tools and known.calls and known.results:
            assert speaks(text_of(name), detect(text_of(name))), name


@needs_shared
def test_drafts_alone_read_what_their_templates_write(capsys: pytest.CaptureFixture[str]) -> None:
    """Fingerprints apart: of how many real templates is a draft made that reads the template's own calls."""
    able = [name for name in TEMPLATES if probe(text_of(name))]
    good: list[str] = []
    for name in able:
        p, d = probe(text_of(name)), draft(text_of(name))
        assert p
        calls = (call(), call(1))
        several = all(c.name in p.show(*calls).rpartition("question")[2] for c in calls)
        if d and reads(p, d) and reads(p, d, call(0, first_key='It\'s "so" <b>,\n {x} [1]')):
            good += [name] if not several or reads(p, d, *calls) else []
    with capsys.disabled():
        print(f"\n{len(good)} of {len(able)} drafts read their own templates")
    assert set(able) - set(good) == set()
    assert len(able) >= 60


@needs_shared
@pytest.mark.parametrize("name", ["Qwen3.5-4B", "google-gemma-4-31B-it", "Kimi-K3"])
def test_detection_costs_a_few_renderings(name: str) -> None:
    templates = (f"{text_of(name)}{{# {number} #}}" for number in count())  # what was read before is known
    d, messages = detect(text_of(name)), [{"role": "user", "content": "Hi"}]

    def rendering() -> None:
        render(messages, (), d, template=next(templates))

    assert costs_at_most(30, lambda: detect(next(templates)), rendering)


# ---------------------------------------------------------------------------- names

MODELS = {
    "NousResearch/Hermes-3-Llama-3.1-8B": "hermes",
    "NousResearch/Hermes-2-Pro-Mistral-7B": "hermes",
    "Qwen/Qwen2.5-7B-Instruct": "hermes",
    "Qwen/Qwen2.5-Coder-32B-Instruct": "hermes",
    "Qwen/QwQ-32B": "hermes",
    "Qwen/Qwen3-8B": "hermes",
    "Qwen/Qwen3-30B-A3B-Thinking-2507": "hermes",
    "qwen3:14b": "hermes",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": "qwen3-coder",
    "qwen3-coder:30b": "qwen3-coder",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "hermes",
    "Qwen/Qwen3.5-35B-A3B": "qwen3-coder",
    "HuggingFaceTB/SmolLM3-3B": "hermes",
    "XiaomiMiMo/MiMo-7B-RL": "hermes",
    "XiaomiMiMo/MiMo-V2-Flash": "mimo-v2",
    "ibm-granite/granite-3.3-8b-instruct": "granite3",
    "ibm-granite/granite-4.0-h-tiny": "granite4",
    "ibm-granite/granite-20b-functioncalling": "granite-20b-fc",
    "baidu/ERNIE-4.5-21B-A3B-Thinking": "ernie45",
    "meituan-longcat/LongCat-Flash-Chat": "longcat",
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": "nemotron-nano-v2",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-3",
    "ai21labs/AI21-Jamba-1.5-Mini": "jamba",
    "tencent/Hunyuan-A13B-Instruct": "hunyuan-a13b",
    "MiniMaxAI/MiniMax-M1-80k": "minimax-m1",
    "MiniMaxAI/MiniMax-M2": "minimax-m2",
    "MiniMaxAI/MiniMax-M3": "minimax-m3",
    "ServiceNow-AI/Apriel-1.6-15b-Thinker": "apriel",
    "mistralai/Mistral-7B-Instruct-v0.3": "mistral-v3",
    "mistralai/Mistral-Nemo-Instruct-2407": "mistral-nemo",
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": "mistral-v11",
    "mistralai/Devstral-Small-2507": "mistral-v13",
    "mistralai/Magistral-Small-2509": "mistral-v13",
    "mistralai/Ministral-3-14B-Reasoning-2512": "mistral-v13",
    "meta-llama/Llama-3.1-8B-Instruct": "llama3-json",
    "meta-llama/Llama-3.2-3B-Instruct": "llama3-json",
    "meta-llama/Llama-3.3-70B-Instruct": "llama3-json",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": "llama4-pythonic",
    "fireworks-ai/llama-3-firefunction-v2": "functools",
    "microsoft/Phi-4-mini-instruct": "phi-4-mini",
    "CohereForAI/c4ai-command-r-plus-08-2024": "command-r-plus",
    "CohereForAI/c4ai-command-r7b-12-2024": "command-r7b",
    "CohereLabs/c4ai-command-a-03-2025": "command-r7b",
    "Salesforce/Llama-xLAM-2-8b-fc-r": "xlam",
    "internlm/internlm2_5-7b-chat": "internlm2",
    "ai-sage/GigaChat3-10B-A1.8B": "gigachat3",
    "empower-dev/llama3-empower-functions-small": "empower",
    "swiss-ai/Apertus-8B-Instruct-2509": "apertus",
    "deepseek-ai/DeepSeek-V3-0324": "deepseek-v3",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek-v3",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": "deepseek-v3",
    "deepseek-ai/DeepSeek-V3.1-Terminus": "deepseek-v31",
    "deepseek-ai/DeepSeek-V3.2": "deepseek-dsml",
    "deepseek-ai/DeepSeek-V4": "deepseek-v4",
    "moonshotai/Kimi-K2-Instruct-0905": "kimi-k2",
    "moonshotai/Kimi-K2.5": "kimi-k2",
    "moonshotai/Kimi-K3": "kimi-k3",
    "upstage/Solar-Open-100B": "solar-open",
    "meetkai/functionary-medium-v3.2": "functionary-v3",
    "meetkai/functionary-small-v3.1": "functionary-v31",
    "meetkai/functionary-small-v2.5": "functionary-v2-llama3",
    "openai/gpt-oss-20b": "harmony",
    "ByteDance-Seed/Seed-OSS-36B-Instruct": "seed-oss",
    "zai-org/GLM-4.5-Air": "glm45",
    "zai-org/GLM-4.6": "glm45",
    "zai-org/GLM-4.7": "glm47",
    "inclusionAI/Ling-3.0-flash": "ling-3",
    "tencent/Hy3": "hy-v3-opensource",
    "stepfun-ai/step3": "step3",
    "stepfun-ai/Step-3.5-Flash": "step-3.5",
    "openbmb/MiniCPM5-1B": "minicpm5",
    "allenai/Olmo-3-7B-Instruct": "olmo3",
    "LiquidAI/LFM2-8B-A1B": "lfm2",
    "google/gemma-3-27b-it": "gemma3",
    "google/gemma-4-31B-it": "gemma4",
    "google/functiongemma-270m-it": "functiongemma",
    "Team-ACE/ToolACE-2-Llama-3.1-8B": "pythonic",
    "RekaAI/reka-edge-2603": "reka",
    "speakleash/Bielik-11B-v3.0-Instruct": "bielik",
}


@pytest.mark.parametrize("model", MODELS)
def test_well_known_names_tell_their_dialect(model: str) -> None:
    found = detect(model=model)
    assert (found.name, found.origin) == (MODELS[model], f"by the model's name, {model}")


@pytest.mark.parametrize("model", ["gpt-5", "claude-opus-4", "mistralic/thing", "", "x" * 10_000])
def test_other_names_tell_none(model: str) -> None:
    if model:
        assert detect(model=model).origin.startswith("by default: its name, ")


# ---------------------------------------------------------------------------- anything at all

JINJA = st.lists(
    st.sampled_from(
        [
            *(
                "{% for m in messages %}",
                "{% endfor %}",
                "{{ m.content }}",
                "{{ m.role }}",
                "{% if tools %}",
                "{% endif %}",
            ),
            *(
                "{% for c in m.tool_calls %}",
                "{{ c.function.name }}",
                "{{ c.function.arguments | tojson }}",
                "{{ c.id }}",
            ),
            *(
                "<tool_call>",
                "</tool_call>",
                "[",
                "]",
                "{",
                "}",
                "(",
                ")",
                "\n",
                '"',
                "<|",
                "|>",
                "{{",
                "}}",
                "{%",
                "\ue000",
            ),
            *(
                "{% for k, v in c.function.arguments.items() %}",
                "{{ k }}",
                "{{ v }}",
                "=",
                ",",
                "{{ raise_exception('no') }}",
            ),
        ]
    ),
    max_size=25,
).map("".join)


@property_test(150, JINJA | st.text(max_size=200))
def test_any_text_is_a_template(text: str) -> None:
    try:
        found = detect(text)
    except ToolspeakError:
        assert not text
    else:
        assert found.origin


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "x" * 2_000_000,
        "{{ " + "(" * 5_000 + ")" * 5_000 + " }}",
        TURNS.replace("CALL", OWN_CALL) + "{{ 'x' * 100000 }}" * 50,
        "\x00\ud800",
    ],
    ids=["loops", "recursion", "huge", "deep", "long", "odd"],
)
def test_templates_that_mean_harm_tell_none(template: str) -> None:
    assert detect(template).origin.startswith("by default")
