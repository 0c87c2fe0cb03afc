"""OpenAPI documents that are damaged or hostile, and hostile arguments to the operations that are made of them.

A document is taken or refused with an error of ours. What an operation then sends is measured at a real server: the
method and the host of the document, the segments of its path, no query, header, cookie or field that it does not name,
and the secret in its own place alone, which does not come back in what a model is given, however the server writes it.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import html
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, unquote_plus
from zlib import crc32

from bodies import WRONG, places, put
from judge import limited
from loopback import listening

import toolspeak as ts

SECRET = 'k€y"/of<the>library+7'.replace("€", "e")
PATIENCE = 10
MOST = 10
TOOLS = 6
"""Operations of a document that are called."""
LITERAL = "/:@!$&'()*+,;=~-._%"
"""What a document may write in a path as it is."""
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True}
LIST = {"type": "array", "items": {}}


def _parameter(name: str, place: str, schema: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "schema": {} if schema is None else schema,
        **more,
        **({"required": True} if place == "path" else {}),
    }


def _operation(name: str, *parameters: Any, **more: Any) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": name,
        "parameters": list(parameters),
        "responses": {"200": {"description": "ok"}},
        **more,
    }


def _styles(place: str, styles: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        _parameter(f"{style}{'X' if explode else ''}{kind}", place, schema, style=style, explode=explode)
        for style in styles
        for explode in (False, True)
        for kind, schema in (("s", {}), ("l", LIST), ("o", OBJECT))
    ]


def _body(media: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media: {"schema": schema, **more}}}}


FIELDS = {"type": "object", "properties": {"a": {}, "l": LIST, "o": OBJECT, "n": {"type": ["integer", "null"]}}}
SEED: dict[str, Any] = {
    "openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "servers": [{"url": "SERVER/base", "variables": {"v": {"default": "x"}}}],
    "security": [{"query": []}],
    "components": {
        "securitySchemes": {
            "query": {"type": "apiKey", "in": "query", "name": "api_key"}, "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": "session"}, "bearer": {"type": "http", "scheme": "bearer"},
        },
        "schemas": {"Loop": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Loop"}}},
                    "A": {"allOf": [{"$ref": "#/components/schemas/Loop"}, {"properties": {"b": {"enum": [1, "x", None]}}}]}},
        "parameters": {"P": _parameter("p", "query", {"$ref": "#/components/schemas/A"}, style="deepObject", explode=True)},
    },
    "paths": {
        "/one/{id}/two/{more}": {"get": _operation("path", _parameter("id", "path"), _parameter("more", "path", LIST)),
                                 "parameters": [{"$ref": "#/components/parameters/P"}]},
        "/styles/{simples}.{simplel}/{labelXl}{matrixXo}": {"delete": _operation("styles", *(
            one for one in _styles("path", ("simple", "label", "matrix")) if one["name"] in ("simples", "simplel", "labelXl", "matrixXo")))},
        "/query": {"get": _operation("query", *_styles("query", ("form", "spaceDelimited", "pipeDelimited", "deepObject")),
                                     _parameter("r", "query", allowReserved=True), _parameter("api_key", "query"),
                                     {"name": "j", "in": "query", "content": {"application/json": {"schema": {}}}})},
        "/head": {"post": _operation("head", *_styles("header", ("simple",)), *_styles("cookie", ("form",)), security=[{"header": []}])},
        "/cookie": {"get": _operation("cookie", *_styles("cookie", ("form",)), security=[{"cookie": []}])},
        "/json": {"post": _operation("json", _parameter("q", "query"), **_body("application/json", FIELDS), security=[{"bearer": []}])},
        "/whole": {"put": _operation("whole", **_body("application/json", {"$ref": "#/components/schemas/A"}))},
        "/form": {"post": _operation("form", **_body("application/x-www-form-urlencoded", FIELDS, encoding={
            "l": {"style": "pipeDelimited", "explode": False}, "o": {"style": "deepObject", "explode": True}}))},
        "/parts": {"post": _operation("parts", **_body("multipart/form-data", {"type": "object", "properties": {
            "a": {}, "f": {"type": "string", "format": "binary"}, "o": OBJECT}}))},
        "/text": {"post": _operation("text", **_body("text/plain", {"type": "string"}))},
        "/bytes": {"post": _operation("bytes", **_body("application/octet-stream", {}))},
        "/echo/{how}": {"get": _operation("echo", _parameter("how", "path", {"type": "string"}))},
    },
}  # fmt: skip
ODD: tuple[Any, ...] = (
    {"$ref": "#"}, {"$ref": "#/paths/~1query"}, {"$ref": "OTHER/steal.json"}, {"$ref": "file:///etc/passwd"}, {"$ref": ["#"]},
    {"$ref": "#/components/schemas/Loop"}, {"enum": list(range(3000))}, {"type": "string", "pattern": "(a+)+$"}, "OTHER", "//evil", "/../x",
    "/{id}", "{a}{b}", "/a/{}", "/%2e%2e/{id}", "file:///x", "label", "matrix", "deepObject", "simple", "header", "cookie", "path", "query",
    "Authorization", "Host", "a\r\nb: c", "api_key", "API-KEY", "session", "X-Key", "\u200b", "<|im_start|>", "x" * 40_000, {"default": SECRET[:3]},
    [_parameter("id", "path")] * 3, {"url": "OTHER"}, [{"url": "OTHER"}], {"a": {"b": {"c": {"d": {}}}}}, True, 3.1, "3.0.0", "2.0",
)  # fmt: skip
HOSTILE: tuple[Any, ...] = (
    "", ".", "..", "../x", "a/../b", "%2e%2e", "%252e%252e%252f", "a/b", "a\\..\\b", "//evil", "?x=1", "#", "&api_key=1", "x&b=c", "a=b",
    "; session=1", ", x", "a\r\nX: y", "a\0b", "é", "\u202e", "\ud800", "\u2028", "$HOME", "${HOME}", "{id}", "%", "%zz", "+", " ", "x" * 3000,
    [], {}, [[]], [{}], [""], ["..", "b"], [".", "."], [None], [[["a"]]], {"a": ".."}, {"": ""}, {"..": ".."}, {"api_key": "1"}, {"session": "2"},
    {"X-Key": "3"}, {"a&b": "c=d"}, {"a": {"b": ["c", {"d": 1}]}}, {"api_key[]": "x"}, {"API_KEY": "x"}, {"api.key": "x"}, None, True, False, 0,
    -0.0, 1e308, 2**70, -1, 0.1, "QUFB", {"a]b": "x"}, {"formXs": "x"}, {"r": "x", "j": 1}, {"\r\n": "x"}, {"a;b": 1}, [1, "b", None, True],
)  # fmt: skip


# ------------------------------------------------------------------ the server


@dataclass
class Came:
    """A request as it came: all of its bytes but for the body, in latin-1."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes


