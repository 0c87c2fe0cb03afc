"""The values that everything else passes around: tools, messages, calls, requests, replies.

Frozen, slotted, standard library only, and no behaviour beyond equality (a `Tool` can also be
called, because it stands where its function stood).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

Schema = Mapping[str, Any]
"""A JSON Schema (2020-12), as Python data."""

Finish = Literal["stop", "tool_calls", "length", "limit", "content_filter"]
"""Why a reply ended: `limit` is a limit of the caller's (steps, seconds, tokens), `length` the model's."""

Build = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[list[Any], dict[str, Any]]]
"""(arguments, injected values) -> (positional, by name), Python values both."""

ToolEffect = Literal["read", "write", "destructive"]
"""What a call does to the world: nothing, something, or something that cannot be undone."""

Origin = Literal["trusted", "untrusted"]
"""Whose words a result holds: the application's own, or those of whoever wrote what the tool read."""

NO_ARGUMENTS: Schema = {"type": "object", "properties": {}}


class Message(TypedDict, total=False):
    """One message of a conversation in OpenAI's chat form, so that it can be stored and sent as it is.

    `role` is system, developer, user, assistant or tool. `content` is text, a list of OpenAI's content
    parts, or None. An assistant's thought is `reasoning_content`; `phase` says which part of a turn it is, where the API
    has such. `origin` says of a result that came under a policy
    whether it may be trusted; no model's server is sent it.
    """

    role: str
    content: str | list[dict[str, Any]] | None
    reasoning_content: str
    phase: str
    tool_calls: list[dict[str, Any]]
    tool_call_id: str
    name: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was repaired, dropped or doubtful: the rule, what it met, and where.

    `at` is an offset in characters into the text that the note speaks of, -1 where there is none.
    """

    rule: str
    detail: str = ""
    at: int = -1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a call: where, what was expected, what came, and a sentence for the model.

    `path` is a JSON pointer into the arguments, "" for the call itself.
    """

    path: str
    expected: str
    received: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model wrote: `arguments` is a dict, `json` the text it came from.

    `whole` is False when the text was cut or left its dialect in the middle of the call: such a call is
    shown, never run.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    json: str = ""
    notes: tuple[Note, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of a call: the tool's `value`, or the `error` it raised; `text` is that as the model
    reads it, of a long one a part at a time. `origin` is whether it may be trusted, None where no policy asks."""

    id: str
    name: str
    text: str
    value: Any = None
    error: BaseException | None = field(default=None, compare=False)
    seconds: float = field(default=0.0, compare=False)
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for somebody's approval, as plain data.

    `why` says which rule wants that, `origin` whether the conversation holds untrusted results. An answer holds for the
    `digest`: of the tool's definition (whose own digest is `definition`), the arguments, the conversation before the call
    and `expires`, in seconds since 1970.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    why: str
    origin: Origin
    digest: str
    definition: str
    expires: float


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens spent, as far as the model tells; `estimated` where somebody had to guess."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a run: what the model replied, and what its calls gave.

    `rung` says in which way the model was asked again, such as `told` or `alone`; "" where it was not.
    """

    reply: Reply
    results: tuple[ToolResult, ...] = ()
    rung: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Reply:
    """What a model answered: text, thought, calls, why it ended, what was repaired on the way.

    `messages` is the conversation to go on from, this reply included; `steps` the turns of a run, or the tries of a
    decision that was asked again. `logprobs` are the likelihoods of the text's tokens where they were asked for and
    told, each in OpenAI's form. `pending` are the calls that wait for somebody's approval: `toolspeak.resume` goes on.
    `output` is the answer of a run as a value, where a type was asked for.
    """

    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    notes: tuple[Note, ...] = ()
    usage: Usage = Usage()
    messages: list[Message] = field(default_factory=list[Message])
    steps: tuple[Step, ...] = ()
    logprobs: tuple[Mapping[str, Any], ...] = ()
    pending: tuple[Pending, ...] = ()
    output: Any = None

    def __repr__(self) -> str:
        """The turns of the reply on a few lines."""
        from .display import reply_text

        return reply_text(self)

    def _repr_html_(self) -> str:
        from .display import reply_html

        return reply_html(self)

    def to_json(self) -> str:
        """The conversation and what is pending in it, as JSON text that `toolspeak.resume` takes."""
        import dataclasses
        import json

        return json.dumps({"messages": self.messages, "pending": [dataclasses.asdict(one) for one in self.pending]})


@dataclass(frozen=True, slots=True)
class Tool(Generic[P, R]):
    """A function that a model may call: its name, what it does, and the JSON Schema of its arguments.

    `injected` are the parameters that the application fills in: they are in no schema. `timeout` is in
    seconds. `strict` asks a server that knows the word to hold its sampling to the schema; arguments are
    checked in any case. A tool without a `function` can be offered and decided on, not run. Calling a tool calls its
    function, so a decorated function stays usable as one, and a decorated method binds like one.
    `build` turns checked JSON arguments and the injected values into what the function is called with;
    without it they are passed by name, as they are. Without `show_errors` a model reads that the tool failed, and not
    what its function raised. `examples` are arguments of good calls, which a model is shown. A policy looks at `effect`,
    what a call does, and at `reads`, whether the words that it brings may be trusted.
    """

    name: str
    description: str = ""
    parameters: Schema = field(default_factory=lambda: NO_ARGUMENTS)
    function: Callable[P, R] | None = field(default=None, compare=False)
    injected: tuple[str, ...] = ()
    timeout: float | None = None
    build: Build | None = field(default=None, compare=False, repr=False)
    strict: bool = False
    show_errors: bool = True
    examples: tuple[Mapping[str, Any], ...] = ()
    effect: ToolEffect = "write"
    reads: Origin = "trusted"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.function is None:
            raise TypeError(f"the tool {self.name!r} has no function to call: it was made from a schema alone")
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R]:
        bind = getattr(self.function, "__get__", None)
        if bind is None or (instance is None and not isinstance(self.function, classmethod)):
            return self
        return replace(self, function=bind(instance, owner))

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """The function, for `inspect.signature` and its like."""
        if self.function is None:
            raise AttributeError(f"the tool {self.name!r} has no function")
        return self.function

    @property
    def __name__(self) -> str:
        return self.name


