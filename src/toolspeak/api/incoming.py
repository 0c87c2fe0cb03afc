"""A client's request in any API: the request to the model, and how to send the reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..types import Reply, Request, Step, Tool, copy_with
from .named_servers import NamedServer

HOSTED = "hosted"
"""The type, in `IncomingRequest.names`, of a tool of the operator's whose calls are run here. It has the `server`
that it belongs to, "" where it stands for a tool of the provider's."""


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """A request that came through one of the APIs.

    - `stream`: send events rather than one body. `usage`: report the tokens at the end of a stream. `thoughts`: send
      the reasoning.
    - `n` replies are wanted; `several` has a request for each, if they differ.
    - `ignored` are the names of fields without effect, which the gateway lists in a header. `echo` is what the API
      repeats of the request in its reply. `schema_field` is the field with the schema of the reply.
    - `names` maps names of tools to their types and the names under which calls are reported, if the API has several
      types of tools. `eager` are the names of tools whose calls are streamed while they are written.
    - `hosted` are the types of tools that were left out because their provider runs them, each with its name in
      `ignored`. `demanded` is the type of one of those that must be called ("required": any of them).
    - `previous` is the id of the stored response to continue, `store` whether to store this one.
    - `servers` are the MCP servers that the client names. `listings` maps their labels to the tools that the client is
      told about. `tells_servers`: the client is told about calls of MCP tools that are run here. `sealed`: it sends
      back data that only the server reads. `compacts`: the reply is a summary that replaces the conversation.
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
    compacts: bool = False

    @property
    def requests(self) -> tuple[Request, ...]:
        """Return the request for each reply. With a seed each one gets its own, or all replies would be the same."""
        if self.several:
            return self.several
        request = self.request if self.stream else copy_with(self.request, whole=True)
        if request.seed is None:
            return (request,) * self.n
        seed = min(request.seed, 2**63 - self.n)
        return (request, *(copy_with(request, seed=seed + i) for i in range(1, self.n)))

    def visible_steps(self, reply: Reply) -> tuple[Step, ...]:
        """Return the steps of a reply that the client sees: those in which the operator's tools were run. Steps in
        which a model was asked again are hidden."""
        return reply.steps if self.run_here else ()

    @property
    def run_here(self) -> frozenset[str]:
        """Return the names of the tools whose calls are run here and reported to the client."""
        return frozenset(name for name, (kind, _) in self.names.items() if kind == HOSTED)

    def server_of(self, name: str) -> str:
        """Return the MCP server of a tool that is run here; "" for one in place of a provider's tool."""
        return str(self.names[name][1]["server"])

    def with_runs(self, servers: Mapping[str, str]) -> IncomingRequest:
        """Return the request for a client that is told about calls that are run here. `servers` maps tools to their MCP
        servers, "" for a tool in place of a provider's."""
        runs = {name: (HOSTED, {"server": server}) for name, server in servers.items()}
        return replace(self, names={**self.names, **runs})


@dataclass(frozen=True, slots=True)
class Stamp:
    """The metadata of a reply: its id (`chatcmpl-…` without the prefix), its time and its model.

    `created` is in seconds since 1970. `times` returns the seconds from the request to the first token and until now.
    Both are arguments because this package has no clock and no randomness.
    """

    id: str
    created: int
    model: str
    times: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)
