"""OpenAPI documents as tools: each operation is one, called over HTTP.

    pets = ts.openapi("https://pets.example/openapi.json", auth="$PETS_KEY")
    ts.run("Is Rex still there?", tools=pets)

The document is not trusted: its content is checked, the addresses of its requests are restricted, and credentials come
only from the configuration and go to one server only.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ...display import on_one_line
from ...errors import InvalidTool, UsageError
from ...schema.suggestions import did_you_mean, near
from ...secret_removal import Secrets, in_header
from ...toolbox import Toolbox
from ...types import Tool
from ..definition_checks import refuse_hostile
from .auth import Auth, Keys, clean_headers
from .calling import function_of
from .document import Document, load
from .fetching import Bounds, origin
from .operations import SAFE, Maker, NamedOperation, operations_of
from .servers import Servers

TIMEOUT = 30.0
LIMIT = 4_000_000
REFUSED = 10
"""The most refused operations that one error names."""


def openapi(
    document: str | Path | Mapping[str, Any],
    *,
    auth: Auth = None,
    only: str | Sequence[str] = (),
    without: str | Sequence[str] = (),
    read_only: bool = False,
    server: str | None = None,
    variables: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    allow_private: bool = False,
    timeout: float = TIMEOUT,
    limit: int = LIMIT,
) -> Toolbox:
    """Return the operations of an OpenAPI 3 document, each as a tool that calls its server.

    `document` is a path, a URL or a dict. `only` and `without` select operations by name, by path (`/pets/*`) or by tag
    (`tag:pets`); `read_only` keeps those that change nothing (GET, HEAD). `auth` is a secret, or a dict with one per
    security scheme; a user and password are a pair; `$NAME` is read from the environment. `headers` are sent with every
    request, also with that for a document at a URL. A model sees none of these and cannot set them.

    `server` replaces the document's own, and `variables` fill the placeholders in its address. Private addresses are
    allowed only for `server`, for the URL of the document, or with `allow_private`. `timeout` is in seconds per call,
    `limit` in bytes per response. Raises UsageError, and InvalidTool for an operation that must not be shown to a
    model.
    """
    if not timeout > 0 or not limit > 0:
        raise UsageError(f"timeout and limit must be above 0, got {timeout!r} and {limit!r}")
    sent = clean_headers(headers)
    secrets = [form for value in sent.values() for form in in_header(value)]
    with _without(secrets):
        read = load(document, timeout, sent, allow_private=allow_private)
        keys = Keys(read, auth, headers)
        secrets += keys.secrets
        servers = Servers(read, server, variables)
        chosen = _chosen(operations_of(read), _listed(only), _listed(without), read_only, read)
        home = servers.base(None if read.data.get("servers") else chosen[0]) if chosen else ""
        if keys.any and not server:
            _refuse_elsewhere(home, read)
        bounds = Bounds(servers.private, origin(home) if home else None, limit, allow_private)
        return Toolbox(_tools(Maker(read, keys), chosen, servers, bounds, timeout))


@contextmanager
def _without(secrets: Sequence[str]) -> Generator[None]:
    """Remove the secrets from errors, because a server may put what it was sent into its document."""
    try:
        yield
    except InvalidTool as error:
        out_of = Secrets(secrets).out_of
        raise InvalidTool(out_of(str(error)), tool=out_of(error.tool), path=out_of(error.path)) from None
    except UsageError as error:
        text = Secrets(secrets).out_of(str(error))
        if text == str(error):
            raise
        raise UsageError(text) from None


def _refuse_elsewhere(server: str, document: Document) -> None:
    """Raises UsageError if a fetched document names a server elsewhere, which would get the credentials."""
    if server and document.url and _elsewhere(server, document.url):
        raise UsageError(
            f"{document.name} names the server {server}, on another host than the document's or without encryption: pass "
            f"server={server!r} if the credentials may be sent there"
        )


def _elsewhere(server: str, document: str) -> bool:
    """Whether a server is on another host than the document that names it, or less secure."""
    there, here = origin(server), origin(document)
    return there[1] != here[1] or (here[0] == "https" and there[0] != "https")


def _tools(
    maker: Maker, chosen: Sequence[NamedOperation], servers: Servers, bounds: Bounds, timeout: float
) -> list[Tool[..., Any]]:
    """Return the tools of the operations. InvalidTool says why the first refused one is refused, and names others."""
    tools: list[Tool[..., Any]] = []
    secrets = Secrets(maker.keys.secrets if maker.document.url else ())
    refused: dict[str, InvalidTool] = {}
    for one in chosen:
        try:
            tools.append(_tool(maker, one, servers, bounds, timeout, secrets))
        except InvalidTool as error:
            refused[one.name] = error
            if len(refused) == REFUSED:
                break
    if not refused:
        return tools
    names, first = list(refused), next(iter(refused.values()))
    what = f"it out, with without={names[0]!r}" if len(names) == 1 else f"out what is refused, with without={names}"
    more = ", and what is refused of the others" if len(names) == REFUSED else ""
    raise InvalidTool(f"{first}. Leave {what}{more}", tool=first.tool, path=first.path)


def _tool(
    maker: Maker, named: NamedOperation, servers: Servers, bounds: Bounds, timeout: float, secrets: Secrets
) -> Tool[..., Any]:
    """Return the tool of an operation, whose definition has none of the `secrets` that its server knows."""
    try:
        spec = maker.operation(named)
        name, description, parameters = secrets.out_of_data([named.name, spec.description, spec.parameters])
        refuse_hostile(name, description, parameters)
    except RecursionError:
        raise InvalidTool(
            f"{maker.document.name}, {named.title}: its schemas are nested too deeply",
            tool=named.name,
        ) from None
    except InvalidTool as error:
        raise InvalidTool(
            on_one_line(f"{maker.document.name}, {named.title}: {error}"),
            tool=error.tool,
            path=error.path,
        ) from None
    keys = maker.keys
    credentials = keys.credentials(named.node)
    advice = ""
    if not keys.user_secrets and (wanted := keys.wanted(named.node)):
        advice = "no credentials were given: auth=… for " + " or ".join(
            " and ".join(names) for names in wanted if names
        )
    function = function_of(spec, servers.base(named), credentials, bounds, keys, advice)
    effect = "read" if named.method in SAFE else "destructive" if named.method == "delete" else "write"
    return Tool(
        name, description, parameters, function, timeout=timeout, effect=effect, reads="untrusted",
        sent_as_text=spec.sent_as_text,
    )  # fmt: skip


def _listed(patterns: str | Sequence[str]) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns)


def _chosen(
    operations: list[NamedOperation], only: list[str], without: list[str], read_only: bool, document: Document
) -> list[NamedOperation]:
    """Return the operations that are wanted. Raises UsageError for a pattern that matches none."""
    for pattern in (*only, *without):
        if not any(_fits(one, [pattern]) for one in operations):
            known = [one.name for one in operations]
            hint = did_you_mean(near(pattern, known)) or f" There are {_few(known)}"
            raise UsageError(f"{document.name} has no operation {pattern!r}.{hint}")
    chosen = [one for one in operations if (not only or _fits(one, only)) and not _fits(one, without)]
    return [one for one in chosen if one.method in SAFE] if read_only else chosen


def _fits(one: NamedOperation, patterns: Iterable[str]) -> bool:
    for pattern in patterns:
        if pattern.startswith("/"):
            fits = fnmatchcase(one.path, pattern)
        elif pattern.startswith("tag:"):
            fits = any(fnmatchcase(tag, pattern[4:]) for tag in one.tags)
        else:
            fits = fnmatchcase(one.name, pattern)
        if fits:
            return True
    return False


def _few(names: list[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "") or "none"