class _ToolDoc:
    """The class's own docstring on the class, the function's on a tool, for `help()`."""

    def __init__(self, of_class: str | None) -> None:
        self.of_class = of_class

    def __get__(self, instance: Tool[..., Any] | None, owner: type) -> str | None:
        if instance is None:
            return self.of_class
        return getattr(instance.function, "__doc__", None) or instance.description


type.__setattr__(Tool, "__doc__", _ToolDoc(Tool.__doc__))


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked: a conversation (or, for a text model, the exact `prompt` to continue).

    `tools`: None says nothing about tools, () offers none. `choice` is auto, none, required or the name
    of an offered tool. `ranked` are the names of those that whoever chose among more found to fit the question, best
    first, with their scores from 0 to 1: a model that weighs one tool at a time begins with them, and counts how well
    each was found. `late` are the names of tools that came up later in the conversation, with the place of the message that
    each is told behind, so that the beginning of a prompt stays as it is; `hidden` are further tools that no model is shown,
    and that it may call all the same. `deferred` are the names of tools among `tools` that a model is not shown before something
    refers to them, with the place of the message that does (None: nothing yet); whoever chooses tools sees to it, and offers
    a search for them where the client has none (`search`). `schema` is a JSON Schema that the text of the reply must fit, `grammar` a GBNF grammar, `tag` a
    structural tag of xgrammar's; a model that cannot hold its sampling to them refuses. `max_tokens` bounds the reply.
    `thinking` asks for reasoning before the answer, or for none; None leaves it to the model. `logprobs` asks
    for the likelihood of each token of the text, beside that of so many others. `sampling` are further
    settings by the names of OpenAI's API (top_p, frequency_penalty, …) and its neighbours' (top_k, min_p, …):
    a model that does not know one refuses it. `whole`: nobody listens to the reply as it comes, so that it may
    come in one piece.
    """

    messages: Sequence[Message] = ()
    tools: tuple[Tool[..., Any], ...] | None = None
    choice: str = "auto"
    parallel: bool = True
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    schema: Schema | None = None
    grammar: str | None = None
    tag: Mapping[str, Any] | None = None
    prompt: str | None = None
    thinking: bool | None = None
    logprobs: int | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    whole: bool = False
    ranked: Mapping[str, float] = field(default_factory=dict[str, float])
    late: Mapping[str, int] = field(default_factory=dict[str, int])
    hidden: tuple[Tool[..., Any], ...] = ()
    deferred: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    search: bool = True


V = TypeVar("V")


def copy_with(value: V, **changes: Any) -> V:
    """The same value with other fields: what `dataclasses.replace` gives, in a third of its time.

    For a dataclass with slots whose constructor does nothing but fill them.
    """
    read, write, places = _fields_of(type(value))
    row = [*read(value)]
    for name, new in changes.items():
        row[places[name]] = new
    made: V = object.__new__(type(value))
    for put, field_value in zip(write, row, strict=True):
        put(made, field_value)
    return made


@cache
def _fields_of(
    kind: type,
) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[Callable[[Any, Any], None], ...], dict[str, int]]:
    """What reads all fields of a value of this class, what writes each, and the place of each."""
    names = [each.name for each in fields(cast("Any", kind))]
    write = tuple(getattr(kind, name).__set__ for name in names)
    return attrgetter(*names), write, {name: place for place, name in enumerate(names)}
