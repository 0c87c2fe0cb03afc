"""Finds the noun that a request asks for: after "what is the", "calculate the", "how many".

A weak model finds "the volume of a cube" as likely after `cube_surface_area`, and "who wrote Emma" after
`book_page_count`. The noun tells: a tool that finds volumes has the word somewhere.
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
"""What stands before the noun that is asked for; `open` where a verb may stand beside it."""
ARTICLES = stems.each("the a an some all any every each my our your his her their its this that these those")
NOUN = re.compile(rf"\s*([^\W\d_{UNSPACED}][\w'’-]*)")
ENDS = stems.each(
    "of in for from with on at to into by about near around between within since until during against over under after "
    "before without like as than that which who whose where when how what why if and or but is are was were be been has "
    "have had do does did can could will would should may must go goes i you we they he she it there me us him them up "
    "not found made written held taken given used called once again then also too both"
)
"""Words that no noun's group goes beyond."""
BEYOND = stems.each(
    "kind kinds sort sorts type types number amount list name names value values information details data"
)
"""Nouns that say what is asked for only with what follows them: the type of soil."""
SAYS_NOTHING = stems.stems_of(
    "second minute hour day week month year time way thing people person best good top following possible idea total "
    "average mean maximum minimum overall final exact place"
)
"""Stems of words that a tool need not have to answer for them."""
LONGEST = 6
"""Words of such a group that are looked at."""


def sought(text: str) -> list[set[str]]:
    """For each thing that a request asks for, in its order, the stems of words that tell it: one of them is enough."""
    found: list[set[str]] = []
    for lead in BEFORE_NOUN.finditer(text):
        group = _group(text, lead.end())
        # A name is not what is asked for, but what it is asked of.
        last = group if lead["open"] else group[-1:]
        told = stems.stems(" ".join(word for word in last if not word[:1].isupper())) - SAYS_NOTHING
        if told:
            found.append(told)
    return found


def _group(text: str, start: int) -> list[str]:
    """The words of the noun that begins there."""
    group: list[str] = []
    while len(group) < LONGEST and (word := NOUN.match(text, start)):
        said = word[1].casefold()
        start = word.end()
        if said == "of" and group and group[-1].casefold() in BEYOND:
            group.clear()
        elif said in ENDS or (group and (said in ARTICLES or said.endswith(("ing", "ed")))):
            break
        elif said not in ARTICLES:
            group.append(word[1])
    return group
