"""Compares the verb of a request with the verb of a tool's name, in four classes: tell, make, end, change.

A weak model finds "show me all servers" as likely after `add_server` as after `list_servers`. The verbs tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from .. import stems
from ..stems import WORD

DEEDS = {
    "tell": "get list show find search retrieve fetch lookup look read check query view see display tell give "
    "what which who when where how is are",
    "make": "make add create new register insert put book reserve schedule order buy record log",
    "end": "delete remove drop cancel erase clear forget discard",
    "change": "change update set edit modify rename resize adjust replace turn",
}
"""The verbs of each deed, and the words that ask to be told."""
DEED_OF = {verb: deed for deed, verbs in DEEDS.items() for verb in verbs.split()}
FIRST = 12
"""Words of a request among which it tells what is to be done."""


def differ(name: str, text: str) -> bool:
    """Whether the tool of that name, without its group, does another thing than `text` asks for; both must tell."""
    done = _deed(stems.parts(name.rpartition(".")[2]))
    asked = _deed(part for found in islice(WORD.finditer(text), FIRST) for part in stems.parts(found[0])[:1])
    return bool(done and asked and done != asked)


def _deed(found: Iterable[str]) -> str:
    """The deed of the first word that tells one."""
    return next((DEED_OF[word.casefold()] for word in found if word.casefold() in DEED_OF), "")
