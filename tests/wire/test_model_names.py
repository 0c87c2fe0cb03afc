"""Model names as hubs and servers spell them: a row a family, with the dialect and why."""

from __future__ import annotations

import re

import pytest

from toolspeak.dialects import get, names
from toolspeak.wire.detect import detect
from toolspeak.wire.finding.model_names import plain

SURE: dict[str, tuple[str, ...]] = {
    # Meta: one template for 3.1 to 3.3; Nvidia's 70B kept it, its Nano, Super and Ultra have their own marks
    "llama3-json": (
        "meta-llama/Llama-3.1-8B-Instruct",
        "llama3.1",
        "llama3.2:3b-instruct-q4_K_M",
        "meta.llama3-1-8b-instruct-v1:0",
        "us.meta.llama3-3-70b-instruct-v1:0",
        "accounts/fireworks/models/llama-v3p1-405b-instruct",
        "llama-3.3-70b-versatile",
        "Meta_Llama_3.1_8B_Instruct.Q4_K_M.gguf",
        "nvidia/Llama-3.1-Nemotron-70B-Instruct-HF",
    ),
    "nemotron-nano-v2": (
        "nvidia/Llama-3.1-Nemotron-Nano-8B-v1",
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5",
        "nvidia/llama-3.1-nemotron-ultra-253b-v1",
        "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    ),
    "nemotron-3": (
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        "nemotron-3-nano:30b",
        "nvidia.nemotron-nano-3-30b",
        "nvidia.nemotron-super-3-120b",
        "accounts/fireworks/models/nemotron-lightning-3p5-30b-a3b",
    ),
    "llama4-pythonic": ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "us.meta.llama4-maverick-17b-instruct-v1:0"),
    # Qwen: JSON in tags up to Qwen 3, tags for the coders and from 3.5 on
    "hermes": (
        "IQuestLab/IQuest-Coder-V1-40B-Instruct",
        "tngtech/DeepSeek-TNG-R1T2-Chimera",  # as sglang's pull request 8672 shows
        "qwen3",
        "qwen3:8b",
        "qwen3:latest",
        "Qwen/Qwen3-235B-A22B-Instruct-2507",
        "qwen.qwen3-32b-v1:0",
        "qwen/qwen-2.5-72b-instruct",
        "accounts/fireworks/models/qwen2p5-72b-instruct",
        "qwen2-5-coder-7b",
        "qwen25-coder-32b-instruct",
        "accounts/fireworks/models/qwen-v2p5-14b-instruct",
        "Qwen/QwQ-32B",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        # made from them, or asked in the same words
        "NousResearch/Hermes-3-Llama-3.1-8B",
        "NousResearch/DeepHermes-3-Llama-3-8B-Preview",
        "LGAI-EXAONE/EXAONE-4.0-32B",
        "exaone4.0:1.2b",
        "LGAI-EXAONE/K-EXAONE-236B-A23B",
        "inclusionAI/Ling-1T",
        "inclusionAI/Ling-mini-2.0",
        "inclusionAI/Ring-flash-2.0",
        "katanemo/Arch-Function-3B",
        "Menlo/Jan-nano-128k",
        "Alibaba-NLP/Tongyi-DeepResearch-30B-A3B",
        "deepcogito/cogito-v1-preview-llama-8B",
        "deepcogito/cogito-v2-preview-llama-70B",
        "cogito:14b",
        "XiaomiMiMo/MiMo-7B-RL",
        "Groq/Llama-3-Groq-8B-Tool-Use",
        "llama3-groq-tool-use:8b",
        "arcee-ai/Trinity-Mini",
        "stepfun-ai/Step3-VL-10B",  # its text model is Qwen3's
        "JetBrains/Mellum2-12B-A2.5B-Instruct",  # as vLLM's recipes say
    ),
    "qwen3-coder": (
        "IQuestLab/IQuest-Coder-V1-14B-Thinking",
        "Qwen/Qwen3-Coder-30B-A3B-Instruct",
        "qwen.qwen3-coder-480b-a35b-v1:0",
        "qwen3-coder-next",
        "Qwen/Qwen3.5-4B",
        "qwen3p6-35b-a3b",
        "qwen-3.8-27b",
        "qwen-3-coder",
        "databricks-qwen35-122b-a10b",
        "Kwaipilot/KAT-Dev-72B-Exp",
        "PrimeIntellect/INTELLECT-3",
        # as vLLM's recipes say
        "arcee-ai/Trinity-Large-Thinking",
        "internlm/Intern-S2-Preview",
    ),
    # DeepSeek, and Cogito's largest, which is made from it
    "deepseek-v3": (
        "deepseek-ai/DeepSeek-V3-0324",
        "deepseek.r1-v1:0",
        "deepseek-r1:671b",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
        "deepcogito/cogito-v2-preview-deepseek-671B-MoE",
        "deepcogito/cogito-671b-v2.1",
        "cogito-2.1:671b",
    ),
    "deepseek-v31": (
        "deepseek-ai/DeepSeek-V3.1-Terminus",
        "accounts/fireworks/models/deepseek-v3p1",
        "deepseek-v3-1-250821",
        "deepseek.v3-v1:0",
    ),
    "deepseek-dsml": ("deepseek-ai/DeepSeek-V3.2", "accounts/fireworks/models/deepseek-v3p2"),
    # Mistral: the tokenizer's version tells
    "mistral-v3": ("mistralai/Mistral-7B-Instruct-v0.3", "mistral:7b", "mistral.mistral-large-2407-v1:0"),
    "mistral-nemo": (
        "mistral-nemo",
        "mistral-small:24b",
        "mistralai/Mistral-Small-24B-Instruct-2501",
        "mistralai/Mistral-Large-Instruct-2411",
        "mistral-small3.1:24b",
        "mistral-small-3-1-24b",
        "mistralai/Voxtral-Mini-3B-2507",  # its tekken.json says v7, as those of the Small 3.0 and 3.1
    ),
    "mistral-v11": (
        "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
        "mistral-small3.2:24b",
        "mistralai/Devstral-Small-2505",
    ),
    "mistral-v13": (
        "devstral:24b",
        "mistralai/Devstral-Small-2507",
        "mistral.ministral-3-8b-instruct",
        "mistralai/Mistral-Large-3-675B-Instruct-2512",
        "mistralai/mistral-large-2512",
        "mistral/mistral-small-2603",
        "mistral.devstral-2-123b",
        "mistralai/ministral-8b-2512",
    ),
    # GLM: a name and JSON for the 4 of April 2025 and Z1, tags from 4.5 on
    "glm4": ("zai-org/GLM-4-32B-0414", "THUDM/GLM-Z1-9B-0414", "glm4:9b", "glm-4-9b-chat"),
    # Ring 2.6 writes GLM 4.5's tags, as sglang's pull request 25366 shows
    "glm45": (
        "zai-org/GLM-4.5-Air",
        "accounts/fireworks/models/glm-4p6",
        "glm-4-5",
        "inclusionAI/Ring-2.6-1T",
        "zai-org/GLM-GA",
        "zai-org/Glyph",
    ),
    # IQuest-Coder-V1: by their model card, the 40B Instruct as Qwen3, the others as Qwen3-Coder; V2 has marks of its own
    "iquest-coder-v2": ("IQuestLab/IQuest-Coder-V2-40B-Instruct",),
    "glm47": (
        "zai.glm-4.7",
        "accounts/fireworks/models/glm-4p7",
        "zai-org/GLM-5-FP8",
        "glm53-744b",
        "mindlab-research/Macaron-V1-Coding-Venti",
    ),
    "harmony": ("openai.gpt-oss-120b-1:0", "gpt-oss:20b", "unsloth/gpt-oss-20b-GGUF"),
    "kimi-k2": ("moonshot.kimi-k2-thinking", "accounts/fireworks/models/kimi-k2p5", "moonshotai/Kimi-Linear-48B-A3B"),
    "minimax-m1": ("MiniMaxAI/MiniMax-M1-80k", "minimax/minimax-01"),
    "minimax-m2": ("minimax.minimax-m2", "accounts/fireworks/models/minimax-m2p1"),
    "gemma4": ("google/gemma-4-31b-it", "Google/diffusiongemma-26B-A4B-it"),
    "step3": ("stepfun-ai/step3",),
    "gemma3": ("google.gemma-3-27b-it", "gemma3:12b", "gemma2", "google/gemma-2-9b-it", "google/medgemma-27b-text-it"),
    "granite3": ("ibm-granite/granite-3.3-8b-instruct", "granite3.1-dense:8b", "granite-3-8b-instruct"),
    "granite3.2": ("granite-3-2-8b-instruct", "granite3.2:8b"),
    "granite4": ("ibm-granite/granite-4.0-h-tiny", "granite4:3b"),
    "command-r-plus": ("cohere.command-r-plus-v1:0", "command-r:35b"),
    "command-r7b": ("command-r7b:7b", "CohereLabs/c4ai-command-a-03-2025"),
    "jamba": ("ai21.jamba-1-5-large-v1:0",),
    "pythonic": ("watt-ai/watt-tool-8B", "Team-ACE/ToolACE-2-Llama-3.1-8B"),
    "xlam": ("Salesforce/Llama-xLAM-2-8b-fc-r",),
    "hunyuan-a13b": ("tencent/Hunyuan-A13B-Instruct",),
    "hy-v4": ("tencent/Hunyuan-4-Preview", "tencent/Hy4"),
    "hy-v4-opensource": ("tencent/Hy4-preview", "tencent/Hy4-preview-FP8"),
    "solar-open": ("upstage/Solar-Open-100B",),
    "solar-open2": ("upstage/Solar-Open2-250B", "solar-open-2"),
    "step-audio-2": ("stepfun-ai/Step-Audio-2-mini",),
    "openpangu": ("FreedomIntelligence/openPangu-Embedded-7B-V1.1",),
    "hyperclovax": ("naver-hyperclovax/HyperCLOVAX-SEED-Think-32B",),
}

