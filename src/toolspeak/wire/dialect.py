"""A dialect as a value: the literals and holes of which a model's calls, thoughts and prompts are made.

A literal is exact when written; when read, white space around it is free. Nothing here is code that a
dialect could run: what a hole means stands in the interpreters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, cast

from ..errors import UsageError


class Slot(Enum):
    """What a key of a JSON object, or a gap in a text, holds."""

    NAME = "the tool's name"
    ARGS = "the arguments"
    ID = "the call's id"
    INDEX = "the number of the call"
    CALL = "a call, or a list of calls"
    TEXT = "text meant for the user"
    THOUGHT = "the model's reasoning"
    SYSTEM = "the system text of the conversation"
    USER = "the text of the user's first message"
    TOOLS = "the tools offered"
    TOOL_NAMES = "their names, sorted, with commas"
    DATE = "today"
    RESULT = "what a tool returned"
    EXAMPLE = "a call as the dialect writes it, to show to a model"

    __hash__ = object.__hash__  # an Enum's own is written in Python, and the readers look slots up with every call


NAME, ARGS, ID, INDEX, CALL = Slot.NAME, Slot.ARGS, Slot.ID, Slot.INDEX, Slot.CALL
TEXT, THOUGHT, EXAMPLE = Slot.TEXT, Slot.THOUGHT, Slot.EXAMPLE
SYSTEM, USER, TOOLS, TOOL_NAMES, DATE, RESULT = (
    Slot.SYSTEM,
    Slot.USER,
    Slot.TOOLS,
    Slot.TOOL_NAMES,
    Slot.DATE,
    Slot.RESULT,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """The value of a key that says what its object is: `call`, or `text` where the object carries a text.

    On reading, the name of an offered tool may stand there too: the object is then a call to it, and the
    keys that mean nothing else are its arguments.
    """

    call: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class JsonCall:
    """A whole call as one JSON object, its keys in any order.

    `keys` are written in this order; the first spelling of a slot is the one written. `also` are keys
    accepted as well. `encoded`: the arguments are written as a JSON string that holds JSON, "always" or
    only those that came as "text" (read, both are accepted everywhere). `indent` is as in json.dumps. A
    TEXT key is the reply's text where the name is null or the kind says so; a CALL key holds the call itself,
    or a list of calls. A key may be NAME itself: `{"f": {..}}`.
    """

    keys: tuple[tuple[str | Slot, Slot | Kind], ...] = (("name", NAME), ("arguments", ARGS))
    also: tuple[tuple[str, Slot | Kind], ...] = ()
    encoded: Literal["", "always", "text"] = ""
    indent: int | None = None


@dataclass(frozen=True, slots=True)
class Json:
    """The arguments as one JSON object. `plain`: what is no JSON is the text of the tool's first parameter."""

    plain: bool = False


@dataclass(frozen=True, slots=True)
class Typed:
    """A parameter tells its own type: `before`, then the word for a string, or for each other JSON type.

    `other` is one word for all others; "" means the JSON type's own name (number, boolean, null, array, object).
    """

    before: str
    string: str = "string"
    other: str = ""


@dataclass(frozen=True, slots=True)
class Tagged:
    """The arguments one by one: open, key, (typed: its `before`, the type), mid, value, close.

    A string stands there as it is, all else as JSON; where nothing tells the type, the tool's schema does.
    `quote` is an (opener, closer) pair that may stand around a value, such as CDATA's.
    """

    open: str
    mid: str
    close: str
    typed: Typed | None = None
    quote: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """The arguments as nested elements, typed by the tool's schema alone: mark<key>value mark</key>.

    The elements of an array are called `item`; null is an empty element.
    """

    mark: str
    item: str = "item"


@dataclass(frozen=True, slots=True)
class Keywords:
    """The arguments in a syntax like a programming language's: open, key assign value, .., close.

    `quotes` may stand around a string, the first is written; `escapes`: with a backslash inside. `bare`: the keys
    of inner objects stand without quotes, and are written sorted. `json`: an argument that is an object is written
    as JSON. `constants` are the words written for JSON's true, false and null
    (JSON's and Python's are read everywhere).
    """

    open: str = "("
    close: str = ")"
    assign: str = "="
    quotes: tuple[str, ...] = ("'", '"')
    escapes: bool = True
    bare: bool = False
    json: bool = False
    constants: tuple[str, str, str] = ("True", "False", "None")


