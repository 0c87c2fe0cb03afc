"""Settings of a gateway as dataclasses: models, keys, limits, storage. `load` reads them from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...policy.policy import Policy
from ...toolbox import Toolbox
from ...wire.dialect import Dialect
from ..call_policy import CallPolicy


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may hold and take. Sizes are in bytes, times in seconds.

    `body` and `head` (the request line and the headers) arrive within `reading`; `schema` bounds the JSON Schema of a
    tool or of a reply. `deadline` bounds a whole request; `first` the wait for its first event before the status is
    sent; `keep_alive` is the pause after which a silent stream is told to be alive; `running` requests are answered at
    once, `waiting` more may wait for `patience`; `drain` is what streams get to end once the gateway is told to stop. A
    request is sent to upstreams `attempts` times at most; one that failed `failures` times in a row is left alone for
    `rest`.
    """

    body: int = 10_000_000
    head: int = 32_768
    depth: int = 64
    values: int = 800_000
    schema: int = 262_144
    reading: float = 30.0
    deadline: float = 600.0
    first: float = 10.0
    keep_alive: float = 10.0
    running: int = 1024
    waiting: int = 128
    patience: float = 30.0
    drain: float = 30.0
    attempts: int = 3
    failures: int = 5
    rest: float = 10.0


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens of a model cost: those it reads (`input`), those of them that its server had `cached` (None:
    the same), and those it writes (`output`)."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A model as clients see it.

    `upstreams` are names as `toolspeak.model` takes them (`local`, `ollama:NAME`, `http://host:8000/v1#name`); several
    are taken in turns. `mode` says how tools are offered: `native` as the API has them, `chat` in a dialect inside
    messages, `raw` with the model's own template over /v1/completions, `auto` as a probe found. `arguments`: a call
    leaves `whole` and checked, or `live` as it is written; `auto`: live where the client asks for that, tool by tool. `tries`: how often a wrong reply is asked for again.
    `context` is how many tokens the model can read and write at once, where its server does not tell. `shown` is how
    many of many tools are chosen for a question (None: what suits the model; 0: all are shown, however many),
    `shown_tokens` what the definitions of those that are shown may have, `pinned` are names of tools that are always
    shown, or patterns of them. `repeats_noticed` is how often in a row the same call may have the same result before
    the model reads so, `repeats_ended` how often before the reply says so and calls no more (0: never). A result of
    more than `result_tokens` (None: a quarter of the context, where that is known; 0: however many) is shown in part,
    the rest is read by `read_more`. Of a conversation of more than `clear_results` tokens (0: however many) old results
    are cleared, all but the last `keep_results`. `price` is counted for keys with budgets. `key` is the upstream's."""

    name: str
    upstreams: tuple[str, ...]
    mode: Literal["auto", "native", "chat", "raw"] = "auto"
    dialect: str | Dialect | None = None
    template: str | None = None
    arguments: Literal["auto", "whole", "live"] = "auto"
    tries: int = 3
    context: int | None = None
    shown: int | None = None
    shown_tokens: int | None = None
    pinned: tuple[str, ...] = ()
    repeats_noticed: int = 3
    repeats_ended: int = 10
    result_tokens: int | None = None
    clear_results: int = 0
    keep_results: int = 5
    price: Price | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Budget:
    """What the owner of a key may use in a day (UTC): `tokens`, read and written, and `money` in the currency of the models'
    prices. None: any amount."""

    tokens: int | None = None
    money: float | None = None

    def __bool__(self) -> bool:
        return (self.tokens, self.money) != (None, None)


