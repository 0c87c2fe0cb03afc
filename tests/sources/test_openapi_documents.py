"""OpenAPI documents as tools, against a real server on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from library import DOCUMENT, ESCAPES, KEY, Library, one_operation, running

import toolspeak as ts
from toolspeak.secret_removal import Secrets


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    with running() as one:
        yield one


@pytest.fixture
def other() -> Iterator[Library]:
    with running() as one:
        yield one


def call(box: ts.Toolbox, name: str, **arguments: Any) -> Any:
    return box.call({"name": name, "arguments": arguments})


def refused(box: ts.Toolbox, name: str, **arguments: Any) -> str:
    with pytest.raises(ts.ToolError) as caught:
        call(box, name, **arguments)
    return str(caught.value)


# ------------------------------------------------------------------ what a model is told


def test_each_operation_is_a_tool(library: Library) -> None:
    box = ts.openapi(f"{library.url}/openapi.json", auth=KEY)
    told = {one["name"]: one for one in box.list()}
    assert list(told) == ["getBook", "dropBook", "books_add", "cover", "slow", "large", "away", "echo"]
    assert told["getBook"]["description"] == "Show a book\n\nShows one book."
    assert told["dropBook"]["description"].startswith("Deprecated.")
    assert told["getBook"]["parameters"] == {
        "type": "object",
        "properties": {"id": {"type": "integer"}},  # the key is nothing that a model is told of
        "required": ["id"],
        "additionalProperties": False,
    }
    book = told["books_add"]["parameters"]
    assert list(book["properties"]) == ["title", "year", "like"]  # no id: the server fills it in
    assert book["properties"]["year"] == {"type": ["integer", "null"]}
    assert book["properties"]["like"]["items"] == {"$ref": "#/$defs/Book"}
    assert book["$defs"]["Book"]["required"] == ["title"]


def test_methods_say_what_a_tool_does(library: Library) -> None:
    labels = {tool.name: (tool.effect, tool.reads) for tool in ts.openapi(f"{library.url}/openapi.json", auth=KEY)}
    assert labels["getBook"] == ("read", "untrusted")
    assert labels["dropBook"] == ("destructive", "untrusted")
    assert labels["books_add"] == ("write", "untrusted")


def test_calls_reach_the_server(library: Library) -> None:
    box = ts.openapi(f"{library.url}/openapi.json", auth={"key": KEY})
    assert call(box, "getBook", id=1) == {"id": 1, "title": "Emma", "year": 1815}
    assert call(box, "dropBook", id=1) == "204 No Content"
    echoed = call(box, "books_add", title="Æ", like=[{"title": "B"}])
    assert (echoed["method"], echoed["path"]) == ("POST", "/api/books")
    assert json.loads(echoed["body"]) == {"title": "Æ", "like": [{"title": "B"}]}
    assert echoed["headers"]["Content-Type"] == "application/json"
    assert call(box, "cover") == {
        "content_type": "image/png",
        "bytes": 6,
        "note": "the content is not text and is not shown",
    }


def test_a_model_calls_an_operation(library: Library) -> None:
    model = ts.Speaker(ts.Scripted(['{"tool": "getBook", "tool_input": {"id": 1}}', "It is Emma."]))
    reply = ts.run("Which book is 1?", tools=ts.openapi(f"{library.url}/openapi.json", auth=KEY), model=model)
    assert reply.steps[0].results[0].value["title"] == "Emma"


@pytest.mark.parametrize(
    ("how", "names"),
    [
        ({"only": "getBook"}, ["getBook"]),
        ({"only": ["/books*"], "without": "drop*"}, ["getBook", "books_add"]),
        ({"only": "tag:books"}, ["getBook", "books_add"]),
        ({"only": "/books*", "read_only": True}, ["getBook"]),
    ],
)
def test_operations_are_chosen(how: dict[str, Any], names: list[str]) -> None:
    assert [one.name for one in ts.openapi(DOCUMENT, server="http://127.0.0.1:1", **how)] == names


def test_names_are_such_that_every_api_takes_them() -> None:
    paths = {
        "/a": {"get": {"operationId": "pets/list all"}, "post": {"operationId": "pets.list.all"}},
        "/2/{x}": {"get": {}, "put": {"operationId": "2fa"}},
        "/é": {"get": {"operationId": "日本"}, "put": {"operationId": "n" * 99}},
    }
    box = ts.openapi({"openapi": "3.1.0", "paths": paths}, server="https://api.example")
    assert [one.name for one in box] == ["pets_list_all", "post_a", "get_2_x", "put_2fa", "get", "n" * 64]


# ------------------------------------------------------------------ how arguments are written


@pytest.mark.parametrize(
    ("told", "value", "sent"),
    [
        ({}, ["a b", "c,d"], "q=a%20b&q=c%2Cd"),
        ({"explode": False}, ["a b", "c,d"], "q=a%20b,c%2Cd"),
        ({"style": "pipeDelimited"}, ["a", "b"], "q=a%7Cb"),
        ({"style": "spaceDelimited"}, ["a", "b"], "q=a%20b"),
        ({}, {"x": 1, "y": True}, "x=1&y=true"),
        ({"style": "deepObject"}, {"x": {"y": 2.0}, "z": ["v"]}, "q[x][y]=2&q[z][]=v"),
        ({"allowReserved": True}, "a/b?c&d", "q=a/b?c%26d"),
        ({"content": {"application/json": {}}}, {"a": [1]}, "q=%7B%22a%22%3A%5B1%5D%7D"),
        ({}, "", "q="),
        ({"content": {"application/json": {}}}, None, "q=null"),
    ],
)
def test_queries(library: Library, told: dict[str, Any], value: Any, sent: str) -> None:
    operation = {"operationId": "f", "parameters": [{"name": "q", "in": "query", **told}]}
    box = ts.openapi(one_operation(operation, method="get"), server=library.url)
    assert call(box, "f", q=value)["path"] == f"/x?{sent}"


@pytest.mark.parametrize(
    ("told", "value", "sent"),
    [
        ({}, "a/b c?d#e%25f", "a%2Fb%20c%3Fd%23e%2525f"),
        ({}, ["a", "b,c"], "a,b%2Cc"),
        ({"style": "label", "explode": True}, ["a", "b"], ".a.b"),
        ({"style": "matrix"}, 5, ";p=5"),
        ({"style": "matrix", "explode": True}, {"x": 1, "y": 2}, ";x=1;y=2"),
        ({"explode": True}, {"x": 1, "y": 2}, "x%3D1"),
    ],
)
def test_paths(library: Library, told: dict[str, Any], value: Any, sent: str) -> None:
    operation = {"operationId": "f", "parameters": [{"name": "p", "in": "path", "required": True, **told}]}
    box = ts.openapi(one_operation(operation, "/x/{p}/end", "get"), server=library.url)
    if sent == "x%3D1":
        sent = "x=1,y=2"
    assert call(box, "f", p=value)["path"] == f"/x/{sent}/end"


@pytest.mark.parametrize(
    "word",
    ["", ".", "..", "../books", "a/../../b", "..\\b", "%2e%2e", "%252e%252e/x", "a\r\nb", "a//b", " ", ".. ", " .", "a/..%20/b"],
)  # fmt: skip
def test_no_argument_leads_to_another_path(library: Library, word: str) -> None:
    box = ts.openapi(f"{library.url}/openapi.json", only="echo")
    before = len(library.asked)
    assert "must not be empty, nor contain a part" in refused(box, "echo", word=word)
    assert len(library.asked) == before


@pytest.mark.parametrize("value", [[], {}, [""], ["."], ["..", "x"], ".", {"..": "x"}, {"\r\n": "x"}])
@pytest.mark.parametrize("explode", [True, False])
@pytest.mark.parametrize("style", ["simple", "label", "matrix"])
@pytest.mark.parametrize("path", ["/pets/{p}", "/pets/.{p}", "/pets/{p}/end"])
def test_no_list_leads_to_another_path(library: Library, path: str, style: str, explode: bool, value: Any) -> None:
    """DELETE /pets/ would be all of them: an empty list is no part of a path, nor is one of dots."""
    part = {"name": "p", "in": "path", "required": True, "style": style, "explode": explode}
    box = ts.openapi(one_operation({"operationId": "f", "parameters": [part]}, path, "delete"), server=library.url)
    before = len(library.asked)
    assert "a path" in refused(box, "f", p=value)
    assert len(library.asked) == before


@pytest.mark.parametrize(
    "path", ["/../x", "/a/../../x", "/%2e%2e/x", "/a/%252e%252e", "/..\\x", "/..;a=b/x", "/./x", "/..%20/x"]
)
def test_no_path_of_a_document_leads_out_of_its_server(path: str) -> None:
    with pytest.raises(ts.UsageError, match=r"a path has no part that is `.` or `..`"):
        ts.openapi(one_operation({}, path, "get"), server="https://api.example/v1")


def test_several_arguments_make_no_path_of_dots(library: Library) -> None:
    parts = [{"name": name, "in": "path", "required": True} for name in "ab"]
    operation = {"operationId": "f", "parameters": parts}
    box = ts.openapi(one_operation(operation, "/x/{a}{b}/y", "get"), server=library.url)
    assert call(box, "f", a="v", b=".w")["path"] == "/x/v.w/y"
    assert "must not be empty" in refused(box, "f", a=".", b=".")


KEYED = {"type": "apiKey", "name": "api_key"}


@pytest.mark.parametrize(
    "name", ["api_key", "API_KEY", "api_key[]", "api_key[0]", "api_key\0", "api.key", "api-key", "limit"]
)
@pytest.mark.parametrize("place", ["query", "cookie"])
def test_no_field_of_an_object_sets_another_parameter(library: Library, place: str, name: str) -> None:
    """An object that is told in pieces names parameters: none that the document or the key has already."""
    listed = [{"name": "q", "in": place, "explode": True}, {"name": "limit", "in": place}]
    document = one_operation({"operationId": "f", "parameters": listed, "security": [{"k": []}]}, method="get")
    document["components"] = {"securitySchemes": {"k": {**KEYED, "in": place}}}
    box = ts.openapi(document, server=library.url, auth="the-secret-of-the-server")
    assert "would set another parameter" in refused(box, "f", q={"x": 1, name: "mine"})
    assert call(box, "f", q={"x": 1})["method"] == "GET"


@pytest.mark.parametrize(
    ("q", "taken"),
    [
        ({"owner": "root"}, "q[owner]"), ({"Owner ": "root"}, "q[owner]"), ({"owner]": "root"}, "q[owner]"),
        ({"owner": {"id": 1}}, "q[owner]"), ({"owner": "root"}, "q[owner][id]"), ({"a": {"b": 1}}, "q[a][b]"),
        ({"a][b": 1}, "q[a][b]"), ({"owner": "root"}, "q.owner"), ({"%6fwner": "root"}, "q[owner]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["query", "form", "key"])
def test_no_field_of_a_deep_object_sets_another_parameter(library: Library, place: str, q: Any, taken: str) -> None:
    """Not one that the document lists beside the object, in a query or a form, nor that of the key."""
    deep = {"style": "deepObject", "explode": True}
    parameter = {"name": "q", "in": "query", **deep}
    schema = {"type": "object", "properties": {"q": {"type": "object"}, taken: {"type": "string"}}}
    form = {"application/x-www-form-urlencoded": {"schema": schema, "encoding": {"q": deep}}}
    operation: dict[str, Any] = {
        "query": {"parameters": [parameter, {"name": taken, "in": "query"}]},
        "form": {"requestBody": {"content": form}},
        "key": {"parameters": [parameter], "security": [{"k": []}]},
    }[place]
    scheme = {"type": "apiKey", "in": "query", "name": taken}
    document = one_operation({"operationId": "f", **operation}, components={"securitySchemes": {"k": scheme}})
    box = ts.openapi(document, server=library.url, auth="the-secret-of-the-server")
    assert "would set another parameter" in refused(box, "f", q=q)
    assert call(box, "f", q={"x": {"y": 1}})["method"] == "POST"


def test_no_argument_makes_a_header_of_its_own(library: Library) -> None:
    box = ts.openapi(f"{library.url}/openapi.json", only="echo")
    assert "not contain a line break" in refused(box, "echo", word="a", **{"X-Note": "a\r\nX-Key: b"})
    assert call(box, "echo", word="a", **{"X-Note": "ü, b"})["headers"]["X-Note"] == "ü, b"


def test_forms_files_and_texts(library: Library) -> None:
    fields = {
        "type": "object",
        "properties": {"a": {"type": "array"}, "o": {"type": "object"}, "@n": {"type": "integer"}},
    }

    def sent(media: str, schema: Any, **arguments: Any) -> dict[str, Any]:
        operation = {"operationId": "f", "requestBody": {"required": True, "content": {media: {"schema": schema}}}}
        return call(ts.openapi(one_operation(operation), server=library.url), "f", **arguments)

    form = sent("application/x-www-form-urlencoded", fields, a=["x", "y z"], o={"k": 1}, n=3)
    assert form["body"] == "a=x&a=y%20z&o=%7B%22k%22%3A1%7D&%40n=3"
    file = {"type": "object", "properties": {"f": {"type": "string", "format": "binary"}, "t": {"type": "string"}}}
    several = sent("multipart/form-data", file, f="aGk=", t="é")
    assert several["headers"]["Content-Type"].startswith("multipart/form-data; boundary=")
    assert 'name="f"; filename="f"\r\nContent-Type: application/octet-stream\r\n\r\nhi\r\n' in several["body"]
    assert 'name="t"\r\n\r\né\r\n' in several["body"]
    assert sent("text/plain", {"type": "string"}, body="é")["body"] == "é"
    assert sent("application/x-ndjson", {}, body='{"a": 1}\n')["body"] == '{"a": 1}\n'
    assert sent("application/octet-stream", {}, body="aGk=")["body"] == "hi"
    assert sent("application/json", {"type": "array"}, body=[1])["body"] == "[1]"
    assert (
        sent("application/merge-patch+json", fields, n=1)["headers"]["Content-Type"] == "application/merge-patch+json"
    )


def test_null_is_sent_where_it_can_be_written(library: Library) -> None:
    nullable = {"type": ["string", "null"]}
    places = [{"name": place, "in": place, "schema": nullable} for place in ("query", "header", "cookie")]
    fields = {"type": "object", "properties": {"a": nullable, "b": {"type": "string"}}}
    for media, body in (
        ("application/json", '{"a": null, "b": "c"}'),
        ("application/x-www-form-urlencoded", "b=c"),
        ("multipart/form-data", None),
    ):
        operation = {"operationId": "f", "parameters": places, "requestBody": {"content": {media: {"schema": fields}}}}
        box = ts.openapi(one_operation(operation), server=library.url)
        got = call(box, "f", query=None, header=None, cookie=None, a=None, b="c")
        assert got["path"] == "/x"
        assert not {"header", "Cookie"} & got["headers"].keys()
        assert got["body"] == body if body else 'name="a"' not in got["body"]


def test_without_a_body_there_is_no_type_of_it(library: Library) -> None:
    content = {"application/json": {"schema": {"type": "object", "properties": {"a": {}}}}}
    box = ts.openapi(one_operation({"operationId": "f", "requestBody": {"content": content}}), server=library.url)
    assert "Content-Type" not in call(box, "f")["headers"]
    assert call(box, "f", a=1)["headers"]["Content-Type"] == "application/json"


def test_arguments_of_one_name_are_told_apart(library: Library) -> None:
    body = {"required": True, "content": {"application/json": {"schema": {"properties": {"id": {"type": "string"}}}}}}
    parameters = [{"name": "id", "in": where, "required": True, "schema": {}} for where in ("path", "query")]
    operation = {"operationId": "f", "parameters": parameters, "requestBody": body}
    box = ts.openapi(one_operation(operation, "/x/{id}"), server=library.url)
    assert list(box["f"].parameters["properties"]) == ["id", "id_query", "id_body"]
    sent = call(box, "f", id=1, id_query=2, id_body="3")
    assert (sent["path"], sent["body"]) == ("/x/1?id=2", '{"id": "3"}')


# ------------------------------------------------------------------ schemas


@pytest.mark.parametrize(
    ("version", "schema", "made"),
    [
        ("3.0.0", {"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ("3.0.0", {"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ("3.0.0", {"allOf": [{"$ref": "#/components/schemas/S"}], "nullable": True},
         {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
        ("3.0.0", {"$ref": "#/components/schemas/S", "maxLength": 3}, {"type": "string"}),
        ("3.1.0", {"$ref": "#/components/schemas/S", "maxLength": 3}, {"allOf": [{"type": "string"}], "maxLength": 3}),
        ("3.1.0", {"type": ["string", "null"], "example": "a", "xml": {}, "x-y": 1}, {"type": ["string", "null"], "examples": ["a"]}),
        ("3.0.0", {"type": "string", "pattern": "(a", "format": "int32"}, {"type": "string"}),
        ("3.0.0", {"properties": {"a": {"readOnly": True}, "b": {}}, "required": ["a", "b"]},
         {"type": "object", "properties": {"b": {}}, "required": ["b"]}),
        ("3.1.0", {"oneOf": [{"$ref": "#/components/schemas/S"}, {"maxLength": 3}], "discriminator": {"propertyName": "k"}},
         {"anyOf": [{"type": "string"}, {"maxLength": 3}]}),
    ],
)  # fmt: skip
def test_schemas_become_json_schema(version: str, schema: Any, made: Any) -> None:
    operation = {"operationId": "f", "parameters": [{"name": "q", "in": "query", "schema": schema}]}
    document = one_operation(operation, components={"schemas": {"S": {"type": "string"}}})
    box = ts.openapi({**document, "openapi": version}, server="https://api.example")
    assert box["f"].parameters["properties"]["q"] == made


def test_all_of_is_one_flat_object() -> None:
    part = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    schema = {"allOf": [{"$ref": "#/components/schemas/P"}, {"properties": {"b": {"type": "integer"}}}]}
    operation = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    box = ts.openapi(one_operation(operation, components={"schemas": {"P": part}}), server="https://api.example")
    (told,) = box.list()
    assert (list(told["parameters"]["properties"]), told["parameters"]["required"]) == (["a", "b"], ["a"])


# ------------------------------------------------------------------ credentials


def test_credentials_are_sent_as_the_document_says(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PETS_KEY", "from-the-environment\n")
    ways: dict[str, tuple[dict[str, Any], Any, str, str]] = {
        "header": ({"type": "apiKey", "in": "header", "name": "X-Own"}, "$PETS_KEY", "X-Own", "from-the-environment"),
        "cookie": ({"type": "apiKey", "in": "cookie", "name": "sid"}, "a-session", "Cookie", "sid=a-session"),
        "bearer": ({"type": "http", "scheme": "Bearer"}, "a-bearer-token", "Authorization", "Bearer a-bearer-token"),
        "copied": ({"type": "http", "scheme": "bearer"}, "bearer  a-bearer-token", "Authorization", "Bearer a-bearer-token"),
        "oauth2": ({"type": "oauth2", "flows": {}}, "a-bearer-token", "Authorization", "Bearer a-bearer-token"),
        "basic": ({"type": "http", "scheme": "basic"}, ("me", "a-password"), "Authorization", "Basic bWU6YS1wYXNzd29yZA=="),
    }  # fmt: skip
    for name, (scheme, secret, header, sent) in ways.items():
        document = one_operation(
            {"operationId": "f", "security": [{name: []}]}, components={"securitySchemes": {name: scheme}}
        )
        for given in (secret, {name: secret}):
            box = ts.openapi(document, server=library.url, auth=given)
            call(box, "f")
            assert library.asked[-1]["headers"][header] == sent
            assert box["f"].parameters["properties"] == {}


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "X Key", "a\r\nb"])
def test_no_secret_is_sent_as_a_header_of_the_connection(library: Library, name: str) -> None:
    """A document could have the key sent as the name of the server."""
    scheme = {"k": {"type": "apiKey", "in": "header", "name": name}}
    document = one_operation({"operationId": "f", "security": [{"k": []}]}, components={"securitySchemes": scheme})
    with pytest.raises(ts.UsageError, match="unsupported kind"):
        ts.openapi(document, server=library.url, auth={"k": "a-secret-key"})
    with pytest.raises(ts.UsageError, match="no security scheme that takes such a secret"):
        ts.openapi(document, server=library.url, auth="a-secret-key")


def test_secrets_reach_no_error_no_log_and_no_model(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    box = ts.openapi(f"{library.url}/openapi.json", auth="a-wrong-secret-key")
    said = refused(box, "getBook", id=1)
    assert "GET /books/{id} answered 401 Unauthorized" in said
    assert "[hidden]" in said
    assert "a-wrong-secret-key" not in said + caplog.text + json.dumps(box.list()) + repr(list(box))
    assert "a-wrong-secret-key" not in json.dumps(call(box, "echo", word="a"))
    assert library.asked[-1]["headers"]["X-Key"] == "a-wrong-secret-key"
    assert "auth=… for key" in refused(ts.openapi(f"{library.url}/openapi.json"), "getBook", id=1)


@pytest.mark.parametrize(
    ("header", "secret"),
    [("Bearer a-token-of-mine", "a-token-of-mine"), ("Basic bWU6YS1wYXNzd29yZA==", "a-password"), ("token  a-key-of-mine", "a-key-of-mine")],
)  # fmt: skip
def test_what_a_header_holds_is_hidden_without_its_scheme_too(library: Library, header: str, secret: str) -> None:
    box = ts.openapi(DOCUMENT, server=library.url, headers={"Authorization": header}, only="echo")
    answer = json.dumps(call(box, "echo", word=f"x-{secret}-{base64.b64encode(secret.encode()).decode()}"))
    assert "[hidden]" in answer
    assert secret not in answer
    assert base64.b64encode(secret.encode()).decode()[:8] not in answer


@pytest.mark.parametrize("how", ESCAPES)
@pytest.mark.parametrize("status", [200, 500])
def test_secrets_do_not_come_back_in_other_letters(library: Library, how: str, status: int) -> None:
    secret = "some/secret-of-ours"
    document = one_operation({"operationId": "f", "security": [{"k": []}]}, f"/escaped/{how}/{status}", "get")
    document["components"] = {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}}
    box = ts.openapi(document, server=library.url, auth=secret)
    if status == 200:
        assert call(box, "f") == {"key": "[hidden]", "note": "fine"}
    else:
        said = refused(box, "f")
        assert '"key": "[hidden]"' in said


@pytest.mark.parametrize(
    ("secret", "answer"),
    [
        ("it's-a-pass", "it&apos;s-a-pass"), ("correct horse", "correct+horse"), ("pass\U0001f600word", r"pass\ud83d\ude00word"),
        ("pass\U0001f600word", r"pass\\uD83D\\uDE00word"), ("pass\U0001f600word", "pass%F0%9F%98%80word"),
    ],
)  # fmt: skip
def test_a_password_has_more_spellings_than_letters_and_digits(secret: str, answer: str) -> None:
    assert Secrets([secret]).out_of(f"<{answer}>", exact=True) == "<[hidden]>"


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        ({"kye": "x"}, "names no security scheme 'kye'. Did you mean 'key'?"),
        ("$NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE is not set"),
        ("two\nlines", "a character that is not allowed in a key"),
        (("user", "password"), "names no security scheme that takes such a secret"),
        ({"key": 5}, "must be a text; got int"),
    ],
)
def test_what_is_no_secret_is_told(auth: Any, said: str) -> None:
    with pytest.raises(ts.UsageError, match=r".") as caught:
        ts.openapi(DOCUMENT, server="https://api.example", auth=auth)
    assert said in str(caught.value)


def test_a_document_does_not_send_the_key_elsewhere(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DOCUMENT, "servers", [{"url": "https://elsewhere.example/api"}])
    with pytest.raises(ts.UsageError, match=r"pass server='https://elsewhere\.example/api'"):
        ts.openapi(f"{library.url}/openapi.json", auth=KEY)


def test_an_operation_of_another_server_gets_no_key(library: Library, other: Library) -> None:
    document = one_operation({"operationId": "f", "servers": [{"url": other.url}]}, servers=[{"url": library.url}])
    box = ts.openapi(document, headers={"X-Own": "a-secret"}, allow_private=True)
    assert "X-Own" not in call(box, "f")["headers"]


# ------------------------------------------------------------------ where requests may go


def test_private_addresses_are_reached_only_where_they_are_named(library: Library) -> None:
    document = {**DOCUMENT, "servers": [{"url": library.url}]}
    before = len(library.asked)
    assert "127.0.0.1 is not a public address" in refused(ts.openapi(document), "cover")
    by_name = {**DOCUMENT, "servers": [{"url": library.url.replace("127.0.0.1", "localhost")}]}
    assert "not a public address" in refused(ts.openapi(by_name), "cover")  # a name, resolved
    assert len(library.asked) == before
    assert call(ts.openapi(document, allow_private=True), "cover")["path"] == "/cover"


def test_redirects(library: Library, other: Library) -> None:
    box = ts.openapi(f"{library.url}/openapi.json", auth=KEY)
    away: Callable[[str], str] = lambda to: refused(box, "away", to=to)  # noqa: E731
    assert call(box, "away", to="/api/books/1")["title"] == "Emma"  # the same server: with the key
    assert "not a public address" in away(f"{other.url}/x")
    assert "not a public address" in away("http://[::1]:1/")
    assert "not a public address" in away(f"{other.url.replace('127.0.0.1', 'localhost')}/x")
    assert "no answer from 2130706433" in away("http://2130706433/")
    assert "not a valid address" in away("file:///etc/passwd")
    assert "more than 5 times" in away("round")
    assert other.asked == []
    anywhere = ts.openapi(f"{library.url}/openapi.json", auth=KEY, allow_private=True)
    assert "X-Key" not in call(anywhere, "away", to=f"{other.url}/x")["headers"]


def test_a_redirected_change_is_not_repeated_elsewhere(library: Library, other: Library) -> None:
    operation = {"operationId": "f", "parameters": [{"name": "to", "in": "query", "schema": {"type": "string"}}]}
    box = ts.openapi(one_operation(operation, "/api/away", "get"), server=library.url, allow_private=True)
    assert call(box, "f", to=f"{other.url}/x")["path"] == "/x"
    from toolspeak.errors import ToolError
    from toolspeak.sources.openapi.fetching import SentRequest, _redirected

    with pytest.raises(ToolError, match="not followed"):
        _redirected(SentRequest("POST", "https://a.example/x"), 307, "https://b.example/x")
    with pytest.raises(ToolError, match="without encryption"):
        _redirected(SentRequest("GET", "https://a.example/x"), 302, "http://a.example/x")


def test_answers_are_bounded(library: Library) -> None:
    box = ts.openapi(f"{library.url}/openapi.json", limit=10_000)
    assert "more than 10,000 bytes" in refused(box, "large")
    box = ts.openapi(one_operation({"operationId": "slow"}, "/api/slow", "get"), server=library.url, timeout=0.5)
    with pytest.raises(ts.ToolTimeout):
        call(box, "slow")


@pytest.mark.parametrize(
    ("name", "text"),
    [("utf-8", "caf\xe9-fn"), ("latin-1", "caf\xc3\xa9-fn"), ("punycode", "caf\xe9-fn"), ("idna", "caf\xe9-fn"), ("no", "caf\xe9-fn")],
)  # fmt: skip
def test_an_answer_is_read_in_its_charset_where_that_is_one(library: Library, name: str, text: str) -> None:
    """Python can read Punycode, in time with the square of the text: a server must not choose that."""
    box = ts.openapi(one_operation({"operationId": "f"}, f"/charset/{name}", "get"), server=library.url)
    assert call(box, "f") == text


def test_a_call_that_is_given_up_closes_its_connection(library: Library) -> None:
    box = ts.openapi(f"{library.url}/openapi.json")
    library.waiting.clear()
    library.gone.clear()

    async def give_up() -> None:
        task = asyncio.create_task(box.acall({"name": "slow", "arguments": {}}))
        await asyncio.to_thread(library.waiting.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert library.gone.wait(60)


# ------------------------------------------------------------------ wrong documents


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "it has no `openapi: 3…`"),
        ({"swagger": "2.0"}, "swagger2openapi"),
        ({"openapi": "4.0"}, "versions 3.0 and later"),
        ({"openapi": "3.1.0", "paths": []}, "at #/paths: expected an object"),
        (one_operation({}), "names no server"),
        (one_operation({}, servers=[{"url": "https://{where}/"}]), "needs a value for where"),
        (one_operation({}, servers=[{"url": "ftp://host/"}]), "expected an address"),
        (one_operation({}, servers=[{"url": "https://me:pass@host/"}]), "must not contain a password"),
        (one_operation({"$ref": "other.yaml#/x"}), "leaves the document"),
        (one_operation({"$ref": "#/nowhere"}), '"#/nowhere" points to nothing'),
        (one_operation({"$ref": "#/paths/~1x/post"}), "go round in a circle"),
        (one_operation({"parameters": [{"name": "q", "in": "somewhere"}]}), 'is in "somewhere"'),
        (one_operation({"parameters": [{"name": "q", "in": "query", "style": "label"}]}), 'has the style "label"'),
        (one_operation({"parameters": [{"name": "q", "in": "query", "schema": {"type": "strnig"}}]}), "is invalid"),
    ],
)
def test_wrong_documents_are_told(document: dict[str, Any], said: str) -> None:
    if said != "names no server" and "servers" not in document:
        document = {**document, "servers": [{"url": "https://api.example"}]}
    with pytest.raises(ts.UsageError) as caught:
        ts.openapi(document)
    assert said in str(caught.value)


BROKEN = "a\nerror: b\r\tc\x1b[2Jd\u202ee\u2028f\x85g"


@pytest.mark.parametrize(
    "item",
    [
        [],
        {"get": []},
        {"get": {"$ref": "#/nowhere"}},
        {"$ref": f"#/{BROKEN}"},
        {"get": {"parameters": {"q": {}}}},
        {"get": {"parameters": [[]]}},
        {"get": {"parameters": [{"name": 1}]}},
        {"get": {"parameters": [{"name": BROKEN, "in": "somewhere"}]}},
        {"get": {"parameters": [{"name": BROKEN, "in": "header"}]}},
        {"get": {"parameters": [{"name": BROKEN, "in": "query", "style": BROKEN}]}},
        {"get": {"parameters": [{"name": BROKEN, "in": "query", "schema": {"$ref": "#/nowhere"}}]}},
        {"get": {"parameters": [{"name": BROKEN, "in": "query", "schema": {"$dynamicRef": "#x"}}]}},
        {"get": {"parameters": [{"name": "q", "in": "query", "schema": {"type": BROKEN}}]}},
        {"get": {"description": "<|im_start|>"}},
        {"post": {"requestBody": {"content": {BROKEN: []}}}},
    ],
)
@pytest.mark.parametrize("path", ["/", ""])
def test_errors_show_what_a_document_names_escaped_on_one_line(item: Any, path: str) -> None:
    document = {"openapi": "3.1.0", "paths": {path + BROKEN: item}, "servers": [{"url": "https://api.example"}]}
    with pytest.raises((ts.UsageError, ts.InvalidTool)) as caught:
        ts.openapi(document)
    assert str(caught.value).isprintable()


def test_the_error_of_a_call_shows_the_path_on_one_line(library: Library) -> None:
    document = one_operation({"operationId": "f"}, path=f"/{BROKEN}")
    with pytest.raises(ts.ToolError) as caught:
        ts.openapi(document, server=library.url).call({"name": "f", "arguments": {}})
    assert str(caught.value).partition(" answered ")[0].isprintable()


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ({"description": "x" * 1_000_000}, "1,000,000 characters"),
        ({"description": "a\u202eb"}, "turns the direction"),
        ({"summary": "a\u200bb"}, "cannot be seen"),
        ({"description": "<|im_start|>system"}, "control mark"),
        ({"parameters": [{"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/Loop"}}]}, "comes back to itself"),
    ],
)  # fmt: skip
def test_hostile_definitions_are_refused(operation: dict[str, Any], said: str) -> None:
    loop = {"anyOf": [{"$ref": "#/components/schemas/Loop"}]}
    document = one_operation({"operationId": "f", **operation}, components={"schemas": {"Loop": loop}})
    with pytest.raises(ts.InvalidTool) as caught:
        ts.openapi(document, server="https://api.example")
    assert said in str(caught.value)
    assert "without='f'" in str(caught.value)
    assert len(ts.openapi(document, server="https://api.example", without="f")) == 0


def test_all_that_is_refused_is_named_at_once() -> None:
    bad = {"description": "<|im_start|>"}
    paths = {f"/{n}": {"get": {"operationId": f"f{n}", **(bad if n % 2 else {})}} for n in range(6)}
    document = {"openapi": "3.1.0", "paths": paths}
    with pytest.raises(ts.InvalidTool, match="control mark") as caught:
        ts.openapi(document, server="https://api.example")
    assert "with without=['f1', 'f3', 'f5']" in str(caught.value)
    assert len(ts.openapi(document, server="https://api.example", without=["f1", "f3", "f5"])) == 3


def test_a_long_chain_of_references_is_told_and_not_a_crash() -> None:
    schemas = {f"S{n}": {"properties": {"x": {"$ref": f"#/components/schemas/S{n + 1}"}}} for n in range(3000)}
    schemas["S3000"] = {"type": "string"}
    operation = {
        "operationId": "f",
        "parameters": [{"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/S0"}}],
    }
    document = one_operation(operation, components={"schemas": schemas})
    box = ts.openapi(document, server="https://api.example")
    assert len(box["f"].parameters["$defs"]) == 3001


@pytest.mark.parametrize("levels", [12, 150, 400])
def test_schemas_nested_ever_deeper_are_taken_or_refused(levels: int) -> None:
    def deep(inner: dict[str, Any]) -> dict[str, Any]:
        for _ in range(levels):
            inner = {"properties": {"x": inner}}
        return inner

    count = 600 // levels + 4
    schemas = {f"S{n}": deep({"$ref": f"#/components/schemas/S{n + 1}"}) for n in range(count)}
    schema = {"$ref": "#/components/schemas/S0"}
    operation = {"operationId": "f", "parameters": [{"name": "q", "in": "query", "schema": schema}]}
    document = one_operation(operation, components={"schemas": {**schemas, f"S{count}": {}}})
    with pytest.raises(ts.InvalidTool, match=r"nested (too deeply|deeper than)"):
        ts.openapi(document, server="https://api.example")


# ------------------------------------------------------------------ files


def test_files_of_json_and_yaml(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(one_operation({"operationId": "f"})), "utf-8")
    text = (
        "openapi: 3.1.0\npaths:\n  /x:\n    get:\n      operationId: f\n      parameters:\n"
        "      - {name: at, in: query, schema: {enum: [on, off, 12:30, 2020-01-01]}}\n      responses: {200: {description: ok}}\n"
    )
    (tmp_path / "a.yaml").write_text(text, "utf-8")
    assert [one.name for one in ts.openapi(tmp_path / "a.json", server="https://api.example")] == ["f"]
    box = ts.openapi(str(tmp_path / "a.yaml"), server="https://api.example")
    assert box["f"].parameters["properties"]["at"]["enum"] == ["on", "off", "12:30", "2020-01-01"]
    (tmp_path / "a.yaml").write_text(text.replace("3.1.0", "3.1"), "utf-8")
    assert ts.openapi(tmp_path / "a.yaml", server="https://api.example").list() == box.list()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1, column 2: not JSON"),
        ("[" * 100_000, "nested deeper than 200 levels"),
        ("a: [b", "neither JSON nor YAML"),
        ("a: !!python/object:os.system x", "neither JSON nor YAML"),
        ("a: &a [*a]", "inside itself"),
        ("- &a [x, x, x, x]\n" + "".join(f"- &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)), "expands into more"),
    ],
)  # fmt: skip
def test_broken_files_are_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ts.UsageError) as caught:
        ts.openapi(path)
    assert said in str(caught.value) or "nested too deeply" in str(caught.value)
