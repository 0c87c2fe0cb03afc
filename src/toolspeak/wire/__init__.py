"""The language of dialects and its interpreters: decode, render, detect. Pure: no I/O, clock or randomness."""