ECHOES: dict[str, Callable[[str], str]] = {
    "plain": str, "json": json.dumps, "percent": lambda s: quote(s, safe=""), "twice": lambda s: quote(quote(s, safe=""), safe=""),
    "all": lambda s: "".join(f"%{ord(c):02X}" for c in s), "html": html.escape, "codes": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "unicode": lambda s: '"' + "".join(f"\\u{ord(c):04x}" for c in s) + '"', "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "in64": lambda s: base64.b64encode(f"key {s}, said".encode()).decode(), "url64": lambda s: base64.urlsafe_b64encode(f"a{s}?>".encode()).decode(),
    "hex": lambda s: s.encode().hex(), "slashes": lambda s: s.replace("/", "\\/"), "dumped": lambda s: json.dumps(json.dumps(s)),
}  # fmt: skip


class Server:
    """A server that writes down what comes, and answers with it, the secret written in a way that the path names."""

    def __init__(self) -> None:
        self.url = ""
        self.came: list[Came] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head[:-4].split("\r\n")
            method, _, rest = first.partition(" ")
            headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
            size = next((int(value) for name, value in headers if name == "content-length"), 0)
            one = Came(method, rest.rpartition(" ")[0], headers, await reader.readexactly(size))
            self.came.append(one)
            how = ECHOES.get(one.target.partition("?")[0].rpartition("/")[2])
            text = how(SECRET) if how else f"{head}\n{one.body.decode('latin-1')}"
            raw = text.encode("latin-1", "replace")
            kind = random.Random(len(self.came)).choice(("application/json", "text/plain", "text/html; charset=utf-8"))
            status = 200 if len(self.came) % 3 else 400
            writer.write(
                f"HTTP/1.1 {status} OK\r\ncontent-type: {kind}\r\ncontent-length: {len(raw)}\r\nconnection: close\r\n\r\n".encode()
            )
            writer.write(raw)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()


@contextmanager
def running() -> Iterator[tuple[Server, Server]]:
    """The server that documents name, and another one to which nothing may go."""
    both = (Server(), Server())
    with listening(*both):
        yield both


