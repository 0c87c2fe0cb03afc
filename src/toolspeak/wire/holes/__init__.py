"""The holes of a dialect, one file each: how it opens, how it is read and written, and its grammar.

A hole is the place for a name or for arguments in a dialect's form of a call.

`ARGUMENTS` is the table of holes for arguments (`hole.py` has its row type). `json_call` is a whole call as one JSON
object, `numbered_name` an id that contains the name. A reader that is too long for the file of its hole is beside it
(`json_call_reader`, `tag_reader`), or with the readers of values (`reading/`); so are larger grammars (`tag_grammar`,
`tree_grammar`). The building blocks of grammars are imported when a grammar is built: a decoder does not need them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dialect import Arguments
from . import json_args, keywords, raw, tagged, tree
from .hole import ArgumentsHole

ARGUMENTS: Mapping[type[Arguments], ArgumentsHole[Any]] = {
    hole.kind: hole for hole in (json_args.HOLE, keywords.HOLE, raw.HOLE, tagged.HOLE, tree.HOLE)
}
