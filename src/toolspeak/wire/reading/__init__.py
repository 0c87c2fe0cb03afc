"""Reads a model's reply as it arrives."""
