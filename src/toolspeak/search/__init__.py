"""Choosing the tools for a request out of many: an index of tools that answers questions."""

from .index import ToolIndex as ToolIndex

__all__ = ["ToolIndex"]
