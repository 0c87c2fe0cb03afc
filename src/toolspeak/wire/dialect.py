"""A dialect as a value: the literals and holes that make up a model's calls, thoughts and prompts.

A literal is written verbatim; when it is read, whitespace around it is free. A dialect contains no code: the
interpreters define what a hole means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from ..errors import UsageError
from .field_checks import check_fields, check_parts


class Slot(Enum):
    """What a key of a JSON object, or a gap in a text, contains."""

    NAME = "the tool's name"
    ARGS = "the arguments"
    ID = "the call's id"
    INDEX = "the number of the call"
    CALL = "a call, or a list of calls"
    SERVER = "the server that has the tool, default"
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


DEFAULT_SERVER = "default"
"""What SERVER is in a prompt and in a grammar: all tools stand under one server."""
NAME, ARGS, ID, INDEX, CALL = Slot.NAME, Slot.ARGS, Slot.ID, Slot.INDEX, Slot.CALL
TEXT, THOUGHT, EXAMPLE, SERVER = Slot.TEXT, Slot.THOUGHT, Slot.EXAMPLE, Slot.SERVER
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
    """The value of a key that says what its object is: `call`, or `text` for an object with a text.

    When it is read, the key may also have the name of an offered tool. The object is then a call of that tool, and the
    keys without another meaning are its arguments.
    """

    call: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class JsonCall:
    """A whole call as one JSON object, with its keys in any order.

    `keys` are written in this order; if a slot has several keys, the first is written. `also` are further keys that
    are accepted. `encoded`: the arguments are written as a JSON string that contains JSON, "always" or only those that
    came as "text" (both forms are always read). `indent` is that of json.dumps. A TEXT key has the reply's text if the
    name is null or the kind says so. A CALL key has the call itself, or a list of calls. A key may also be the tool's
    name: `{"f": {..}}`.
    """

    keys: tuple[tuple[str | Slot, Slot | Kind], ...] = (("name", NAME), ("arguments", ARGS))
    also: tuple[tuple[str, Slot | Kind], ...] = ()
    encoded: Literal["", "always", "text"] = ""
    indent: int | None = None


@dataclass(frozen=True, slots=True)
class Json:
    """The arguments as one JSON object. `plain`: anything that is no JSON is the text of the tool's first parameter."""

    plain: bool = False


@dataclass(frozen=True, slots=True)
class Typed:
    """A parameter with its type: `before`, then the word for a string, or for each other JSON type.

    `other` is a single word for all other types; "" means the JSON type's name (number, boolean, null, array, object).
    """

    before: str
    string: str = "string"
    other: str = ""


@dataclass(frozen=True, slots=True)
class Tagged:
    """The arguments one by one: open, key, (with a type: its `before`, the type), mid, value, close.

    A string is written verbatim, anything else as JSON. Without a type the tool's schema decides. `quote` is an
    (opener, closer) pair that may surround a value, such as CDATA's.
    """

    open: str
    mid: str
    close: str
    typed: Typed | None = None
    quote: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """The arguments as nested elements, with types only from the tool's schema: mark<key>value mark</key>.

    The elements of an array are named `item`; null is an empty element.
    """

    mark: str
    item: str = "item"


@dataclass(frozen=True, slots=True)
class Keywords:
    """The arguments in the syntax of a programming language: open, key assign value, .., close.

    `quotes` may surround a string; the first is written. `escapes`: strings have backslash escapes. `bare`: the keys
    of inner objects have no quotes, and are written sorted. `json`: an argument that is an object is written as JSON.
    `constants` are written for JSON's true, false and null (those of JSON and Python are always read).
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
    """All the text up to the next literal, or to the end, is the string argument `key` of the tool `tool`."""

    key: str
    tool: str


@dataclass(frozen=True, slots=True)
class NumberedName:
    """One short text that is the call's id and contains its name: prefix NAME mid INDEX (read, both are optional)."""

    prefix: str
    mid: str


@dataclass(frozen=True, slots=True)
class Maybe:
    """Optional parts. They are written if `written`."""

    parts: tuple[str | Slot, ...]
    written: bool = False


Arguments = Json | Tagged | Tree | Keywords | Raw
Part = str | Slot | JsonCall | Arguments | NumberedName | Maybe


