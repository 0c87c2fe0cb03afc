"""Requests that need several calls: how many, and the arguments of each."""