@dataclass(frozen=True, slots=True)
class Rates:
    """What the owner of a key may use: `requests` and `tokens` a minute, `running` requests at once. None: any
    number."""

    requests: int | None = None
    tokens: int | None = None
    running: int | None = None

    def __bool__(self) -> bool:
        return (self.requests, self.tokens, self.running) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Key:
    """A key that opens the gateway: only its SHA-256 is known. `models` are those it opens, None: all of them. `policy` says
    which calls its owner gets, in the place of the gateway's own. `metrics` says whose budgets it sees in /metrics: its own, or all.
    `mcp` are the MCP servers whose tools its owner's models get, in the place of the gateway's own; `NAME#PATTERN`: those tools alone."""

    name: str
    digest: bytes = field(repr=False)
    models: tuple[str, ...] | None = None
    rates: Rates = Rates()
    policy: CallPolicy | None = None
    budget: Budget = Budget()
    metrics: Literal["own", "all"] = "own"
    mcp: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class McpServer:
    """An MCP server whose tools the gateway offers and runs.

    `server` is its address, or the words of the command that starts it. `env` and `cwd` are for a command, `headers` for an address. `only` and `without` are names or patterns of its tools;
    `prefix` goes before each. A call, and connecting, take `timeout` seconds at most; `running` calls are made at once by a process.
    `pins` is the file in which its definitions are pinned, True: the user's own.
    """

    server: str | tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    prefix: str = ""
    timeout: float = 60.0
    running: int = 16
    pins: str | bool = True


@dataclass(frozen=True, slots=True)
class Store:
    """A SQLite file, for what all workers share: the counts of keys that have rates or budgets and, where `responses` says so,
    the replies of /v1/responses, up to `size` bytes in all and `age` seconds each."""

    path: str
    responses: bool = False
    size: int = 256_000_000
    age: float = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Audit:
    """A SQLite file for decisions about calls, each kept for `age` seconds; with the `arguments` of calls or without."""

    path: str
    arguments: bool = False
    age: float = 90 * 86400.0


@dataclass(frozen=True, slots=True)
class Batches:
    """Files and batches, in the folder `path`.

    A file has `file` bytes at most, a key has `files` files with `size` bytes in all, each for `age` seconds. A batch has
    `rows` lines at most; `waiting` batches of a key may be unfinished. A process works on `running` batches at once, and
    on `concurrency` lines of each.
    """

    path: str
    file: int = 200_000_000
    files: int = 500
    size: int = 5_000_000_000
    age: float = 30 * 86400.0
    rows: int = 50_000
    waiting: int = 50
    running: int = 4
    concurrency: int = 16


@dataclass(frozen=True, slots=True)
class Page:
    """The page at /ui. `live` is how many requests are kept in memory to be seen there, 0 for none; each key sees its own,
    the `operators` among the keys everybody's. `tools` are those that its playground may run, by `policy` or by hand
    without one; `reports` is a folder with results of evaluations."""

    live: int = 0
    operators: tuple[str, ...] = ()
    tools: Toolbox | None = field(default=None, compare=False)
    policy: Policy | None = None
    reports: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole gateway. Once there are `keys`, every route needs one; `insecure` lets anybody in from anywhere without.

    `aliases` are names or patterns (`large-*`) of models that clients ask for, with the model that answers; the first
    that fits counts. `default` is the model for any other name. `hosted` are tools of the operator's by the types of
    those that a provider runs (`web_search`). `mcp` are MCP servers by name, `offered` those whose tools all clients' models
    get whose keys do not say otherwise. `tool_turns` is how often one reply may call tools that run here. `policy` says which calls clients get whose keys have none. `cors` are the origins of web pages that may ask, `*` for any. `record` is the
    folder for recordings, a file for each model. `ui` has the page served at /ui.
    """

    models: Mapping[str, ModelSettings]
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    cors: tuple[str, ...] = ()
    limits: Limits = Limits()
    keys: tuple[Key, ...] = ()
    insecure: bool = False
    store: Store | None = None
    batches: Batches | None = None
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    default: str | None = None
    hosted: Mapping[str, str] = field(default_factory=dict[str, str])
    mcp: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    offered: tuple[str, ...] = ()
    tool_turns: int = 6
    policy: CallPolicy | None = None
    audit: Audit | None = None
    record: str | None = None
    ui: Page | None = None
