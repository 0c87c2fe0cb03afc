"""Fetches the leaderboard's package, if it is not there: `python -m toolspeak.evals`."""

from .bfcl_package import ensure

ensure()
