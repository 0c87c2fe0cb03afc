"""Finds arguments whose value the words of the request support; asks no model.

The evidence for a text is one of four: it has the format of an example in the argument's description, it stands after
the argument's name, it follows "from" or "to", or the description lists it as an option. For a boolean it is the words
of its name or description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set

from .. import stems as words
from ..stems import WORD
from ..types import Schema
from .entities import dates, spans
from .entities.spans import Span
from .partial_call import described, is_text

OPTIONS = re.compile(
    r"(?:e\.g\.|for example|such as|options(?: are| include)?:?|one of:?|either|like)[,:]?\s+([^.;()]+)", re.IGNORECASE
)
"""Where a description lists possible values."""
JOINT = re.compile(r"\s*,\s*(?:or |and )?|\s+(?:or|and)\s+|\s*/\s*")
BETWEEN = re.compile(r"\s*(?:(?:is|was|of|called|named|number|id|code|no\.?|#)\s+|[:=]\s*|\s)[\"'“‘(#]*", re.IGNORECASE)
"""The text between an argument's name and its value."""
DIRECTIONS = {
    "from": words.stems_of("from origin source start departure pickup depart begin initial"),
    "to": words.stems_of("to destination target end arrival dropoff arrive final"),
}
"""Stems in the names of the two ends of a route."""
GENERIC = frozenset(["name", "id", "ids", "number", "code", "text", "value", "type", "date", "time"])
"""Last words of argument names that do not say what is named."""
HAS_FORM = re.compile(r"[A-Za-z].*\d|\d.*[A-Za-z]|\w[/@_]\w")
"""Matches in a format that is more than plain words and numbers."""
MOST_WORDS = 5
"""For a boolean with at most so many words in its description, two of them are enough."""
VERBS = words.each(
    "add analyze analyse arrange ask block book build buy call cancel change check choose close compare compute convert"
    " count create delete describe determine do draw email enable estimate evaluate explain fetch fill generate give go"
    " help identify kill let list locate look make merge move need open order pay plan play plot predict provide pull put"
    " raise read recommend record register remind remove rename reserve reverse run save schedule search send set ship"
    " show simulate solve sort split start stop suggest switch take tell track transfer translate turn update use what"
    " which who every each"
)
"""First words of requests, which are no values at that place."""
ASKING = words.each("every each what which who")
"""Question words, which are no values at any place."""


def by_form(text: str, schemas: Mapping[str, Schema]) -> dict[str, Span]:
    """Arguments whose description shows a format ('E1187', 'owner/name') that exactly one span of the request has."""
    spans_by_name: dict[str, Span] = {}
    tokens = [match.span() for match in WORD.finditer(text)]
    tokens += [(start + 1, end - 1) for (start, end), _ in spans.quotations(text)]
    shapes = {name: forms_of(schema) for name, schema in schemas.items()}
    if not any(shapes.values()):
        return {}
    forms_of_tokens = [(span, spans.form(text[slice(*span)])) for span in tokens]
    for name, forms in shapes.items():
        fitting = {span for span, form in forms_of_tokens if form in forms}
        rivals = [other for other in schemas if other != name and shapes[other] & forms]
        if len(fitting) == 1 and not rivals:
            spans_by_name[name] = next(iter(fitting))
    return spans_by_name


def forms_of(schema: Schema) -> set[str]:
    """The formats of the examples in a description, if they are more than words."""
    if not is_text(schema) or dates.pattern(described(schema)):
        return set()
    examples = spans.quoted(described(schema))
    return {spans.form(example) for example in examples if HAS_FORM.search(example) and " " not in example}


