"""Schemas of tools: inferred from Python, repaired, checked, coerced, and bound to functions."""
