"""`python -m toolspeak.evals`: downloads the leaderboard's package if it is missing."""

from .bfcl_package import ensure

ensure()
