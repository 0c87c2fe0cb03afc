"""Handlers of the gateway's paths."""
