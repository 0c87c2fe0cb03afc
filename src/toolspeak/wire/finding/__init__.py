"""Finds the dialect of a model: by its name, its chat template, or its tokenizer's declaration; or drafts an unknown
one."""
