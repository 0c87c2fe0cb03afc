"""Other spellings of the tag that has a call's name. `<invoke name=f>`, `<invoke=f>` and `<function name="f">` are
read where a dialect writes `<invoke name="f">` or `<function=f>`.

Quotation marks around the name are removed when it is read. Such a tag counts only for an offered tool, and leaves a
note.
"""

from __future__ import annotations

import re

from ..dialect import NAME, Part

TAG = re.compile(r'(?P<tag>.*<[^<>=]*?)(?P<attribute>(?: name)?)=(?P<quote>"?)', re.DOTALL).fullmatch


def other_tags(form: tuple[Part, ...]) -> tuple[tuple[Part, ...], ...]:
    """A call with its name in such a tag, in each of these spellings; () if its name is not in a tag."""
    at = form.index(NAME) if NAME in form else 0
    before, behind = (form[at - 1], form[at + 1]) if 0 < at < len(form) - 1 else (None, None)
    m = TAG(before) if isinstance(before, str) else None
    if m is None or not isinstance(behind, str) or not behind.startswith(m["quote"] + ">"):
        return ()
    starts = [m["tag"] + attribute + "=" for attribute in ("", " name") if attribute != m["attribute"] or m["quote"]]
    rest = (NAME, behind.removeprefix(m["quote"]), *form[at + 2 :])
    return tuple((*form[: at - 1], start, *rest) for start in starts)
