"""Interfaces of other libraries, for programs that were written against them."""
