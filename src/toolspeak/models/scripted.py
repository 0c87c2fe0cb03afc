"""A model that returns given replies and records its requests: the test double, for users too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from ..errors import ModelError
from ..events import Event, Finished, TextDelta
from ..types import Request
from .base import Capability
from .sampling import NONE, Sampling


class Scripted:
    """Returns `replies` one after another: a text (sent in pieces of `chunk` characters), a list of events, or an
    error. A single text instead of a list is the only reply.

    With texts it is a text model, for a dialect to parse; `capabilities=["tools"]` makes it one that sends events.
    `requests` has every request. After the last reply it raises ModelError, unless `repeat` is set: then it repeats the
    last reply. With `cycle` it starts again from the first, and keeps no requests, which is for servers.
    """

    name = "scripted"

    def __init__(
        self,
        replies: str | Iterable[str | Sequence[Event] | Exception],
        *,
        capabilities: Iterable[Capability] = (),
        chunk: int = 4,
        repeat: bool = False,
        cycle: bool = False,
        defaults: Sampling = NONE,
    ) -> None:
        self.replies = [replies] if isinstance(replies, str) else list(replies)
        self.requests: list[Request] = []
        self.capabilities: frozenset[Capability] = frozenset(capabilities)
        self.chunk = chunk
        self.repeat = repeat
        self.cycle = cycle
        self._turn = 0
        self.defaults = defaults

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        turn, count = self._turn, len(self.replies)
        self._turn += 1
        if not self.cycle:
            self.requests.append(self.defaults.fill(request))
        place = turn % max(count, 1) if self.cycle else min(turn, count - 1) if self.repeat else turn
        if not 0 <= place < count:
            replies = "1 reply" if count == 1 else f"{count} replies"
            raise ModelError(f"the script holds {replies} and was asked for one more")
        reply = self.replies[place]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            for i in range(0, len(reply), self.chunk):
                yield TextDelta(reply[i : i + self.chunk])
            yield Finished("stop")
        else:
            for event in reply:
                yield event
