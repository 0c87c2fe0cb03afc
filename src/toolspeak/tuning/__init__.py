"""Finds the best strategy for a model on the user's tools, and stores it as a profile that `toolspeak.model` follows.

from toolspeak import tuning

outcome = tuning.tune("ollama:NAME", [weather, calculator], "tuning")
print(outcome.verdict)
outcome.save()
"""

from .outcome import Measured, Outcome
from .questions import questions
from .run import IN_PROCESS, atune, tune

__all__ = ["IN_PROCESS", "Measured", "Outcome", "atune", "questions", "tune"]