UNSURE: dict[str, tuple[str, ...]] = {
    "mistral-v3": ("mistral", "mistral:latest"),  # on Ollama the 7B; a provider's alias may be any
    "mistral-nemo": (
        "mistral-large",
        "mistral-small",
        "mistral-small-latest",
        "mistral-large-latest",
        "mistralai/Voxtral-Small-24B-2507",
        "mistral.voxtral-small-24b-2507",
        "mistral/mistral-small-latest",
    ),
    "mistral-v13": ("ministral-3b", "mistral/ministral-3b-latest", "mistral/mistral-large-4-0"),
    # by their model cards trained as the A13B was; none of them shows what a call looks like
    "hunyuan-a13b": ("tencent/Hunyuan-4B-Instruct", "tencent/Hunyuan-7B-Instruct"),
    "hermes": ("Qwen/Qwen2-72B-Instruct", "inclusionAI/Ling-lite-1.5"),
    "glm45": ("inclusionAI/Ling-2.6-1T",),
    "nemotron-nano-v2": ("nemotron-nano",),
    "glm4": ("zai-org/GLM-4.1V-9B-Thinking", "glm-4-plus"),
    "xlam": ("MadeAgents/Hammer2.1-7b",),
}

UNKNOWN = (
    *("gpt-5", "claude-opus-4", "mistralic/thing", "meta-llama/Meta-Llama-3-8B-Instruct", "llama3:8b", "phi4:14b"),
    *("LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct", "tencent/Hunyuan-MT-7B", "eureka/brekathing", "string-1t"),
)


