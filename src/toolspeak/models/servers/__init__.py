"""Descriptions and capabilities of model servers."""
