"""Finds the nouns that a request asks for: after "what is the", "calculate the", "how many".

A weak model finds "the volume of a cube" as likely after `cube_surface_area`, and "who wrote Emma" after
`book_page_count`. The noun tells them apart: a tool that computes volumes mentions the word somewhere.
"""

from __future__ import annotations

import re

from .. import stems
from ..stems import UNSPACED

BEFORE_NOUN = re.compile(
    r"\b(?:"
    r"(?:what|who)(?:['’]s|\s+(?:is|are|was|were|will\s+be|would\s+be))"
    r"|(?:calculate|compute|work\s+out|find|determine|get|give|show|tell|estimate|fetch|retrieve|look\s+up|search|predict"
    r"|analy[sz]e|identify|provide|list|check|book|order|convert|generate|create|recommend|suggest|solve|evaluate"
    r"|need|want|buy|view|see|locate|display)(?:\s+(?:out|for|me|us))*"
    r"|(?P<open>how\s+(?:much|many)|which|what|who)"
    r")\s+",
    re.IGNORECASE,
)
"""Text before the requested noun; the group `open` matches if a verb may come next to it."""
ARTICLES = stems.each("the a an some all any every each my our your his her their its this that these those")
NOUN = re.compile(rf"\s*([^\W\d_{UNSPACED}][\w'’-]*)")
ENDS = stems.each(
    "of in for from with on at to into by about near around between within since until during against over under after "
    "before without like as than that which who whose where when how what why if and or but is are was were be been has "
    "have had do does did can could will would should may must go goes i you we they he she it there me us him them up "
    "not found made written held taken given used called once again then also too both"
)
"""Words that end a noun group."""
BEYOND = stems.each(
    "kind kinds sort sorts type types number amount list name names value values information details data"
)
"""Nouns that only say what is requested with the words after them: the type of soil."""
SAYS_NOTHING = stems.stems_of(
    "second minute hour day week month year time way thing people person best good top following possible idea total "
    "average mean maximum minimum overall final exact place"
)
"""Stems of words that a tool need not mention to answer for them."""
LONGEST = 6
"""The most words of a noun group that are read."""


def sought(text: str) -> list[set[str]]:
    """For each thing that a request asks for, in order, the stems of its words: a tool needs only one of them."""
    nouns: list[set[str]] = []
    for lead in BEFORE_NOUN.finditer(text):
        group = _group(text, lead.end())
        # A name is not the requested noun, but what the question is about.
        last = group if lead["open"] else group[-1:]
        nouns_in_last = stems.stems(" ".join(word for word in last if not word[:1].isupper())) - SAYS_NOTHING
        if nouns_in_last:
            nouns.append(nouns_in_last)
    return nouns


def _group(text: str, start: int) -> list[str]:
    """The words of the noun group that begins there."""
    group: list[str] = []
    while len(group) < LONGEST and (word := NOUN.match(text, start)):
        noun = word[1].casefold()
        start = word.end()
        if noun == "of" and group and group[-1].casefold() in BEYOND:
            group.clear()
        elif noun in ENDS or (group and (noun in ARTICLES or noun.endswith(("ing", "ed")))):
            break
        elif noun not in ARTICLES:
            group.append(word[1])
    return group
