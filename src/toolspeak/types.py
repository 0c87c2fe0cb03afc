"""The values that all other modules exchange: tools, messages, calls, requests, replies.

Frozen, slotted, standard library only, and without behavior beyond equality. (A `Tool` can also be called, because it
replaces its function where that was decorated.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

Schema = Mapping[str, Any]
"""A JSON Schema (2020-12), as Python data."""

Finish = Literal["stop", "tool_calls", "length", "limit", "content_filter"]
"""Why a reply ended. `limit` is a limit of the caller (steps, seconds, tokens), `length` one of the model."""

Build = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[list[Any], dict[str, Any]]]
"""Maps (arguments, injected values) to (positional, keyword) Python values."""

ToolEffect = Literal["read", "write", "destructive"]
"""The effect of a call: it changes nothing, it changes something, or it changes something irreversibly."""

Origin = Literal["trusted", "untrusted"]
"""Whether a result is trusted: it has the application's own words, or words of whoever wrote what the tool read."""

NO_ARGUMENTS: Schema = {"type": "object", "properties": {}}


class Message(TypedDict, total=False):
    """One message of a conversation in OpenAI's chat format, so that it can be stored and sent as it is.

    `role` is system, developer, user, assistant or tool. `content` is text, a list of OpenAI's content parts, or None.
    An assistant's thought is `reasoning_content`; `phase` says which part of a turn it is, in APIs that have phases.
    `origin` says whether a tool's result may be trusted, if a policy was used; it is never sent to a model's server.
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
    """Something that was repaired, dropped or doubtful: the rule, what it applied to, and where.

    `at` is a character offset into the text, -1 if there is none.
    """

    rule: str
    detail: str = ""
    at: int = -1


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a call: where, what was expected, what was received, and a sentence for the model.

    `path` is a JSON pointer into the arguments, "" for the call itself.
    """

    path: str
    expected: str
    received: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model wrote: `arguments` is a dict, `json` the text that it was parsed from.

    `whole` is False if the text was cut, or left its dialect, in the middle of the call. Such a call is shown but
    never run.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    json: str = ""
    notes: tuple[Note, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: the tool's `value`, or the `error` that it raised.

    `text` is what the model reads; a long one is read page by page. `origin` says whether it may be trusted, None if
    no policy is used.
    """

    id: str
    name: str
    text: str
    value: Any = None
    error: BaseException | None = field(default=None, compare=False)
    seconds: float = field(default=0.0, compare=False)
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """A call that waits for approval, as plain data.

    `why` names the rule that wants it, `origin` says whether the conversation has untrusted results. An approval is
    valid for the `digest`: that of the tool's definition (whose own digest is `definition`), the arguments, the
    conversation before the call and `expires`, in seconds since 1970.
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
    """Tokens spent, as reported by the model; `estimated` if any of them were estimated."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of a run: the model's reply, and the results of its calls.

    `strategy` is how the model was asked again, such as `told` or `alone`; "" if the model was not asked again.
    """

    reply: Reply
    results: tuple[ToolResult, ...] = ()
    strategy: str = ""

    @property
    def rung(self) -> str:
        """The older name of `strategy`."""
        return self.strategy


if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Output = TypeVarWithDefault("Output", default=Any)
else:
    Output = TypeVar("Output")


@dataclass(frozen=True, slots=True, repr=False)
class Reply(Generic[Output]):
    """A model's answer: text, thought, calls, why it ended, and what was repaired.

    `messages` is the conversation to continue from, with this reply. `steps` are the turns of a run, or the tries of a
    decision that was asked again. `notes` of a run are those of all its steps, in order; `steps[i].reply.notes` has those
    of one. `logprobs` are the likelihoods of the text's tokens in OpenAI's format, if requested and supported. `pending` are the calls that wait for approval: `toolspeak.resume` continues them. `output` is the
    answer of a run as a typed value, if a type was requested.
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
    output: Output = cast("Output", None)  # noqa: RUF009 - a constant

    def __repr__(self) -> str:
        """The turns of the reply on a few lines."""
        from .display import reply_text

        return reply_text(self)

    def _repr_html_(self) -> str:
        from .display import reply_html

        return reply_html(self)

    def to_json(self) -> str:
        """The conversation and its pending calls as JSON text, for `toolspeak.resume`."""
        import dataclasses
        import json

        return json.dumps({"messages": self.messages, "pending": [dataclasses.asdict(one) for one in self.pending]})


@dataclass(frozen=True, slots=True)
class Tool(Generic[P, R]):
    """A function that a model may call: its name, its description, and the JSON Schema of its arguments.

    `injected` are the parameters that the application fills in; they are in no schema. `timeout` is in seconds.
    `strict` asks a server that supports it to constrain its sampling to the schema; arguments are checked in any case.
    A tool without a `function` can be offered and decided on, but not run. Calling a tool calls its function, so a
    decorated function stays usable, and a decorated method binds like one. `build` converts checked JSON arguments and
    injected values to the function's parameters; without it they are passed by name, unchanged. With `show_errors`
    false a model reads only that the tool failed, not the exception of its function. `examples` are arguments of good
    calls, shown to the model. A policy uses `effect`, what a call does, and `reads`, whether the text that it returns
    may be trusted. `sent_as_text` are arguments that a server receives as text: a number counts as its text there.
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
    sent_as_text: tuple[str, ...] = ()

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
        """The function, for `inspect.signature` and similar tools."""
        if self.function is None:
            raise AttributeError(f"the tool {self.name!r} has no function")
        return self.function

    @property
    def __name__(self) -> str:
        return self.name


class _ToolDoc:
    """Gives the class its own docstring, and each tool that of its function, for `help()`."""

    def __init__(self, of_class: str | None) -> None:
        self.of_class = of_class

    def __get__(self, instance: Tool[..., Any] | None, owner: type) -> str | None:
        if instance is None:
            return self.of_class
        return getattr(instance.function, "__doc__", None) or instance.description


type.__setattr__(Tool, "__doc__", _ToolDoc(Tool.__doc__))


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model: a conversation, or for a text model the exact `prompt` to continue.

    `tools`: None says nothing about tools, () offers none. `choice` is auto, none, required or the name of an offered
    tool. `schema` is a JSON Schema for the text of the reply, `grammar` a GBNF grammar, `tag` a structural tag of
    xgrammar; a model that cannot constrain its sampling raises UsageError. `max_tokens` limits the reply. `thinking`
    asks for reasoning before the answer, or for none; None leaves it to the model. `logprobs` asks for the likelihood
    of each token of the text, with those of so many alternatives. `sampling` are further settings by their names in
    OpenAI's API (top_p, frequency_penalty, …) and similar APIs (top_k, min_p, …); a model that does not support one
    raises UsageError. `whole`: nobody reads the reply as a stream, so it may arrive in one piece.

    Fields for tools that were selected from many:

    - `ranked`: names of tools that the search found, best first, with scores from 0 to 1. A model that scores one tool
      at a time starts with them and includes the scores.
    - `late`: names of tools that were added during the conversation, with the index of the message after which each is
      introduced. They are described there, so that the beginning of the prompt stays the same.
    - `hidden`: tools that are not shown to the model, but may be called.
    - `deferred`: names of tools that are not shown before a message refers to them, with the index of that message
      (None: none so far). Whoever selects the tools handles this, and offers a search tool if the client has none
      (`search`).
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
    """A copy of the value with changed fields, like `dataclasses.replace` in a third of its time.

    Only for a dataclass with slots whose constructor just fills them.
    """
    read, write, places = _fields_of(type(value))
    row = [*read(value)]
    for name, new in changes.items():
        row[places[name]] = new
    copy: V = object.__new__(type(value))
    for put, field_value in zip(write, row, strict=True):
        put(copy, field_value)
    return copy


@cache
def _fields_of(
    kind: type,
) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[Callable[[Any, Any], None], ...], dict[str, int]]:
    """For a class: a function that reads all fields of a value, one that writes each field, and the position of each
    field."""
    names = [each.name for each in fields(cast("Any", kind))]
    write = tuple(getattr(kind, name).__set__ for name in names)
    return attrgetter(*names), write, {name: place for place, name in enumerate(names)}