# ------------------------------------------------------------------ cases


@dataclass(frozen=True)
class Case:
    """A document, what credentials there are, and what each operation is called with."""

    document: Any
    auth: Any
    arguments: list[Any] = field(default_factory=list)
    change: str = field(default="", compare=False)


AUTHS: tuple[Any, ...] = (
    None, {"query": SECRET}, {"header": SECRET, "cookie": SECRET}, {"bearer": SECRET}, {"query": SECRET, "header": SECRET, "cookie": SECRET, "bearer": SECRET},
)  # fmt: skip


def changed(rng: random.Random) -> Case:
    """A document that is wrong in up to three places, and arguments."""
    document: Any = copy.deepcopy(SEED)
    if rng.random() < 0.7:  # small ones are seen through more often
        keep = rng.sample(list(document["paths"]), 3)
        document["paths"] = {path: document["paths"][path] for path in keep}
    told: list[str] = []
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        at = rng.choice(list(places(document))[1:])
        if rng.random() < 0.15 and at and isinstance(at[-1], str):
            held = document
            for key in at[:-1]:
                held = held[key]
            new = rng.choice([one for one in ODD if isinstance(one, str)])
            held[new] = held.pop(at[-1])
            told.append(f"{at} is named {new[:60]!r}")
            continue
        new = rng.choice((*WRONG, *ODD, *ODD))
        document = put(document, at, new)
        told.append(f"{at} = {str(new)[:60]}")
    arguments = [{"seed": rng.randrange(2**32), "share": rng.choice((0.3, 0.7, 1.0))} for _ in range(TOOLS)]
    return Case(document, rng.choice(AUTHS), arguments, "; ".join(told))


def _arguments(tool: Any, how: dict[str, Any]) -> dict[str, Any]:
    rng = random.Random(how["seed"])
    wanted = set(tool.parameters.get("required", ()))
    names = [one for one in tool.parameters.get("properties", {}) if one in wanted or rng.random() < how["share"]]
    given = {name: rng.choice(HOSTILE) for name in names}
    for name in names:  # a path with only bad parts is never sent: most of it is good
        if rng.random() < 0.5 or (name == "how" and rng.random() < 0.9):
            given[name] = (
                rng.choice(list(ECHOES)) if name == "how" else rng.choice(("word", 7, ["a", "b"], {"k": "v"}, "a b/c"))
            )
    if rng.random() < 0.1:
        given[rng.choice(("api_key", "X-Key", "Host", "body", "extra"))] = "x"
    return given


# ------------------------------------------------------------------ is it right?


def problem(case: Case, server: Server, other: Server) -> str:
    """What is wrong; "" for nothing."""
    text = json.dumps(case.document).replace("SERVER", server.url).replace("OTHER", other.url)
    document = json.loads(text)
    server.came.clear()
    other.came.clear()
    try:
        with limited(PATIENCE):
            box = ts.openapi(document, auth=case.auth, server=f"{server.url}/base", timeout=PATIENCE)
            tools = list(box)
    except ts.ToolspeakError as error:
        return _gone(server, other) or (
            "" if 0 < len(str(error)) < 8_000 else f"an error of {len(str(error)):,} characters"
        )
    except TimeoutError:
        return f"hang: more than {PATIENCE} s for a document of {len(text):,} characters"
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        return f"raised {type(error).__name__}: {error}"
    if told := _gone(server, other):
        return told
    # The seeds' parts are known; of an operation that was damaged only what holds for each is looked at.
    for tool, how in zip(tools, case.arguments, strict=False):
        given = _arguments(tool, how)
        server.came.clear()
        if told := _called(box, tool, given, document, case, server, other):
            return f"{told}\n  {tool.name}({json.dumps(given)[:500]})"
    return ""


def _called(
    box: Any, tool: Any, given: dict[str, Any], document: Any, case: Case, server: Server, other: Server
) -> str:
    value: Any = ""
    try:
        with limited(PATIENCE):
            value = box.call({"name": tool.name, "arguments": given})
    except ts.ToolspeakError as error:
        value = str(error)
    except TimeoutError:
        return f"hang: a call took more than {PATIENCE} s"
    except Exception as error:  # noqa: BLE001
        return f"raised {type(error).__name__}: {error}"
    if raw := re.search(r"failed: \w+(Error|Exception)\b", value if isinstance(value, str) else ""):
        return f"{raw[0]}: {value[:300]}"
    if other.came:
        return f"another server was reached: {other.came[0].target}"
    if case.auth and (told := leaked(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))):
        return told
    if len(server.came) > 1:
        return "it was sent more than once"
    if not server.came:
        return ""
    return _sent(server.came[0], document, case, server) or (
        "" if case.change else _exact(server.came[0], tool.name, given, case)
    )


