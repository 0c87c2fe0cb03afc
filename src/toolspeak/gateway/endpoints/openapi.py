"""The OpenAPI document of the gateway, made from its routes and the schemas that it checks bodies against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...api import anthropic, batches, completions, embeddings, ollama, openai_chat, openai_responses
from ...api.json_stream import JSON_LINES
from ...api.ollama import generate
from ...api.openai_responses import compact
from ...types import Schema
from ..body import with_nulls
from ..http_exchange import HttpExchange
from ..response_schemas import SHAPES, ref

if TYPE_CHECKING:
    from ..app import Gateway


@dataclass(frozen=True, slots=True)
class RouteDoc:
    """What the document says about a route: a summary, the schemas of its response and errors, and the schema of its
    body.

    - `stream` is the content type of a streamed response, `kind` that of a whole one.
    - `never` matches bodies that the API understands but refuses.
    - `asks` is for a route that contacts a model's server; `either` for one that answers in the format of two APIs.
    - `query` has the schemas of the query parameters, `form` the schema of a multipart body. `model` says whether the
      body names a model. `open` is for a route that needs no key.
    """

    summary: str
    shapes: tuple[str, ...]
    body: Schema | None = None
    stream: str = ""
    never: Sequence[Schema] = ()
    asks: bool = False
    errors: tuple[str, ...] = ("OpenAIError",)
    tag: str = "OpenAI"
    either: bool = False
    query: Mapping[str, Schema] = field(default_factory=dict[str, Schema])
    open: bool = False
    kind: str = "application/json"
    form: Schema | None = None
    model: bool = True


def _both(**fields: Schema) -> Schema:
    """Bodies in which these fields are all given so."""
    return {"required": list(fields), "properties": fields}


EVENTS = "text/event-stream"
LINES = JSON_LINES.decode()
OLLAMA: Any = {"errors": ("OllamaError",), "tag": "Ollama"}

FORM: Schema = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {"file": {"type": "string", "format": "binary"}, "purpose": {"enum": ["batch"]}},
}

OPERATIONS: dict[tuple[str, str], RouteDoc] = {
    ("POST", "/v1/chat/completions"): RouteDoc(
        "Answer a conversation, with tools", ("ChatCompletion",), openai_chat.BODY, stream=EVENTS, asks=True
    ),
    ("POST", "/v1/completions"): RouteDoc(
        "Continue a prompt", ("Completion",), completions.BODY, stream=EVENTS, asks=True, never=(
            _both(suffix={"type": "string", "minLength": 1}),
            _both(best_of={"type": "integer", "minimum": 2}),
            _both(echo={"const": True}, logprobs={"type": "integer"}),
            _both(prompt={"type": "array", "minItems": 2}, n={"type": "integer", "minimum": 2}),
        ),
    ),
    ("POST", "/v1/messages"): RouteDoc(
        "Answer a conversation, with tools", ("Message",), anthropic.BODY, stream=EVENTS, asks=True,
        errors=("AnthropicError",), tag="Anthropic",
    ),
    ("POST", "/v1/messages/count_tokens"): RouteDoc(
        "Count the tokens of a request", ("TokenCount",), anthropic.COUNT_BODY, asks=True,
        errors=("AnthropicError",), tag="Anthropic",
    ),
    ("POST", "/v1/embeddings"): RouteDoc("Turn texts into vectors", ("Embeddings",), embeddings.BODY, asks=True),
    ("POST", "/v1/responses"): RouteDoc(
        "Answer a conversation, with tools", ("Response",), openai_responses.BODY, stream=EVENTS, asks=True
    ),
    ("POST", "/v1/responses/compact"): RouteDoc("Compact a conversation", ("Compaction",), compact.BODY, asks=True),
    ("GET", "/v1/responses/{response}"): RouteDoc("Show a stored response", ("Response",)),
    ("GET", "/v1/responses/{response}/input_items"): RouteDoc(
        "List the input items of a stored response", ("Items",), query={
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "order": {"enum": ["asc", "desc"]},
            "after": {"type": "string", "minLength": 1},
        },
    ),
    ("DELETE", "/v1/responses/{response}"): RouteDoc("Delete a stored response", ("Forgotten",)),
    ("POST", "/v1/files"): RouteDoc("Upload a file for a batch", ("File",), form=FORM),
    ("GET", "/v1/files"): RouteDoc("List the files", ("Files",), query={
        "limit": {"type": "integer", "minimum": 1, "maximum": 10_000},
        "order": {"enum": ["asc", "desc"]},
        "after": {"type": "string"},
        "purpose": {"type": "string"},
    }),
    ("GET", "/v1/files/{file}"): RouteDoc("Show a file", ("File",)),
    ("GET", "/v1/files/{file}/content"): RouteDoc("Download a file", ("Text",), kind="application/octet-stream"),
    ("DELETE", "/v1/files/{file}"): RouteDoc("Delete a file", ("DeletedFile",)),
    ("POST", "/v1/batches"): RouteDoc("Create a batch: answer the lines of a file", ("Batch",), batches.BODY, model=False),
    ("GET", "/v1/batches"): RouteDoc("List the batches", ("Batches",), query={
        "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        "after": {"type": "string"},
    }),
    ("GET", "/v1/batches/{batch}"): RouteDoc("Show a batch", ("Batch",)),
    ("POST", "/v1/batches/{batch}/cancel"): RouteDoc("Cancel a batch", ("Batch",)),
    ("GET", "/v1/models"): RouteDoc(
        "List the models", ("Models", "AnthropicModels"), errors=("OpenAIError", "AnthropicError"), either=True
    ),
    ("GET", "/v1/models/{model}"): RouteDoc(
        "Show a model", ("Model", "AnthropicModel"), errors=("OpenAIError", "AnthropicError"), either=True
    ),
    ("POST", "/api/chat"): RouteDoc(
        "Answer a conversation, with tools", ("OllamaChat",), ollama.BODY, stream=LINES, asks=True, **OLLAMA
    ),
    ("POST", "/api/generate"): RouteDoc(
        "Answer a prompt", ("OllamaReply",), generate.BODY, stream=LINES, asks=True, **OLLAMA, never=(
            _both(suffix={"type": "string", "minLength": 1}),
            _both(template={"type": "string", "minLength": 1}),
            _both(context={"type": "array", "minItems": 1}),
            _both(raw={"const": True}, system={"type": "string", "minLength": 1}),
            _both(raw={"const": True}, images={"type": "array", "minItems": 1}),
            _both(raw={"const": True}, format={"not": {"enum": ["", None]}}),
        ),
    ),
    ("POST", "/api/embed"): RouteDoc(
        "Turn texts into vectors", ("OllamaVectors",), ollama.EMBED_BODY, asks=True, **OLLAMA
    ),
    ("GET", "/api/tags"): RouteDoc("List the models", ("OllamaModels",), **OLLAMA),
    ("POST", "/api/show"): RouteDoc(
        "Show a model", ("OllamaModel",), ollama.SHOW_BODY, **OLLAMA, never=(
            {"properties": {"model": {"type": "null"}, "name": {"type": "null"}}},
        ),
    ),
    ("GET", "/api/ps"): RouteDoc("List the models that are loaded", ("OllamaRunning",), **OLLAMA),
    ("GET", "/api/version"): RouteDoc("The version of the API", ("OllamaVersion",), **OLLAMA),
    ("GET", "/"): RouteDoc(
        "Whether the process answers, for Ollama's client", ("Text",), tag="Ollama", kind="text/plain"
    ),
    ("GET", "/openapi.json"): RouteDoc("This document", ("Document",), tag="Gateway"),
    ("GET", "/livez"): RouteDoc("Whether the process answers", ("Health",), tag="Gateway", open=True),
    ("GET", "/readyz"): RouteDoc("Whether the gateway is ready for requests", ("Health",), tag="Gateway", open=True),
    ("GET", "/health"): RouteDoc("The same as /readyz", ("Health",), tag="Gateway", open=True),
    ("GET", "/metrics"): RouteDoc("Metrics for Prometheus", ("Text",), tag="Gateway", kind="text/plain"),
}  # fmt: skip
"""The operation of each route."""

SECURITY: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}

EVENT: Schema = {
    "type": "object",
    "description": "One of the events that are sent where the body says `stream: true`.",
    "required": ["data"],
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}

WHY: dict[int, str] = {
    400: "The request is malformed, or asks for something that is not supported",
    401: "The key is missing or unknown",
    403: "The request was meant for another host",
    404: "There is no such model, or no such path",
    405: "The path does not support this method; the header Allow lists those that it does",
    408: "The request did not arrive in time",
    413: "The body is too large",
    415: "The encoding or type of the body is not supported",
    429: "Too many requests, here or at the model's server; the header Retry-After says when to retry",
    431: "The request line and headers are too large",
    500: "The gateway failed; its log says why",
    502: "The model's server failed, or its reply was never valid",
    503: "The gateway is shutting down, or not ready yet",
    504: "The model's server did not answer in time",
}
ANSWERED = (404, 413, 415)
"""Errors of a route with a body."""
STORED = ("/v1/files", "/v1/batches")
"""Routes of stored data: it may be missing, or there may be too much."""
UPSTREAM_ERRORS = (429, 502, 503, 504)
"""Errors of a route that contacts a model's server."""


