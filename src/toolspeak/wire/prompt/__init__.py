"""Writing what a model reads: conversations, tools and calls, by a dialect or by a chat template."""
