"""What a tool takes: inferred from Python, repaired, checked, coerced, and bound to its function."""
