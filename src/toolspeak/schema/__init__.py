"""Schemas of tools: inferred from Python, repaired, validated, coerced, and bound to functions."""