@dataclass(frozen=True, slots=True)
class Header:
    """Messages whose head says what they are: start, head, stop, body, and one of `ends`.

    `also` are other starts. `routes` give the kind of a message: the first needle that occurs in `^head$` decides
    ("call": the name follows the needle, up to whitespace or a mark; "thought", "text"). `call`, `thought` and `text`
    are the heads that are written. `end` is written after the last message, and the dialect's `between` after each
    other message with a call.
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
    """The literals around a thought. It may open at the start of a reply, of a line, or of the text after a call.

    `frame_ends`: a frame of a text ends it. `always`: the model thinks in every reply, and its prompt opens the
    thought. `also` are other openers that are read; a tag, `<x>`, has its own closer, `</x>`.
    """

    open: str = "<think>\n"
    close: str = "\n</think>\n\n"
    frame_ends: bool = False
    always: bool = False
    also: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.open and self.close):
            raise UsageError(
                f"thinking: a thought needs an opener and a closer, received {self.open!r}, {self.close!r}"
            )


@dataclass(frozen=True, slots=True)
class When:
    """Parts of a prompt that are only written if `what` applies: "thinking" (requested) or "date" (known)."""

    what: str
    parts: tuple[str | Slot, ...]


@dataclass(frozen=True, slots=True)
class ToolJson:
    """Tools declared as JSON: bare functions, or each in OpenAI's wrapper; as one list, or as `lines` with `between`."""

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
    """How tool results are written: in whose turn, in which words, and whether consecutive results share a turn.

    With `record`, results are the rows of one JSON list with these keys (RESULT, ID or NAME). `decoded` inserts the
    JSON of a result, or {"result": text} if it is none.
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
    """How turns become one text: bos, then head[0] role head[1] content end for each. `strip`: turns are trimmed."""

    head: tuple[str, str]
    end: str
    bos: str = ""
    strip: bool = True


@dataclass(frozen=True, slots=True)
class Speech:
    """How a conversation with tools is written for the model.

    `opening` is the first turn if tools are offered: a system turn, or the first user turn if it has USER. `system` is
    the system text of a conversation without one. `user` and `text` precede the texts of user and assistant,
    `text_end` follows the latter. `strip`: texts are trimmed. `exclusive`: a turn has text or calls, never both.
    `alternate`: consecutive user turns are merged, and consecutive assistant turns are rejected. `results` is for a
    chat server without tool support, `native_results` for the model's own layout (None: the same).
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

    The section of calls is `open`, then calls joined by `between`, then `close`. With `items` (opener, separator,
    closer) the calls are elements of a list (when read, its brackets may be missing). `also` are other (open, close)
    pairs of a section that are read. `before` is written between a text and the section. `fences` are (opener, closer)
    pairs that may surround it. `forms` are other shapes of a call that are read, never written; if calls begin with
    their name after the section's opener, only in that section. They, and every call of a dialect with `guard`, count
    only for an offered tool. `header`: each call is a message of its own. `frame` are control markers around texts,
    which are not part of them, with the whitespace beside them.

    INDEX counts from `index_base`: as a key over the whole conversation, elsewhere within a turn. Written ids have
    `id_length` letters and digits, unless that is 0. `control` are further markers that must never come from outside
    text. `models` are parts of names of models with this dialect, marked by `?` if others have them too; `thinkers`
    are those of models that always think. `origin` says how the dialect was found.
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
        """Raises UsageError for a field of a wrong type, and for a dialect whose calls could never be found."""
        check_fields(self, self.name, VALUES)
        check_call(self)
        check_mark(self)

    def __hash__(self) -> int:  # a whole dialect takes 10 µs to hash, and caches ask for it with every reply
        return hash(self.name)


VALUES = {"thinking": Thinking, "header": Header, "layout": Layout, "speech": Speech}


def check_call(d: Dialect) -> None:
    """Raises UsageError for a dialect whose calls lack a name or arguments: they could be written, but never read."""
    for at, parts in (("call", d.call), *((f"forms[{i}]", form) for i, form in enumerate(d.forms))):
        where = f"the dialect {d.name!r}: {at}"
        check_parts(parts, where, Part)
        everywhere = [*parts, *(d.header.call if d.header else ())]
        if not any(_names(part) for part in everywhere):
            raise UsageError(f"{where} has no tool name: add NAME, JsonCall() or another hole with a name")
        if not any(_has_arguments(part) for part in parts):
            raise UsageError(
                f"{where} has no arguments: add Json(), JsonCall(), Tagged(…) or another hole with arguments"
            )


def check_mark(d: Dialect) -> None:
    """Raises UsageError for a dialect whose calls begin with the tool's name, which is no mark."""
    lead = next((part for part in ((d.items or ("",))[0], d.open, *d.call) if part), None)
    if lead is NAME and d.header is None and not d.guard:
        raise UsageError(
            f"the dialect {d.name!r}: nothing marks a call, which begins with the tool's name: put a literal before it, such as "
            '"<call>", into call or open'
        )


def _names(part: Part) -> bool:
    """Whether a part has the tool's name."""
    if isinstance(part, JsonCall):
        return any(key is NAME or means in (NAME, CALL) for key, means in part.keys)
    if isinstance(part, Maybe):
        return NAME in part.parts
    return part is NAME or isinstance(part, NumberedName | Raw)


def _has_arguments(part: Part) -> bool:
    """Whether a part has the arguments."""
    if isinstance(part, JsonCall):
        return any(means in (ARGS, CALL) or isinstance(means, Kind) for _, means in part.keys)
    return isinstance(part, Arguments)
