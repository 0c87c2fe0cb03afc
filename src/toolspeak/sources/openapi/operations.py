"""The operations of an OpenAPI document, each with what a tool needs: a name, a description, a schema, and the place of
each argument."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from ...display import on_one_line
from ...schema.phrases import clipped, short
from ...schema.suggestions import numbered
from .auth import CONNECTION, Keys
from .bodies import chosen, form_of
from .document import Document
from .schemas import ANNOTATIONS, Schemas
from .styles import DEFAULTS, STYLES, ArgumentSlot, Place, climbs

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
SAFE = ("get", "head", "query")
"""Methods that change nothing."""
NOT_A_PARAMETER = CONNECTION | {"accept", "content-type", "authorization", "cookie", "proxy-authorization"}
"""Headers that cannot be parameters by the standard, and those of the connection."""
LONGEST = 64
"""The most characters of a name."""

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class NamedOperation:
    """An operation at its place in a document, with its tool's name."""

    name: str
    method: str
    path: str
    item: Mapping[str, Any]
    node: Mapping[str, Any]

    @property
    def where(self) -> str:
        return f"#/paths/{clipped(self.path, 200).replace('~', '~0').replace('/', '~1')}/{self.method}"

    @property
    def title(self) -> str:
        """Return the method and the path, for messages."""
        return f"{self.method.upper()} {on_one_line(clipped(self.path, 200))}"

    @property
    def tags(self) -> list[str]:
        listed: Any = self.node.get("tags")
        return [one for one in cast("list[Any]", listed) if isinstance(one, str)] if isinstance(listed, list) else []


@dataclass(frozen=True, slots=True, repr=False)
class Operation:
    """An operation that can be called: `slots` are in the order of its parameters; `media` is the type of its body, ""
    for none; `bodied`: a body is always sent."""

    named: NamedOperation
    description: str
    parameters: Mapping[str, Any]
    slots: tuple[ArgumentSlot, ...]
    media: str
    bodied: bool
    accept: str

    @property
    def sent_as_text(self) -> tuple[str, ...]:
        """The arguments that are sent as text: `666` is sent as `"666"` is."""
        text = {"path", "query", "header", "cookie"}
        if form_of(self.media) in ("form", "multipart"):
            text.add("field")
        return tuple(slot.argument for slot in self.slots if slot.place in text and not (slot.json | slot.file))


def operations_of(document: Document) -> list[NamedOperation]:
    """Return every operation of a document in order, each with a unique name that every API accepts."""
    used: set[str] = set()
    last: dict[str, int] = {}
    named: list[NamedOperation] = []
    for path, raw in cast("Mapping[str, Any]", document.data.get("paths") or {}).items():
        if path.startswith("x-"):
            continue
        if not path.startswith("/"):
            raise document.error("#/paths", f"a path begins with /, got {short(path)}")
        if climbs(path):
            raise document.error("#/paths", f"a path has no part that is `.` or `..`, got {short(path)}")
        item = document.follow(raw, f"#/paths/{path}")
        for method, node in item.items():
            if method not in METHODS:
                continue
            one = document.follow(node, f"#/paths/{path}/{method}")
            name = _name(one.get("operationId"), method, path, used, last)
            used.add(name)
            named.append(NamedOperation(name, method, path, item, one))
    return named


def _name(operation_id: Any, method: str, path: str, used: set[str], last: dict[str, int]) -> str:
    """Return the operation's id, else its method and path, with a number if that is taken."""
    own = _safe(operation_id) if isinstance(operation_id, str) else ""
    if own and not (own[0].isalpha() or own[0] == "_"):
        own = f"{method}_{own}"[:LONGEST]
    plain = _safe(f"{method}_{path}")
    names = [*filter(None, (own, plain))]
    for name in names:
        if name not in used:
            return name
    return numbered(names[0][: LONGEST - 8], used, last)


