"""The prompts and replies of the empower-functions package, without its server and its compiled library.

`prompt_messages` returns exactly the package's prompts; `chat_completion` and `chat_chunks` convert the model's output
to OpenAI's format. docs/how-to/migrate.md lists the intended differences.
"""

from .prompt import prompt_messages
from .reply import chat_chunks, chat_completion, separate_thinking

__all__ = ["chat_chunks", "chat_completion", "prompt_messages", "separate_thinking"]
