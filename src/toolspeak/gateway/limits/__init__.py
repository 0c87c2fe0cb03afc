"""Limits on concurrent requests, rates, schemas and memory."""