def _safe(text: str) -> str:
    return re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]+", "_", text[:500])).strip("_-")[:LONGEST]


class Maker:
    """Makes operations of a document; hides parameters that the configuration fills in."""

    def __init__(self, document: Document, keys: Keys) -> None:
        self.document = document
        self.keys = keys
        self.schemas = Schemas(document)

    def operation(self, named: NamedOperation) -> Operation:
        """Return the operation, ready to be called. Raises UsageError with the place of a part that is not understood."""
        properties: Fields = {}
        required: list[str] = []
        slots: list[ArgumentSlot] = []
        last: dict[str, int] = {}
        for node in self._parameters(named):
            slot = self._slot(node, properties, last, named)
            if slot is None:
                continue
            slots.append(slot)
            properties[slot.argument] = self._schema(node, named)
            if node.get("required") is True or slot.place == "path":
                required.append(slot.argument)
        body = self._body(named, properties, slots)
        if body is not None:
            slots += body.slots
            required += body.required
        schema: Fields = {"type": "object", "properties": properties}
        if required:
            schema["required"] = list(dict.fromkeys(required))
        schema["additionalProperties"] = False
        whole = self.schemas.whole(schema)
        return Operation(
            named, _description(named.node), whole, tuple(slots), body.media if body else "",
            body is not None and body.always, _accept(named.node, self.document),
        )  # fmt: skip

    # parameters

    def _parameters(self, named: NamedOperation) -> Iterator[Mapping[str, Any]]:
        """Yield the parameters of the path and of the operation, which win, then placeholders of the path that are not
        declared."""
        by_place: dict[tuple[str, str], Mapping[str, Any]] = {}
        for owner in (named.item, named.node):
            listed: Any = owner.get("parameters") or []
            if not isinstance(listed, list):
                raise self.document.error(f"{named.where}/parameters", "expected a list")
            for raw in cast("list[Any]", listed):
                node = self.document.follow(raw, f"{named.where}/parameters")
                name, place = node.get("name"), node.get("in")
                if not isinstance(name, str) or not isinstance(place, str):
                    raise self.document.error(f"{named.where}/parameters", "one has no name or no place (in)")
                by_place[place, name] = node
        yield from by_place.values()
        for name in re.findall(r"\{([^{}]+)\}", named.path):
            if ("path", name) not in by_place:
                yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}

    def _is_fixed(self, name: str, place: str, path: str) -> bool:
        """Whether a parameter is hidden from the model: it is secret, set by HTTP, or missing from the path."""
        if place == "path":
            return f"{{{name}}}" not in path or (place, name.lower()) in self.keys.hidden
        fixed = place == "header" and name.lower() in NOT_A_PARAMETER
        return fixed or (place, name.lower()) in self.keys.hidden

    def _slot(
        self, node: Mapping[str, Any], used: Fields, last: dict[str, int], named: NamedOperation
    ) -> ArgumentSlot | None:
        """Return where a parameter goes; None for one that the model does not set."""
        name, place = str(node["name"]), str(node["in"])
        where, error = f"{named.where}/parameters", self.document.error
        if place not in STYLES or place == "field":
            raise error(where, f"{short(name)} is in {short(place)}, which is neither path, query, header nor cookie")
        if self._is_fixed(name, place, named.path):
            return None
        if place == "header" and not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise error(where, f"{short(name)} is not a valid header name")
        style = str(node.get("style", DEFAULTS[place]))
        if style not in STYLES[place]:
            raise error(where, f"{short(name)} has the style {short(style)}, which there is not in a {place}")
        explode = node.get("explode")
        return ArgumentSlot(
            _argument(name, place, used, last), cast("Place", place), name, style,
            explode if isinstance(explode, bool) else style == "form",
            node.get("allowReserved") is True, "content" in node,
        )  # fmt: skip

    def _schema(self, node: Mapping[str, Any], named: NamedOperation) -> Any:
        content: Any = node.get("content")
        raw: Any = node.get("schema", {})
        if isinstance(content, Mapping) and content:
            raw = self.document.follow(next(iter(cast("Mapping[str, Any]", content).values())), named.where).get(
                "schema", {}
            )
        translated: Any = self.schemas.translate(raw, f"{named.where}/parameters/{node['name']}")
        if not isinstance(translated, dict):
            return translated
        schema = cast("Fields", translated)
        if isinstance(node.get("description"), str):
            schema["description"] = node["description"]
        if node.get("deprecated") is True:
            schema["deprecated"] = True
        return schema

    # bodies

    def _whole_body(self, form: str, media: str, schema: Any, where: str) -> Any:
        """Return the schema of a body that is a single argument."""
        match form:
            case "text":
                return {"type": "string"}
            case "bytes":
                return {"type": "string", "contentEncoding": "base64", "description": f"{media}, in base64"}
            case _:
                return self.schemas.translate(schema, where)

    def _body(self, named: NamedOperation, properties: Fields, parameters: Sequence[ArgumentSlot]) -> _Body | None:
        """Add the body's arguments to `properties`: its fields, or `body` if it is not a plain object."""
        if "requestBody" not in named.node:
            return None
        where = f"{named.where}/requestBody"
        node = self.document.follow(named.node["requestBody"], where)
        content: Any = node.get("content")
        if not isinstance(content, Mapping) or not content:
            return None
        media = chosen(cast("Mapping[str, Any]", content))
        body = self.document.follow(content[media], where)
        schema: Any = body.get("schema", {})
        always = node.get("required") is True
        form = form_of(media)
        fields = None if form in ("text", "bytes") else self.schemas.fields(schema, where)
        encoding: Any = body.get("encoding")
        if fields is not None and fields[0] and (always or not fields[1]):
            data = self.schemas.translate({"type": "object", "properties": fields[0], "required": fields[1]}, where)
            slots = tuple(self._field(name, encoding, fields[0][name], form) for name in data["properties"])
            slots = _add_fields(slots, data["properties"], properties, parameters if always else ())
            wanted = [slot.argument for slot in slots if slot.name in data.get("required", ())]
            return _Body(media, slots, wanted, always)
        data = self._whole_body(form, media, schema, where)
        if isinstance(node.get("description"), str) and isinstance(data, dict):
            data = {"description": node["description"], **cast("Fields", data)}
        argument = _argument("body", "whole", properties, {})
        properties[argument] = data
        parts = (
            [self._field(name, encoding, {}, form) for name in cast("Mapping[str, Any]", encoding)]
            if isinstance(encoding, Mapping)
            else []
        )
        return _Body(media, (ArgumentSlot(argument, "body", ""), *parts), [argument] if always else [], always)

    def _field(self, name: str, encoding: Any, schema: Any, form: str) -> ArgumentSlot:
        """Return how one field of a body is encoded; forms declare that like parameters."""
        entry: Any = cast("Mapping[str, Any]", encoding).get(name) if isinstance(encoding, Mapping) else None
        settings = cast("Mapping[str, Any]", entry if isinstance(entry, Mapping) else {})
        style = settings.get("style")
        node: Mapping[str, Any] = self.document.follow(schema, name) if isinstance(schema, Mapping) else {}
        kind = node.get("type")
        plain = str(style) not in STYLES["field"]
        binary = form == "multipart" and _is_binary(node)
        explode = settings.get("explode")
        return ArgumentSlot(
            name, "field", name, "form" if plain else str(style),
            explode if isinstance(explode, bool) else plain or style == "form",
            json=plain and (kind == "object" or "json" in str(settings.get("contentType"))), file=binary,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Body:
    media: str
    slots: tuple[ArgumentSlot, ...]
    required: list[str]
    always: bool


def _is_binary(node: Any) -> bool:
    if not isinstance(node, Mapping):
        return False
    schema = cast("Mapping[str, Any]", node)
    if schema.get("type") == "array":
        return _is_binary(schema.get("items"))
    return schema.get("format") in ("binary", "byte") or "contentMediaType" in schema or "contentEncoding" in schema


def _add_fields(
    slots: Sequence[ArgumentSlot], schemas: Mapping[str, Any], properties: Fields, parameters: Sequence[ArgumentSlot]
) -> tuple[ArgumentSlot, ...]:
    """Add the fields of a body to `properties`, and return their slots with the names of their arguments.

    A field with the name of a parameter in the path is the same argument if their schemas agree: the body repeats which
    resource it is. Any other field whose name is taken gets the suffix `_body`.
    """
    in_path = {slot.argument for slot in parameters if slot.place == "path"}
    named: list[ArgumentSlot] = []
    last: dict[str, int] = {}
    for slot in slots:
        schema = _as_text(schemas[slot.name], slot)
        both = _agreed(properties[slot.name], schema) if slot.name in in_path else None
        argument = slot.name if both else _argument(slot.name, "body", properties, last)
        properties[argument] = both or schema
        named.append(replace(slot, argument=argument))
    return tuple(named)


def _agreed(one: Any, other: Any) -> Fields | None:
    """One schema for both, if they have the same type and no keyword contradicts."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return None
    mine, others = cast("Fields", one), cast("Fields", other)
    if "type" not in mine:
        return mine if mine == others else None
    limits = others.keys() - ANNOTATIONS | {"type"}
    return {**others, **mine} if all(mine.get(key, others.get(key)) == others.get(key) for key in limits) else None


def _as_text(schema: Any, slot: ArgumentSlot) -> Any:
    """Return the schema for a file's content, which a model can write only as base64."""
    if not slot.file or not isinstance(schema, dict):
        return schema
    node = cast("Fields", schema)
    if node.get("type") == "array":
        return {**node, "items": {"type": "string", "contentEncoding": "base64"}}
    return {key: value for key, value in node.items() if key != "format"} | {"contentEncoding": "base64"}


def _argument(name: str, place: str, used: Container[str], last: dict[str, int]) -> str:
    """Return the argument's name for a parameter: its own if APIs accept it, else one derived from it; always unique."""
    safe = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_.-]+", "_", name)).strip("_.-")[:LONGEST] or "value"
    plain = name if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) else safe
    for one in (plain, f"{plain[: LONGEST - 8]}_{place}"):
        if one not in used:
            return one
    return numbered(plain[: LONGEST - 8], used, last)


