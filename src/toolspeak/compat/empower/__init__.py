"""The prompts and replies of the empower-functions package, without its server and its compiled library.

`prompt_messages` gives the package's bytes; `chat_completion` and `chat_chunks` turn what the model
answers into OpenAI's form. docs/how-to/migrate.md says where this behaves better on purpose.
"""

from .prompt import prompt_messages
from .reply import chat_chunks, chat_completion, separate_thinking

__all__ = ["chat_chunks", "chat_completion", "prompt_messages", "separate_thinking"]
