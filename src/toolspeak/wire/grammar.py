"""What a model may write, as a grammar for an engine that samples under one."""
from __future__ import annotations
from .grammars.gbnf import gbnf
from .grammars.lark import lark
from .grammars.reply import reply