def _description(node: Mapping[str, Any]) -> str:
    parts = [node.get("summary"), node.get("description")]
    texts = list(dict.fromkeys(one.strip() for one in parts if isinstance(one, str) and one.strip()))
    if len(texts) == 2 and texts[1].startswith(texts[0]):
        texts = texts[1:]
    text = "\n\n".join(texts)
    return f"Deprecated. {text}".strip() if node.get("deprecated") is True else text


def _media_of_answers(node: Mapping[str, Any], document: Document) -> Iterator[str]:
    """Yield the media types of successful responses."""
    responses: Any = node.get("responses")
    for status, raw in cast("Mapping[str, Any]", responses if isinstance(responses, Mapping) else {}).items():
        if str(status).startswith("2") or status == "default":
            content: Any = document.follow(raw, f"responses/{status}").get("content")
            yield from cast("Mapping[str, Any]", content) if isinstance(content, Mapping) else ()


def _accept(node: Mapping[str, Any], document: Document) -> str:
    """Return the Accept header: JSON if a successful response has it, else what there is."""
    named = dict.fromkeys(_media_of_answers(node, document))
    clean = [media for media in named if re.fullmatch(r"[\w.+*/; =-]{1,100}", media) and "*" not in media]
    listed = [media for media in clean if form_of(media) == "json"] or clean or ["application/json"]
    return ", ".join(listed[:5]) + ", */*;q=0.1"
