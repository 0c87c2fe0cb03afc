"""What the fuzzers start from: a wire of every dialect, the hard texts, and the pieces that are put into them."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "wire"))
sys.path.append(str(TESTS))  # behind tests/gateway, whose conftest is meant

from checks import Tools
from hard_cases import HARD, TOOLS as TYPED
from spoken import TALKING, wire, words
from wire_cases import CODE, DIALECTS, READ, TOOLS, WRITTEN

OFFERS: dict[str, Tools] = {"offered": (*TOOLS, *TYPED), "any": None, "none": ()}
THOUGHTS = ("split", "keep")
LONGEST = 800

NAMES = [d.name for d in DIALECTS]
TOLD = (("note", {"text": CODE, "count": 3, "tags": ["a", ""], "maybe": None}), ("ping", {}))
SEEDS = [(case.dialect, case.wire) for case in (*WRITTEN, *READ)]
SEEDS += [(d.name, wire(d, *TOLD)) for d in TALKING]
SEEDS += [(name, case.wire) for case in HARD for name in case.dialects.split() if name in NAMES]
MARKS = sorted({word for d in DIALECTS for word in words(d)})
THINKS = [mark for d in DIALECTS if d.thinking for mark in (d.thinking.open, d.thinking.close)]
SMALL = [
    *"{}[]()<>\"'\\, \n:=|`x1",
    "```json\n",
    '\\"',
    "\\n",
    "\\u00",
    "\\ud83d",
    "null",
    "None",
    "é",
    "😀",
    "note",
    "ping",
    '"type": "f", ',
    '"index": 7, ',
    '"id": "q", ',
    '"message": "m", ',
    '"arguments": {"k": 9}, ',
]
PIECES = [*MARKS, *THINKS, *SMALL]


@dataclass(frozen=True)
class Input:
    """One text for one dialect, and how it is to be read."""

    dialect: str
    text: str
    offer: str = "offered"
    thoughts: str = "split"
    prompt: str = ""


def mutated(rng: random.Random) -> Input:
    """A seed with some of it cut out, doubled, or replaced by something from elsewhere."""
    name, text = rng.choice(SEEDS)
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 5))):
        i, j = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        match rng.randrange(7):
            case 0:
                text = text[:i] + text[min(j, i + 8) :]
            case 1:
                text = text[:j] + text[i:]
            case 2:
                text = text[:i]
            case 3:
                text = text[:i] + rng.choice(SEEDS)[1][: rng.randrange(80)] + text[i:]
            case _:
                text = text[:i] + rng.choice(PIECES) + text[i:]
        text = text[:LONGEST]
    thinking = next(d.thinking for d in DIALECTS if d.name == name)
    prompt = thinking.open if thinking and rng.random() < 0.1 else ""
    offer = rng.choice(("offered", "offered", "offered", "any", "none"))
    return Input(name, text, offer, rng.choice(THOUGHTS), prompt)


def from_bytes(data: bytes) -> Input:
    """The input that some bytes stand for: a dialect, how it is read, then letters and pieces."""
    head, body = data[:4].ljust(4, b"\0"), data[4:]
    dialect = NAMES[(head[0] << 8 | head[1]) % len(NAMES)]
    own = [text for name, text in SEEDS if name == dialect]
    text = own[head[2] % len(own)] if own and head[2] & 0x80 else ""
    rest = iter(body)
    pieces = [chr(b) if b < 0x80 else PIECES[((b & 0x7F) << 8 | next(rest, 0)) % len(PIECES)] for b in rest]
    at = head[3] % (len(text) + 1)
    offer = list(OFFERS)[head[3] % len(OFFERS)]
    return Input(dialect, (text[:at] + "".join(pieces) + text[at:])[:LONGEST], offer, THOUGHTS[head[3] & 1])
