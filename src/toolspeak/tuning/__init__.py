"""Which form suits a model: measured on one's own tools, and kept as a profile that `toolspeak.model` follows.

from toolspeak import tuning

outcome = tuning.tune("ollama:NAME", [weather, calculator], "tuning")
print(outcome.verdict)
outcome.save()
"""

from .outcome import Outcome, Tried
from .questions import questions
from .run import IN_PROCESS, atune, tune

__all__ = ["IN_PROCESS", "Outcome", "Tried", "atune", "questions", "tune"]
