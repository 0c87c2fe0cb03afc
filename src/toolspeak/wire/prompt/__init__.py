"""Renders the prompt: conversations, tools and calls, by a dialect or by a chat template."""