def _gone(server: Server, other: Server) -> str:
    came = [*server.came, *other.came]
    return f"something was fetched: {came[0].target}" if came else ""


def leaked(text: str) -> str:
    """Whether a text holds the secret, in any of the forms in which the server writes it."""
    forms = {text, html.unescape(text), unquote(text), unquote(unquote(text)), unquote_plus(text)}
    forms.add(
        re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text).replace("\\/", "/").replace('\\"', '"')
    )
    for word in re.findall(r"[A-Za-z0-9+/_=-]{12,}", text):
        plain = word.translate(str.maketrans("-_", "+/", "="))
        forms.add(base64.b64decode(plain[: len(plain) // 4 * 4]).decode("latin-1"))
        if re.fullmatch(r"(?:[0-9a-fA-F]{2})+", word):
            forms.add(bytes.fromhex(word).decode("latin-1"))
    return f"the secret came back: {text[:300]}" if any(SECRET in one for one in forms) else ""


STANDARD = {
    "host",
    "accept",
    "accept-encoding",
    "user-agent",
    "content-type",
    "content-length",
    "connection",
    "transfer-encoding",
}
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


def _sent(came: Came, document: Any, case: Case, server: Server) -> str:
    """What is wrong with a request, by the document."""
    path, _, query = came.target.partition("?")
    plain = path
    for _ in range(3):
        if ".." in plain.replace("\\", "/").split("/") or "\r" in plain or "\n" in plain:
            return f"a path that leads elsewhere: {came.target!r}"
        plain = unquote(plain)
    found = [item for held, item in document["paths"].items() if isinstance(item, dict) and _fits(held, path)]
    if not any(came.method.lower() in item or "$ref" in item for item in found):
        return f"no operation of the document: {came.method} {came.target!r}"
    if not came.target.isascii() or " " in came.target or "#" in came.target:
        return f"a target that is none: {came.target!r}"
    hosts = [value for name, value in came.headers if name == "host"]
    if hosts != [server.url.removeprefix("http://")]:
        return f"another host: {hosts}"
    for name in ("authorization", "x-key", "cookie", "host", "content-length", "content-type"):
        if sum(held == name for held, _ in came.headers) > 1:
            return f"the header {name} occurs twice"
    declared = json.dumps(document).lower()
    for name, value in came.headers:
        if (
            name not in STANDARD
            and name not in ("authorization", "cookie", "x-key")
            and json.dumps(name)[1:-1] not in declared
        ):
            return f"a header that nobody named: {name}: {value}"
    secrets = _secrets(case)
    if SECRET in unquote(path) or SECRET in came.body.decode("latin-1"):
        return "the secret is in the path or the body"
    for name, value in came.headers:
        if (
            name == "authorization"
            and value not in {f"Bearer {one}" for one in secrets}
            and "authorization" not in json.dumps(case.document).lower()
        ):
            return f"authorization: {value}"
        if (
            SECRET in value
            and name not in ("authorization", "x-key", "cookie")
            and json.dumps(case.document).lower().count(f'"{name}"') == 0
        ):
            return f"the secret is in {name}"
    pairs = parse_qsl(query, keep_blank_values=True)
    keys = [value for name, value in pairs if _lenient(name) == "api_key"]
    if case.document == {**SEED, "paths": case.document["paths"]} and any(value not in secrets for value in keys):
        return f"the key's parameter was set: {came.target!r}"
    return ""


def _exact(came: Came, name: str, given: dict[str, Any], case: Case) -> str:
    """What is wrong with a request of an operation as it stands in the seed: what is not from its own arguments."""
    path, node = next(
        (p, n)
        for p, item in SEED["paths"].items()
        for n in item.values()
        if isinstance(n, dict) and n["operationId"] == name
    )
    declared = [*node["parameters"], *([SEED["components"]["parameters"]["P"]] if "{id}" in path else [])]
    own: dict[str, set[str]] = {"query": set(), "cookie": set(), "header": set(STANDARD)}
    for one in declared:
        value = given.get(one["name"])
        left_out = value is None and "content" not in one  # as JSON, it is written: `null`
        if left_out or one["name"] not in given or one["in"] == "path":
            continue
        pieces = (
            one["in"] != "header"
            and one.get("explode", True)
            and one.get("style") != "deepObject"
            and "content" not in one
        )
        own[one["in"]] |= (
            set(value)
            if isinstance(value, dict) and pieces
            else {one["name"].lower() if one["in"] == "header" else one["name"]}
        )
    schemes = {next(iter(one)) for one in node.get("security", SEED["security"])} & set(case.auth or {})
    for scheme, place, key in (
        ("query", "query", "api_key"),
        ("cookie", "cookie", "session"),
        ("header", "header", "x-key"),
        ("bearer", "header", "authorization"),
    ):
        sent = [value for held, value in _pairs(came, place) if held == key]
        right = [f"Bearer {SECRET}" if scheme == "bearer" else SECRET] if scheme in schemes else []
        if sent != right:
            return f"{key} is {sent}, not {right}"
        own[place] |= {key} if right else set()
    own["header"] |= {"cookie"} if _pairs(came, "cookie") else set()
    for place, names in own.items():
        for held, _ in _pairs(came, place):
            if held not in names and held.partition("[")[0] not in names:
                return f"a {place} parameter that no argument names: {held!r}"
    return _body_problem(came, name, given)


def _pairs(came: Came, place: str) -> list[tuple[str, str]]:
    if place == "query":
        return parse_qsl(came.target.partition("?")[2], keep_blank_values=True)
    if place == "header":
        return came.headers
    held = "; ".join(value for name, value in came.headers if name == "cookie")
    return [
        (unquote(name), unquote(value)) for name, _, value in (pair.partition("=") for pair in held.split("; ") if pair)
    ]


def _body_problem(came: Came, name: str, given: dict[str, Any]) -> str:
    match name:
        case "json":
            wrong = json.loads(came.body) != {key: value for key, value in given.items() if key != "q"}
        case "whole":
            wrong = json.loads(came.body) != given.get("body", given)
        case "form":
            names = {key for key, _ in parse_qsl(came.body.decode(), keep_blank_values=True)}
            inner = {key for value in given.values() if isinstance(value, dict) for key in value}
            wrong = not {key.partition("[")[0] for key in names} <= {key.partition("[")[0] for key in (*given, *inner)}
        case "parts":
            most = sum(len(value) if isinstance(value, list) else 1 for value in given.values())
            wrong = came.body.count(b"Content-Disposition: form-data;") > most
        case "text":
            wrong = came.body.decode() != given.get("body", "")
        case _:
            wrong = bool(came.body) and name != "bytes"
    return f"another body: {came.body[:300]!r}" if wrong else ""


def _lenient(name: str) -> str:
    return name.partition("[")[0].strip().lower().replace(".", "_").replace(" ", "_").replace("-", "_")


def _secrets(case: Case) -> set[str]:
    return set((case.auth or {}).values())


def _fits(template: str, path: str) -> bool:
    """Whether a path has the segments of a template, what stands in its holes being one segment."""
    pattern = "".join(
        "[^/?#]*" if index % 2 else f"(?:{re.escape(part)}|{re.escape(quote(part, safe=LITERAL))})"
        for index, part in enumerate(template.replace("{", "}").split("}"))
    )
    return re.fullmatch("/base" + pattern, path) is not None


def documents(limit: float, seed: int) -> tuple[int, int]:
    """How many documents were tried in so many seconds, and how many findings there were."""
    rng, end, tried = random.Random(seed), time.time() + limit, 0
    found: set[str] = set()
    with running() as (server, other):
        while time.time() < end and len(found) < MOST:
            case = changed(rng)
            tried += 1
            told = problem(case, server, other)
            if told and told[:40] not in found:
                found.add(told[:40])
                print(
                    f"FOUND {told}\n  {case.change!a}\n  kept in {_save(case, told)}".encode(
                        "ascii", "backslashreplace"
                    ).decode(),
                    flush=True,
                )
    return tried, len(found)


def tried_again(case: dict[str, Any]) -> str:
    """What is wrong with a kept finding."""
    with running() as (server, other):
        return problem(Case(case["document"], case["auth"], case["arguments"]), server, other)


def _save(case: Case, told: str) -> Path:
    from judge import FOUND

    FOUND.mkdir(exist_ok=True)
    text = json.dumps(
        {
            "document": case.document,
            "auth": case.auth,
            "arguments": case.arguments,
            "change": case.change,
            "problem": told,
        }
    )
    path = FOUND / f"openapi-{crc32(text.encode()):08x}.json"
    path.write_text(text, "utf-8")
    return path


if __name__ == "__main__":
    print(documents(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
