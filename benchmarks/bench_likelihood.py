"""What the embedded model's likelihoods cost, read at once by llama.cpp's C functions, beside its server's, one by one.

Each row is the least of three rounds over the same requests. New requests each time, so that what the rows have in common
is remembered by both and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from toolspeak.models.embedded import weights
from toolspeak.models.embedded.local import Local
from toolspeak.nlu.prompt import LOOK_UP, REPLY, framed
from toolspeak.types import Tool

ROUNDS = 3
CITIES = ("Lima", "Oslo", "Quito", "Accra", "Turin", "Perth", "Kyoto", "Tunis", "Sofia")
PIECES = ("Friday", "two", "hotel", "room", "by the sea", "quiet", "quiet room", "night", "Friday night", "a hotel in")


def place(name: str) -> Tool[..., object]:
    """A tool of the usual length."""
    text = {"type": "string", "description": f"The {name} that is meant, with its region where there are several."}
    date = {"type": "string", "description": "The day, as YYYY-MM-DD; today where none is given."}
    schema = {"type": "object", "properties": {"place": text, "date": date}, "required": ["place"]}
    return Tool(f"find_{name}", f"Finds a {name} for a day, with its price and how far it is.", schema)


def rows() -> Iterator[tuple[str, str, str]]:
    """The milliseconds of each way, and how many times as fast the first one is."""
    if not weights.present():
        yield "embedded model", "-", "not here: make fetch"
        return
    server = Local()._server()  # pyright: ignore[reportPrivateUsage]
    if server.llama is None:
        yield "C functions", "-", "this library is not as they are known"
        return
    tools = [place("hotel"), place("flight"), place("museum"), REPLY, LOOK_UP]

    def weighed(score: Callable[[str, str], object], asked: str) -> None:
        for tool in tools:
            score(f"{framed(tool)}\n# Request: ", asked)

    def ask(city: str) -> str:
        return f"I need a quiet room in {city} for Friday night and two more, what is there by the sea?\n"

    at_once = server.scores
    yield told(
        "a request of 25 tokens, 5 tools",
        lambda city: weighed(lambda prompt, text: at_once(prompt, [text]), ask(city)),
        lambda city: weighed(server.score, ask(city)),
    )
    lead = f"{framed(tools[0])}\n# Request: "
    yield told(
        "ten pieces for an argument",
        lambda city: at_once(f"{lead}{ask(city)}find_hotel(place=", [f'"{piece}"' for piece in PIECES]),
        lambda city: [server.score(f"{lead}{ask(city)}find_hotel(place=", f'"{piece}"') for piece in PIECES],
    )


def told(what: str, ours: Callable[[str], object], server: Callable[[str], object]) -> tuple[str, str, str]:
    """A row of the table."""
    fast, slow = (least(one, CITIES[i * ROUNDS : (i + 1) * ROUNDS]) for i, one in enumerate((ours, server)))
    return what, f"{fast * 1e3:.0f} ms", f"the server {slow * 1e3:.0f} ms: {slow / fast:.1f} times"


def least(one: Callable[[str], object], cities: tuple[str, ...]) -> float:
    """The least seconds of a few rounds, after one that warms up."""
    one("Bergen")
    taken: list[float] = []
    for city in cities:
        begin = time.perf_counter()
        one(city)
        taken.append(time.perf_counter() - begin)
    return min(taken)
