"""The interface of trivialai, for programs that were written against it: that of the published article, and that of
version 0.7.18.

    from toolspeak.compat.trivialai import tools, ollama

`Tools` and `generate_tool_call` are the article's, `ToolKit` and `loadch` are those of version 0.7.18.
docs/how-to/migrate.md lists what is missing, what replaces it, and the intended differences.
"""

from . import ollama, tools
from .answer_values import loadch, loadchmulti
from .llm import LLMMixin, ModelLLM, generate, generate_checked
from .ollama import Ollama
from .results import GenerationError, LLMResult, TransformError
from .toolkit import ToolCallError, ToolKit
from .tools import Tools, generate_tool_call, generateToolCall

__all__ = [
    "GenerationError",
    "LLMMixin",
    "LLMResult",
    "ModelLLM",
    "Ollama",
    "ToolCallError",
    "ToolKit",
    "Tools",
    "TransformError",
    "generate",
    "generateToolCall",
    "generate_checked",
    "generate_tool_call",
    "loadch",
    "loadchmulti",
    "ollama",
    "tools",
]
