"""Reads a request for a model that was not trained on tools: which tool it needs, and with which arguments. `scored`
is the only entry point."""