async def show_document(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """`GET /openapi.json`: the document, with the models that the client may see."""
    names = gateway.models.names(exchange.visible)
    await exchange.reply_json(200, document(names, secured=bool(gateway.settings.keys)))


def document(names: Sequence[str] = (), *, secured: bool = False) -> dict[str, Any]:
    """Return the document of a gateway that serves the models `names`; `secured`: it has keys."""
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), operation in OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, operation, names, secured)
    out: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "toolspeak",
            "version": __version__,
            "description": "Tools for any model, through the APIs that programs already use.",
        },
        "paths": paths,
        "components": {"schemas": SHAPES},
    }
    if secured:
        out["components"]["securitySchemes"] = SECURITY
    return out


def _operation(method: str, path: str, operation: RouteDoc, names: Sequence[str], secured: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"operationId": _id(method, path), "summary": operation.summary, "tags": [operation.tag]}
    if parameters := _parameters(path, operation, names):
        out["parameters"] = parameters
    if operation.body is not None:
        schema = _narrowed(operation, names)
        out["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if operation.form is not None:
        out["requestBody"] = {"required": True, "content": {"multipart/form-data": {"schema": operation.form}}}
    content: dict[str, Any] = {operation.kind: {"schema": _either(operation.shapes)}}
    if operation.stream:
        content[operation.stream] = {"schema": EVENT if operation.stream == EVENTS else _either(operation.shapes)}
    out["responses"] = {"200": {"description": "The answer", "content": content}}
    for status in _statuses(path, operation, secured):
        shapes = operation.shapes if operation.open and status == 503 else operation.errors
        error = {"application/json": {"schema": _either(shapes)}}
        out["responses"][str(status)] = {"description": WHY[status], "content": error}
    if secured and not operation.open:
        out["security"] = [{name: []} for name in SECURITY]
    return out


def _id(method: str, path: str) -> str:
    return method.lower() + "".join(c if c.isalnum() else "_" for c in path)


def _parameters(path: str, operation: RouteDoc, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the parameters of a request: path, query and headers."""
    parameters: list[dict[str, Any]] = []
    if hole := path.partition("{")[2].partition("}")[0]:
        schema = _model(names) if hole == "model" else {"type": "string", "minLength": 1, "maxLength": 256}
        parameters.append({"name": hole, "in": "path", "required": True, "schema": schema})
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()]
    if operation.either:
        why = "If present, the response has the format of Anthropic's API."
        parameters.append(
            {"name": "anthropic-version", "in": "header", "schema": {"type": "string"}, "description": why}
        )
    return parameters


def _either(names: Sequence[str]) -> Schema:
    return ref(names[0]) if len(names) == 1 else {"oneOf": [ref(name) for name in names]}


def _statuses(path: str, operation: RouteDoc, secured: bool) -> list[int]:
    statuses = {400, 403, 405, 408, 431, 500, 503}
    if secured and not operation.open:
        statuses |= {401, 429}
    if operation.body is not None or operation.form is not None:
        statuses |= {*ANSWERED}
    if path.startswith(STORED):
        statuses |= {404, 429}
    if operation.asks:
        statuses |= {*UPSTREAM_ERRORS}
    return sorted(statuses | ({404} if "{" in path else set()))


def _narrowed(operation: RouteDoc, names: Sequence[str]) -> dict[str, Any]:
    """Return the schema of a body with what this gateway adds: its models, and combinations that it refuses."""
    schema: dict[str, Any] = with_nulls(operation.body or {})
    properties: Mapping[str, Any] = schema["properties"]
    if not operation.model:
        return schema
    model = _model(["", *names] if len(names) == 1 else names)
    if "model" not in schema.get("required", ()):  # as for every field that may be absent
        model = {"anyOf": [model, {"type": "null"}]}
    schema["properties"] = {**properties, "model": model}
    if operation.never:
        schema["not"] = {"anyOf": list(operation.never)}
    return schema


def _model(names: Sequence[str]) -> Schema:
    return {"type": "string", "enum": list(names)} if names else {"type": "string", "minLength": 1, "maxLength": 256}
