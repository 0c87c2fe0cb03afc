"""The settings of a gateway as dataclasses: models, keys, limits, storage. `load` reads them from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ...policy.policy import Policy
from ...toolbox import Toolbox
from ...wire.dialect import Dialect
from ..call_policy import CallPolicy


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """Limits of a request. Sizes are in bytes, times in seconds.

    - `body` and `head` (the request line and the headers) must arrive within `reading`. `depth` and `values` bound the
      JSON of a body, `schema` the JSON Schema of a tool or of a reply.
    - `deadline` bounds a whole request. `first` is the longest wait for the first event before the status is sent, and
      `keep_alive` the pause in a stream after which a keep-alive is sent.
    - `running` requests are answered at once; `waiting` more may wait for `patience`.
    - `drain` is the time that open streams get once the gateway is told to stop.
    - A request is sent to upstreams `attempts` times at most. An upstream at which `failures` requests in a row failed
      gets no requests for `rest`.
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
    """The price of a million tokens of a model: of input tokens (`input`), of those that its server had `cached` (None:
    the same), and of output tokens (`output`)."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A model as clients see it.

    - `upstreams` are names for `toolspeak.model` (`local`, `ollama:NAME`, `http://host:8000/v1#name`); several are used
      in turn. `key` is the upstream's key, from the variable or file `key_source`. `price` is for keys with budgets.
    - `mode` says how tools are offered: `native` by the API, `chat` in a dialect inside messages, `raw` with the
      model's own template over /v1/completions, `auto` as a probe finds out.
    - `arguments`: a call is sent `whole` after its check, or `live` while it is written. `auto` is live for tools for
      which the client asks for it. `tries` is the number of attempts to get valid calls.
    - `context` is the number of tokens that the model can read and write, if its server does not report it.
    - `max_tools` is how many of many tools the model sees, chosen by the question (None: as suits the model; 0: all).
      `tool_tokens` bounds the tokens of their definitions. `pinned` are names, or patterns of names, of tools that the
      model always sees.
    - `repeats_noticed`: after so many equal calls in a row with similar results, the model is told. `repeats_ended`:
      after so many, the reply says so and makes no further call (0: never).
    - A result of more than `result_tokens` (None: a quarter of the context, if known; 0: no limit) is shown in part;
      the model can read the rest with the tool `read_more`.
    - In a conversation of more than `clear_results` tokens (0: no limit) old results are cleared, except for the last
      `keep_results`.
    """

    name: str
    upstreams: tuple[str, ...]
    mode: Literal["auto", "native", "chat", "raw"] = "auto"
    dialect: str | Dialect | None = None
    template: str | None = None
    arguments: Literal["auto", "whole", "live"] = "auto"
    tries: int = 3
    context: int | None = None
    max_tools: int | None = None
    tool_tokens: int | None = None
    pinned: tuple[str, ...] = ()
    repeats_noticed: int = 3
    repeats_ended: int = 10
    result_tokens: int | None = None
    clear_results: int = 0
    keep_results: int = 5
    price: Price | None = None
    key: str | None = field(default=None, repr=False)
    key_source: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a key may use in a day (UTC): `tokens`, input and output, and `money` in the currency of the models' prices.
    None: no limit."""

    tokens: int | None = None
    money: float | None = None

    def __bool__(self) -> bool:
        return (self.tokens, self.money) != (None, None)


@dataclass(frozen=True, slots=True)
class Rates:
    """What a key may use: `requests` and `tokens` per minute, and `running` requests at once. None: no limit."""

    requests: int | None = None
    tokens: int | None = None
    running: int | None = None

    def __bool__(self) -> bool:
        return (self.requests, self.tokens, self.running) != (None, None, None)


@dataclass(frozen=True, slots=True)
class Key:
    """An API key, known only by its SHA-256.

    `models` are those it may use, None: all. `policy` replaces the gateway's policy for its calls. `metrics` says whose
    budgets it sees in /metrics: its `own`, or `all`. `mcp` are the MCP servers whose tools its models get, in place of
    the gateway's; `NAME#PATTERN` stands for some tools of a server.
    """

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

    `server` is its address, or the words of the command that starts it. `env` and `cwd` are for a command, `headers`
    for an address. `only` and `without` are names or patterns of its tools; `prefix` is put before each name. A call,
    and connecting, take `timeout` seconds at most; a process makes `running` calls at once. `pins` is the lock file of
    its definitions, True: the user's own.
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
class StoreSettings:
    """A SQLite file with what all workers share: the counters of keys with rates or budgets and, with `responses`, the
    replies of /v1/responses, up to `size` bytes in all and for `age` seconds each."""

    path: str
    responses: bool = False
    size: int = 256_000_000
    age: float = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Audit:
    """A SQLite file for decisions about calls, each stored for `age` seconds; with `arguments`, their arguments too."""

    path: str
    arguments: bool = False
    age: float = 90 * 86400.0


@dataclass(frozen=True, slots=True)
class Batches:
    """Files and batches, in the folder `path`.

    A file has `file` bytes at most. A key has at most `files` files with `size` bytes in all, each for `age` seconds. A
    batch has `rows` lines at most; a key may have `waiting` unfinished batches. A process works on `running` batches at
    once, and on `concurrency` lines of each.
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
class PageSettings:
    """The page at /ui. `live` is how many requests are kept in memory for it, 0 for none. Each key sees its own
    requests, the keys in `operators` all of them. `tools` are those that its playground may run, by `policy`, or by
    hand without one. `reports` is a folder with results of evaluations, which only operators see if there are keys."""

    live: int = 0
    operators: tuple[str, ...] = ()
    tools: Toolbox | None = field(default=None, compare=False)
    policy: Policy | None = None
    reports: str | None = None


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """A whole gateway. If there are `keys`, every route needs one; `insecure` allows other machines without any.

    - `aliases` maps names or patterns (`large-*`) that clients use to models; the first match counts. `default` is the
      model for any other name.
    - `hosted` maps types of tools that a provider runs (`web_search`) to tools of the operator. `mcp` are MCP servers
      by name; `offered` are those whose tools the models of all clients get, unless a key says otherwise. `tool_turns`
      is how often one reply may call tools that run here.
    - `policy` is the policy for clients whose key has none. `cors` are the origins of web pages that may send requests,
      `*` for any. `record` is the folder for recordings, one file per model. `ui` turns on the page at /ui.
    """

    models: Mapping[str, ModelSettings]
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    cors: tuple[str, ...] = ()
    limits: GatewayLimits = GatewayLimits()
    keys: tuple[Key, ...] = ()
    insecure: bool = False
    store: StoreSettings | None = None
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
    ui: PageSettings | None = None
