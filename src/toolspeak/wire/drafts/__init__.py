"""Dialects that nobody wrote: drafted from what a chat template writes, or from what a tokenizer declares."""