@pytest.mark.parametrize(("dialect", "model"), [(d, model) for d, models in SURE.items() for model in models])
def test_a_name_tells_its_dialect(dialect: str, model: str) -> None:
    found = detect(model=model)
    assert (found.name, found.origin) == (dialect, f"by the model's name, {model}")


@pytest.mark.parametrize(("dialect", "model"), [(d, model) for d, models in UNSURE.items() for model in models])
def test_a_name_that_is_not_sure_is_told_as_such(dialect: str, model: str) -> None:
    found = detect(model=model)
    assert found.name == dialect
    assert found.origin.startswith(f"by the model's name, {model}, which is uncertain")


@pytest.mark.parametrize("model", UNKNOWN)
def test_a_name_that_tells_nothing(model: str) -> None:
    assert detect(model=model).origin.startswith("by default: its name, ")


def test_each_name_of_a_dialect_tells_it() -> None:
    for name in names():
        for part in get(name).models:
            if not part.startswith("/"):
                own = part.rstrip("-?")
                for model in (own, *([] if re.search(r"\d", own) else [f"Maker/{own}-35B-Instruct"])):
                    found = detect(model=model)
                    assert (found.name, "uncertain" in found.origin) == (name, part.endswith("?")), model


def test_no_dialect_lists_two_spellings_of_one_name() -> None:
    for name in names():
        listed = [plain(part.removesuffix("?")) for part in get(name).models]
        assert len(listed) == len({*listed}), name


def test_a_long_name_costs_no_more_than_it_is_long() -> None:
    assert detect(model="qwen" * 100_000).origin.startswith("by default")