@dataclass(frozen=True, slots=True)
class Raw:
    """All the text up to what comes next, or the end, is one string argument `key` of the tool `tool`."""

    key: str
    tool: str


@dataclass(frozen=True, slots=True)
class NumberedName:
    """One short text that is the call's id and holds its name: prefix NAME mid INDEX (read, both are optional)."""

    prefix: str
    mid: str


@dataclass(frozen=True, slots=True)
class Maybe:
    """Parts that may be left out. They are written if `written`."""

    parts: tuple[str | Slot, ...]
    written: bool = False


Arguments = Json | Tagged | Tree | Keywords | Raw
Part = str | Slot | JsonCall | Arguments | NumberedName | Maybe


@dataclass(frozen=True, slots=True)
class Header:
    """Messages that say in their head what they are: start, head, stop, body, and one of `ends`.

    `also` are other starts. `routes` tell what a message is: the first needle found in `^head$` decides ("call":
    the name follows the needle, up to white space or a mark; "thought", "text"). `call`, `thought` and `text` are
    heads as they are written; `end` is written after the last message, a call's dialect's `between` after the others.
    """

    start: str
    stop: str
    routes: tuple[tuple[str, Literal["call", "thought", "text"]], ...]
    ends: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    call: tuple[str | Slot, ...] = (NAME,)
    thought: str = ""
    text: str = ""
    end: str = ""


@dataclass(frozen=True, slots=True)
class Thinking:
    """The literals around a thought. It opens where a reply, a line or (after a call) the text begins.

    `frame_ends`: what frames a text ends it. `always`: the model thinks in every reply, and its prompt opens the thought.
    `also` are other openers that are read.
    """

    open: str = "<think>\n"
    close: str = "\n</think>\n\n"
    frame_ends: bool = False
    always: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class When:
    """Parts of a prompt that are there only if `what` is: thinking (asked for) or date (known)."""

    what: str
    parts: tuple[str | Slot, ...]


@dataclass(frozen=True, slots=True)
class ToolJson:
    """Tools declared as JSON: bare functions, or each in OpenAI's wrapper; one list, or `lines` with `between`."""

    wrapped: bool = False
    lines: bool = False
    between: str = "\n"
    indent: int | None = None
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class ToolRows:
    """Tools declared in words: NAME, TEXT (the description), ARGS (the schema of its parameters), TOOLS (all of it)."""

    each: tuple[str | Slot, ...]
    between: str = "\n\n"
    indent: int | None = None


@dataclass(frozen=True, slots=True)
class ToolSignatures:
    """Tools declared as Python signatures, sorted by name, each with the first line of its description."""


@dataclass(frozen=True, slots=True)
class ToolReprs:
    """Tools declared as the repr of a Python list of dicts: name, type (argument to Python type), description."""


@dataclass(frozen=True, slots=True)
class Results:
    """How what tools returned is told: in whose turn, each how, and several in a row in one turn or not.

    With `record`, results are the rows of one JSON list whose keys it gives (RESULT, ID or NAME);
    `decoded` puts the result's own JSON there, or {"result": text} where it is none.
    """

    role: str = "user"
    each: tuple[str | Slot, ...] = ("Result of ", NAME, ": ", RESULT)
    open: str = ""
    between: str = "\n"
    close: str = ""
    grouped: bool = True
    record: tuple[tuple[str, Slot], ...] = ()
    decoded: bool = False
    indent: int | None = None
    ascii: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """How turns become one text: bos, then head[0] role head[1] content end for each; `strip`: whole turns are
    trimmed."""

    head: tuple[str, str]
    end: str
    bos: str = ""
    strip: bool = True


