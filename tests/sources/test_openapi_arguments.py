"""How the arguments of an operation are named, and what counts as a text, against a real server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from library import Library, one_operation, running

import toolspeak as ts


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    with running() as one:
        yield one


def tool(library: Library, parameters: dict[str, Any], body: dict[str, Any] | None = None, **more: Any) -> ts.Toolbox:
    """The operation `f` of `PUT /x/{id}`. `parameters` are schemas by `place name`, `body` is the schema of its JSON body."""
    listed = [
        {"name": name, "in": place, "required": place == "path", "schema": schema}
        for (place, name), schema in ((key.split(), schema) for key, schema in parameters.items())
    ]
    operation: dict[str, Any] = {"operationId": "f", "parameters": listed}
    if body is not None:
        media = more.pop("media", "application/json")
        operation["requestBody"] = {"required": True, "content": {media: {"schema": body}}, **more}
    document = one_operation({}, "/x/{id}" if "path id" in parameters else "/x")
    (item,) = document["paths"].values()
    item.clear()
    item["put"] = operation
    return ts.openapi(document, server=library.url)


def call(box: ts.Toolbox, **arguments: Any) -> Any:
    return box.call({"name": "f", "arguments": arguments})


def fields(**schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": schemas, "required": list(schemas)}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


# ------------------------------------------------------------------ numbers as texts


@pytest.mark.parametrize(
    ("schema", "value", "sent"),
    [
        (TEXT, 666, "666"),
        (TEXT, True, "true"),
        (TEXT, -1.5, "-1.5"),
        ({"type": "string", "enum": ["1", "2"]}, 2, "2"),
        ({"type": "string", "nullable": True}, 7, "7"),
        ({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "boolean"}]}, 12, "12"),
        ({"anyOf": [{"type": "string"}, {"type": "boolean"}]}, True, "true"),
        ({"type": "array", "items": TEXT}, [1, "b"], "1,b"),
    ],
)
@pytest.mark.parametrize("place", ["path", "query", "header"])
def test_a_number_for_a_text_is_sent_as_its_text(
    library: Library, place: str, schema: Any, value: Any, sent: str
) -> None:
    key = "id" if place == "path" else "q"
    seen = call(tool(library, {f"{place} {key}": schema}), **{key: value})
    where = {"path": f"/x/{sent}", "query": f"/x?q={sent.replace(',', '&q=')}", "header": "/x"}[place]
    assert seen["path"] == where
    if place == "header":
        assert seen["headers"]["q"] == sent


@pytest.mark.parametrize("written", ["1.10", "1e3", "5.0", "12345678901234567890.5"])
def test_a_number_for_a_text_keeps_its_digits(library: Library, written: str) -> None:
    box = tool(library, {"query version": TEXT})
    seen = box.call({"name": "f", "arguments": f'{{"version": {written}}}'})
    assert seen["path"] == f"/x?version={written}"


def test_the_model_sees_what_was_changed(library: Library) -> None:
    box = tool(library, {"path id": TEXT})
    model = ts.Speaker(ts.Scripted(['{"tool": "f", "tool_input": {"id": 666}}']))
    found = ts.call("Change 666", tools=box, model=model)
    assert found.arguments == {"id": "666"}
    assert [note.rule for note in found.notes if "666" in note.detail] == ["coerced"]


@pytest.mark.parametrize("schema", [WHOLE, {"type": "number"}, {}, {"type": ["string", "integer"]}])
def test_a_number_where_one_is_wanted_stays(library: Library, schema: Any) -> None:
    model = ts.Speaker(ts.Scripted(['{"tool": "f", "tool_input": {"q": 5}}']))
    assert ts.call("5", tools=tool(library, {"query q": schema}), model=model).arguments == {"q": 5}


def test_a_text_that_its_schema_refuses_is_refused(library: Library) -> None:
    box = tool(library, {"query q": {"type": "string", "pattern": "^[a-z]+$"}})
    for value in (5, ["a"], {"a": 1}):
        with pytest.raises(ts.InvalidCall):
            call(box, q=value)


def test_a_field_of_json_is_no_text_and_one_of_a_form_is(library: Library) -> None:
    with pytest.raises(ts.InvalidCall, match="must be a string"):
        call(tool(library, {}, fields(name=TEXT)), name=5)
    box = tool(library, {}, fields(name=TEXT), media="application/x-www-form-urlencoded")
    assert call(box, name=5)["body"] == "name=5"


# ------------------------------------------------------------------ a name in two places


@pytest.mark.parametrize(
    ("path", "body", "both"),
    [
        (WHOLE, WHOLE, WHOLE),
        ({**WHOLE, "description": "Which"}, {**WHOLE, "description": "Its id"}, {**WHOLE, "description": "Which"}),
        (TEXT, {**TEXT, "format": "uuid"}, {**TEXT, "format": "uuid"}),
    ],
)
def test_one_argument_serves_the_path_and_the_body(library: Library, path: Any, body: Any, both: Any) -> None:
    box = tool(library, {"path id": path}, fields(id=body, title=TEXT))
    assert box["f"].parameters["properties"] == {"id": both, "title": TEXT}
    assert box["f"].parameters["required"] == ["id", "title"]
    value: Any = 5 if path["type"] == "integer" else "123e4567-e89b-12d3-a456-426614174000"
    seen = call(box, id=value, title="Emma")
    assert (seen["path"], json.loads(seen["body"])) == (f"/x/{value}", {"id": value, "title": "Emma"})


@pytest.mark.parametrize(
    ("path", "body"),
    [(TEXT, WHOLE), (WHOLE, {"type": ["integer", "null"]}), ({**TEXT, "maxLength": 3}, {**TEXT, "maxLength": 4})],
)
def test_a_field_that_does_not_agree_gets_a_suffix(library: Library, path: Any, body: Any) -> None:
    box = tool(library, {"path id": path}, fields(id=body, title=TEXT))
    assert list(box["f"].parameters["properties"]) == ["id", "id_body", "title"]
    value = "a" if body["type"] == "string" else 2
    seen = call(box, id="1" if path["type"] == "string" else 1, id_body=value, title="Emma")
    assert (seen["path"], json.loads(seen["body"])) == ("/x/1", {"id": value, "title": "Emma"})


def test_only_the_path_shares_its_argument(library: Library) -> None:
    box = tool(library, {"query version": WHOLE, "query x_body": WHOLE}, fields(version=WHOLE, x=WHOLE))
    assert list(box["f"].parameters["properties"]) == ["version", "x_body", "version_body", "x"]
    seen = call(box, version=1, x_body=2, version_body=3, x=4)
    assert (seen["path"], json.loads(seen["body"])) == ("/x?version=1&x_body=2", {"version": 3, "x": 4})


def test_an_optional_body_is_not_sent_for_the_paths_argument(library: Library) -> None:
    body = {"type": "object", "properties": {"id": WHOLE, "title": TEXT}}
    box = tool(library, {"path id": WHOLE}, body, required=False)
    assert call(box, id=1)["body"] == ""
    assert json.loads(call(box, id=1, id_body=1)["body"]) == {"id": 1}


def test_fields_of_a_body_outside_it_are_sent_back_into_it(library: Library) -> None:
    body = {**fields(title=TEXT), "not": {"required": ["x"]}}  # not only a list of fields: it stays one argument
    box = tool(library, {"path id": WHOLE}, body)
    assert list(box["f"].parameters["properties"]) == ["id", "body"]
    with pytest.raises(ts.InvalidCall, match=r'unknown argument: "title" .* it belongs inside "body"'):
        call(box, id=1, title="Emma")