def named(text: str, name: str) -> list[Span]:
    """The spans right after the name of an argument: "the repo webshop", "zone=eu-1"."""
    parts = words.parts(name)
    if not parts:  # a name without any word cannot occur
        return []
    spoken = [r"[ _-]?".join(map(re.escape, parts))]
    if len(parts) > 1 and parts[-1].casefold() in GENERIC:
        spoken.append(r"[ _-]?".join(map(re.escape, parts[:-1])))
    elif len(parts[-1]) > 3:
        spoken.append(re.escape(parts[-1]))
    named_spans = directed(text, parts)
    quoted = {start + 1: end - 1 for (start, end), _ in spans.quotations(text)}
    for head in re.finditer(rf"(?<!\w)(?:{'|'.join(spoken)})(?!\w)", text, re.IGNORECASE):
        gap = BETWEEN.match(text, head.end())
        if gap and (piece := _piece(text, gap.end(), quoted)):
            named_spans.append(piece)
    return list(dict.fromkeys(named_spans))


def directed(text: str, parts: Sequence[str]) -> list[Span]:
    """The spans after "from" for an argument with the name of an origin, and after "to" for a destination."""
    stems = {words.stem(part) for part in parts} | {part.casefold() for part in parts}
    ways = [way for way, names in DIRECTIONS.items() if stems & names]
    heads = [(head.end(), head) for way in ways for head in re.finditer(rf"\b{way}\s+(?:the\s+)?", text, re.IGNORECASE)]
    return [piece for start, _ in heads if (piece := _name(text, start))] if len(ways) == 1 else []


def _name(text: str, start: int) -> Span | None:
    match = spans.NAMED.match(text, start)
    return match.span() if match else None


def assigned(text: str, name: str) -> Span | None:
    """The value that the request assigns to an argument, as in zone=eu-1; None if it does not."""
    match = re.search(rf"(?<!\w){re.escape(name)}\s?=\s?([\"']?)([^\s,;\"']+)\1", text, re.IGNORECASE)
    return match.span(2) if match else None


def _piece(text: str, start: int, quoted: Mapping[int, int]) -> Span | None:
    """The span that begins there: a quotation, a code, or a name."""
    if start in quoted:
        return (start, quoted[start])
    if named := _name(text, start):
        return named
    match = WORD.match(text, start)
    return match.span() if match and words.stems(match[0]) else None


def option(text: str, schema: Schema) -> str | None:
    """The single option that the description lists and the request contains: 'vegan' for "e.g. vegan, kosher"."""
    written = [one for one in options(described(schema)) if spans.find_form(text, one)]
    return written[0] if len(written) == 1 else None


def options(description: str) -> Sequence[str]:
    """The possible values that a description lists; empty if there are fewer than two."""
    quoted = spans.quoted(description)
    if len(quoted) > 1:
        return quoted
    listed = OPTIONS.search(description)
    parts = [part.strip("'\"“”‘’ ") for part in JOINT.split(listed[1])] if listed else []
    plain = [part for part in parts if part and len(part.split()) <= 3 and words.stems(part)]
    return plain if len(plain) > 1 else []


def hollow(text: str, span: Span, name: str) -> bool:
    """Whether a span is no value: it is the verb of the request, or the argument's own name."""
    piece = text[slice(*span)]
    stems = words.stems(piece)
    if stems and stems <= {words.stem(part) for part in words.parts(name)}:
        return True
    return piece.casefold() in (VERBS if span[0] == 0 else ASKING)


def reserved(text: str, schemas: Mapping[str, Schema]) -> list[Span]:
    """The spans of options in the request: they are not available as strings."""
    options = [str(one) for schema in schemas.values() for one in schema.get("enum", ())]
    places = [spans.find(text, one.replace("_", " ")) for one in options if one.casefold() not in words.STOP]
    return [place for place in places if place]


def spoken(text: str, name: str, description: str, common: Set[str]) -> bool:
    """Whether the request has the words of a boolean: its whole name, or two words of its short description. Words in
    `common` belong to the tool and do not count."""
    phrase = " ".join(words.parts(name))
    if " " in phrase and (place := spans.find(text, phrase)):
        return not spans.denied_at(text, place)
    keywords = words.stems(description) - words.VERBS - common
    if len(keywords) > MOST_WORDS:
        return False
    mentioned = [match.span() for match in WORD.finditer(text) if words.stem(match[0]) in keywords]
    distinct = {words.stem(text[slice(*span)]) for span in mentioned}
    return len(distinct) > 1 and not any(spans.denied_at(text, span) for span in mentioned)