@dataclass(frozen=True, slots=True)
class Speech:
    """How a conversation with tools is told to the model.

    `opening` is the first turn when tools are offered: a system turn, or the first user turn if it holds USER. `system`
    is the system text where the conversation has none. `user` and `text` go before a user's and an assistant's text,
    `text_end` after the latter; `strip`: texts are trimmed; `exclusive`: a turn is a text or calls, never both;
    `alternate`: users in a row are one, and assistants in a row are refused. `results` is for a chat server that knows
    no tools, `native_results` for the model's own layout (None: the same).
    """

    opening: tuple[str | Slot | When, ...] = ()
    system: str = ""
    tools: ToolJson | ToolRows | ToolSignatures | ToolReprs = ToolJson()
    user: str = ""
    text: str = ""
    text_end: str = ""
    strip: bool = False
    exclusive: bool = False
    alternate: bool = False
    results: Results = Results()
    native_results: Results | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a family of models writes calls, thoughts and prompts.

    The section of calls is `open`, calls joined by `between`, `close`; with `items` (opener, separator,
    closer) the calls are elements of a list (read, its brackets may be missing). `also` are other (open,
    close) pairs of a section that are read. `before` stands between a text and the section. `fences`
    are (opener, closer) pairs that may stand around it. `forms` are other shapes of a call that are
    read, never written, where calls begin with the name within a section in that section alone; they, and every call
    of a dialect with `guard` set, count only if the name is that of an offered tool. `header`: each call is a message of its own. `frame` are control markers around
    texts that are no part of them. INDEX counts from `index_base`, as a key over the chat, elsewhere in its turn;
    an id that is written has `id_length` letters and digits, if that is not 0. `control` are markers that must
    never come out of what others wrote, besides those that stand in the other fields. `models` are parts of the
    names of models that speak it, with a `?` those that other models have as well, `thinkers` of those that always
    think; `origin` says how the dialect was found.
    """

    name: str
    call: tuple[Part, ...]
    open: str = ""
    close: str = ""
    between: str = ""
    items: tuple[str, str, str] | None = None
    also: tuple[tuple[str, str], ...] = ()
    before: str = ""
    fences: tuple[tuple[str, str], ...] = (("```json", "```"), ("```", "```"))
    forms: tuple[tuple[Part, ...], ...] = ()
    guard: bool = False
    thinking: Thinking | None = Thinking()
    header: Header | None = None
    frame: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    index_base: int = 0
    id_length: int = 0
    speech: Speech = Speech()
    layout: Layout | None = None
    models: tuple[str, ...] = ()
    thinkers: tuple[str, ...] = ()
    origin: str = field(default="by name", compare=False)

    def __post_init__(self) -> None:
        """Raises UsageError for a dialect in which no call could ever be found."""
        check_call(self)
        check_mark(self)

    def __hash__(self) -> int:  # a whole dialect takes 10 µs to hash, and caches ask for it with every reply
        return hash(self.name)


def _check_parts(parts: object, where: str) -> None:
    if not isinstance(parts, tuple):
        kind = type(parts).__name__
        raise UsageError(f'{where}: expected a tuple of parts such as ("<call>", JsonCall(), "</call>"), got {kind}')
    for part in cast("tuple[object, ...]", parts):
        if not isinstance(part, Part):
            raise UsageError(f"{where}: expected literals and holes, got {part!r:.80}")


def check_call(d: Dialect) -> None:
    """Raises UsageError for a dialect whose calls have no name or no arguments: it could be written and never read."""
    for at, parts in (("call", d.call), *((f"forms[{i}]", form) for i, form in enumerate(d.forms))):
        where = f"the dialect {d.name!r}: {at}"
        _check_parts(parts, where)
        everywhere = [*parts, *(d.header.call if d.header else ())]
        if not any(_names(part) for part in everywhere):
            raise UsageError(
                f"{where} holds no name of a tool: put NAME, JsonCall() or another hole with a name into it"
            )
        if not any(_has_arguments(part) for part in parts):
            raise UsageError(
                f"{where} holds no arguments: put Json(), JsonCall(), Tagged(…) or another such hole into it"
            )


def check_mark(d: Dialect) -> None:
    """Raises UsageError for a dialect whose calls begin with the tool's name, which marks nothing."""
    lead = next((part for part in ((d.items or ("",))[0], d.open, *d.call) if part), None)
    if lead is NAME and d.header is None and not d.guard:
        raise UsageError(
            f"the dialect {d.name!r}: nothing marks a call, which begins with the tool's name: put a literal before it, such as "
            '"<call>", into call or open'
        )


def _names(part: Part) -> bool:
    """Whether a part tells the tool's name."""
    if isinstance(part, JsonCall):
        return any(key is NAME or means in (NAME, CALL) for key, means in part.keys)
    if isinstance(part, Maybe):
        return NAME in part.parts
    return part is NAME or isinstance(part, NumberedName | Raw)


def _has_arguments(part: Part) -> bool:
    """Whether a part holds the arguments."""
    if isinstance(part, JsonCall):
        return any(means in (ARGS, CALL) or isinstance(means, Kind) for _, means in part.keys)
    return isinstance(part, Arguments)
