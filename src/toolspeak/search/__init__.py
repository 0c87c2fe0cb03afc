"""Selects the tools for a request from many: an index of tools that is searched by questions."""

from .index import ToolIndex as ToolIndex

__all__ = ["ToolIndex"]
