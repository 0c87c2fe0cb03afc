"""Compares the verb of a request with the verb in a tool's name, in four classes: read, create, delete, update.

A weak model finds "show me all servers" as likely after `add_server` as after `list_servers`; the verbs tell them
apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from .. import stems
from ..stems import WORD

VERB_CLASSES = {
    "read": "get list show find search retrieve fetch lookup look read check query view see display tell give "
    "what which who when where how is are",
    "create": "make add create new register insert put book reserve schedule order buy record log",
    "delete": "delete remove drop cancel erase clear forget discard",
    "update": "change update set edit modify rename resize adjust replace turn",
}
"""The verbs of each class, and other words that ask for information."""
CLASS_OF = {verb: kind for kind, verbs in VERB_CLASSES.items() for verb in verbs.split()}
FIRST = 12
"""The verb of a request is looked for in so many words at its beginning."""


def differ(name: str, text: str) -> bool:
    """Whether the tool's verb and that of the request `text` are of different classes. The tool's name is used without
    its group. False if either has no known verb."""
    done = _verb_class(stems.parts(name.rpartition(".")[2]))
    verb = _verb_class(part for match in islice(WORD.finditer(text), FIRST) for part in stems.parts(match[0])[:1])
    return bool(done and verb and done != verb)


def _verb_class(verbs: Iterable[str]) -> str:
    """The class of the first known verb."""
    return next((CLASS_OF[word.casefold()] for word in verbs if word.casefold() in CLASS_OF), "")
