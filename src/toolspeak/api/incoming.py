"""A client's request, whatever its API: the request itself and how the reply is to be sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..types import Reply, Request, Step, Tool
from .named_servers import NamedServer

HOSTED = "hosted"
"""The type, in `IncomingRequest.names`, of a tool of the operator's whose calls are run here. It has the `server`
that it belongs to, "" where it stands for a tool of the provider's."""


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request as it came through one of the APIs.

    `stream`: events rather than one body. `usage`: tell the tokens spent at the end of a stream. `n` replies are
    wanted, each to a request of its own in `several` where there are several. `thoughts`: tell the reasoning. `ignored`
    are the names of fields that say nothing to us; the gateway names them in a header. `echo` is what the API repeats
    of the request in its reply; `names` has by the names of tools their types and the names that calls of them are told
    with, where the API has several types; `eager` are the names of the tools whose calls are told while they are written;
    `hosted` are the types of the tools that were left out because their provider
    runs them, each with its name in `ignored`. `demanded` is the type of one of those that must be called ("required": of any). `previous` is the id of the stored response to go on from, and `store`
    whether to keep this one. `schema_field` is the field that holds the schema of the reply. `servers` are the MCP servers that the client names, and
    `listings` has by the labels of such servers the tools that it is told to have. `tells_servers`: the client is told the calls of MCP servers' tools that are run here. `sealed`: it keeps what only the
    server reads.
    """

    model: str
    request: Request
    stream: bool = False
    usage: bool = True
    n: int = 1
    several: tuple[Request, ...] = ()
    thoughts: bool = True
    ignored: tuple[str, ...] = ()
    echo: Mapping[str, Any] = field(default_factory=dict[str, Any])
    names: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict[str, tuple[str, Mapping[str, Any]]])
    eager: frozenset[str] = frozenset()
    hosted: tuple[tuple[str, str], ...] = ()
    demanded: str = ""
    previous: str = ""
    store: bool = False
    schema_field: str = "response_format"
    servers: tuple[NamedServer, ...] = ()
    listings: Mapping[str, tuple[Tool[..., Any], ...]] = field(default_factory=dict[str, tuple[Tool[..., Any], ...]])
    tells_servers: bool = False
    sealed: bool = False

    @property
    def requests(self) -> tuple[Request, ...]:
        """The request behind each reply. Of one seed all replies would be alike: each has its own."""
        if self.several:
            return self.several
        request = self.request if self.stream else replace(self.request, whole=True)
        if request.seed is None:
            return (request,) * self.n
        seed = min(request.seed, 2**63 - self.n)
        return (request, *(replace(request, seed=seed + i) for i in range(1, self.n)))

    def visible_steps(self, reply: Reply) -> tuple[Step, ...]:
        """The steps of a reply that a client is shown: those in which tools of the operator's were run. Steps in which
        a model was asked again are nobody's business."""
        return reply.steps if self.run_here else ()

    @property
    def run_here(self) -> frozenset[str]:
        """The names of the tools whose calls are run here and told to the client."""
        return frozenset(name for name, (kind, _) in self.names.items() if kind == HOSTED)

    def server_of(self, name: str) -> str:
        """The server of a tool whose calls are run here; "" for one that stands for a tool of the provider's."""
        return str(self.names[name][1]["server"])

    def with_runs(self, servers: Mapping[str, str]) -> IncomingRequest:
        """The request whose client is told the calls of tools that are run here: by their names the servers, "" for one that
        stands for a tool of the provider's."""
        runs = {name: (HOSTED, {"server": server}) for name, server in servers.items()}
        return replace(self, names={**self.names, **runs})


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a reply carries beside its content: its id (`chatcmpl-…` without the prefix), when, from which model.

    `created` is in seconds since 1970; `times` gives the seconds from the request to the first of its answer and until
    now. Ids and time are arguments, for the core knows neither.
    """

    id: str
    created: int
    model: str
    times: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)
