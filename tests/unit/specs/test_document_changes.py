"""What two documents of one service say differently, and whether that breaks a call that fitted before."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from cogcli.base.api_documents.changes import (
    ContractChange,
    find_openapi_changes,
    find_openrpc_changes,
)
from cogcli.base.api_documents.openapi import OpenApiDocument
from cogcli.base.api_documents.openrpc import OpenRpcDocument

API: dict[str, Any] = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://a.example"}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "paths": {
        "/notes": {
            "get": {
                "operationId": "list",
                "parameters": [{"name": "lang", "in": "query", "schema": {"enum": ["de", "en"]}}],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"enum": [1, 2]}}}}
                },
            },
            "post": {
                "requestBody": {"content": {"application/json": {"schema": {"type": "string"}}}},
                "responses": {"201": {"description": "made"}},
            },
        }
    },
}

RPC: dict[str, Any] = {
    "openrpc": "1.3.2",
    "info": {"title": "t", "version": "1"},
    "methods": [
        {
            "name": "add",
            "params": [
                {"name": "a", "required": True, "schema": {"type": "integer"}},
                {"name": "b", "schema": {"type": "integer"}},
            ],
            "result": {"name": "r", "schema": {"type": "integer"}},
        }
    ],
}


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one place set, or removed for None. Slashes in keys are written `~`."""
    copy = deepcopy(document)
    *above, last = (part.replace("~", "/") for part in path.split(" "))
    at: Any = copy
    for part in above:
        at = at.setdefault(part, {}) if isinstance(at, dict) else at[int(part)]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return copy


def api(path: str, value: Any) -> tuple[ContractChange, ...]:
    return find_openapi_changes(OpenApiDocument(API), OpenApiDocument(changed(API, path, value)))


def rpc(path: str, value: Any) -> tuple[ContractChange, ...]:
    return find_openrpc_changes(OpenRpcDocument(RPC), OpenRpcDocument(changed(RPC, path, value)))


LIST, LANG = "paths ~notes get", "paths ~notes get parameters 0"
REPLY = f"{LIST} responses 200 content application~json schema"
BODY = "paths ~notes post requestBody"


@pytest.mark.parametrize(
    ("path", "value", "name", "fields", "breaking"),
    [
        (f"{LANG} schema", {"enum": ["de", "en", "fr"]}, "list", ("query.lang",), False),
        (f"{LANG} schema", {"enum": ["de"]}, "list", ("query.lang",), True),
        (f"{LANG} schema", {"type": "integer"}, "list", ("query.lang",), True),
        (f"{LANG} required", True, "list", ("query.lang: required",), True),
        (f"{LANG} style", "spaceDelimited", "list", ("query.lang: the way it is sent",), True),
        (f"{LIST} parameters", [], "list", ("query.lang: removed",), True),
        (REPLY, {"enum": [1]}, "list", ("200",), False),
        (REPLY, {"enum": [1, 2, 3]}, "list", ("200",), True),
        (f"{LIST} responses 204", {"description": "none"}, "list", ("204: added",), True),
        (f"{LIST} responses 404", {"description": "none"}, None, (), False),
        (f"{LIST} deprecated", True, "list", ("deprecated",), False),
        (f"{LIST} security", [{"key": []}], "list", ("security",), True),
        (f"{BODY} required", True, "POST /notes", ("body: required",), True),
        (f"{BODY} content application~json schema", {"type": ["string", "null"]}, "POST /notes", ("body",), None),
        (BODY, None, "POST /notes", ("body: removed",), True),
        ("servers 0 url", "https://b.example", "(servers)", ("https://a.example -> https://b.example",), True),
        ("info", {"title": "Other"}, None, (), False),
    ],
)  # fmt: skip
def test_each_part_of_an_operation_counts(
    path: str, value: Any, name: str | None, fields: tuple[str, ...], breaking: bool | None
) -> None:
    found = api(path, value)
    if name is None:
        assert found == ()
        return
    (change,) = found
    assert (change.name, change.change, change.fields) == (name, "changed", fields)
    if breaking is not None:
        assert change.breaking is breaking


INTEGER, TEXT = {"type": "integer"}, {"type": "string", "description": "words"}


@pytest.mark.parametrize(
    ("where", "old", "new", "breaking"),
    [
        ("path", INTEGER, TEXT, False),
        ("query", {"type": ["boolean", "null"]}, TEXT, False),
        ("header", {"enum": [1, "one"]}, TEXT, False),
        ("path", TEXT, INTEGER, True),
        ("path", INTEGER, {**TEXT, "maxLength": 3}, True),
        ("query", {"type": "array", "items": INTEGER}, TEXT, True),
        ("query", {}, TEXT, True),
    ],
)
def test_a_number_that_is_sent_as_text_may_become_any_text(
    where: str, old: Any, new: Any, breaking: bool
) -> None:
    def document(schema: Any) -> OpenApiDocument:
        parameter = {"name": "id", "in": where, "required": True, "schema": schema}
        operation = {"operationId": "one", "parameters": [parameter], "responses": {}}
        return OpenApiDocument({**API, "paths": {"/notes/{id}": {"get": operation}}})

    (change,) = find_openapi_changes(document(old), document(new))
    assert change == ContractChange("one", "changed", (f"{where}.id",), breaking)


def test_operations_come_go_and_move() -> None:
    added = api("paths ~new", {"get": {"operationId": "fresh", "responses": {}}})
    assert added == (ContractChange("fresh", "added"),)
    gone = api("paths ~notes post", None)
    assert gone == (ContractChange("POST /notes", "removed", breaking=True),)
    moved = deepcopy(API)
    moved["paths"]["/memos"] = moved["paths"].pop("/notes")
    told = find_openapi_changes(OpenApiDocument(API), OpenApiDocument(moved))
    assert ContractChange("list", "changed", ("GET /notes -> GET /memos",), breaking=True) in told
    assert find_openapi_changes(None, OpenApiDocument(API)) == (
        ContractChange("POST /notes", "added"),
        ContractChange("list", "added"),
    )


def test_a_malformed_operation_breaks_and_does_not_crash() -> None:
    (change,) = api(f"{LIST} parameters", "none")
    assert change.breaking
    assert "expected a list" in change.fields[0]


PARAMS = "methods 0 params"


@pytest.mark.parametrize(
    ("path", "value", "fields", "breaking"),
    [
        (f"{PARAMS} 1 required", True, ("b: required",), True),
        (f"{PARAMS} 0 required", False, ("a: optional",), False),
        (f"{PARAMS} 0 schema", {"type": "string"}, ("a",), True),
        (f"{PARAMS} 1 name", "c", ("b: removed", "c: added"), True),
        (f"{PARAMS} 0 schema", True, ("a",), False),
        ("methods 0 result", None, ("result",), True),
        ("methods 0 result schema", {"type": "string"}, ("result",), True),
        ("methods 0 paramStructure", "by-position", ("the order of parameters",), True),
        ("methods 0 deprecated", True, ("deprecated",), False),
    ],
)
def test_each_part_of_a_method_counts(
    path: str, value: Any, fields: tuple[str, ...], breaking: bool
) -> None:
    assert rpc(path, value) == (ContractChange("add", "changed", fields, breaking),)


def test_methods_come_and_go() -> None:
    told = rpc("methods 0 name", "plus")
    assert told == (
        ContractChange("add", "removed", breaking=True),
        ContractChange("plus", "added"),
    )
    assert find_openrpc_changes(OpenRpcDocument(RPC), OpenRpcDocument(RPC)) == ()
