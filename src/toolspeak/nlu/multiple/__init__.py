"""Requests that want several calls: how many, and the arguments of each."""
