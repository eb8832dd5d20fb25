"""The cases of what is supported of OpenAPI, and the document that all of them make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cogcli.base.yaml.limits import DOCUMENT
from cogcli.base.yaml.reader import parse

FILE = Path(__file__).parents[1] / "documents/openapi-support.yaml"
COMPONENTS: dict[str, dict[str, Any]] = {
    "parameters": {
        "Key": {"name": "key", "in": "path", "required": True, "schema": {"type": "string"}}
    },
    "schemas": {
        "Person": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
        },
        "Tree": {
            "type": "object",
            "properties": {"inner": {"$ref": "#/components/schemas/Tree"}},
        },
    },
    "securitySchemes": {
        "bearer": {"type": "http", "scheme": "bearer"},
        "basic": {"type": "http", "scheme": "basic"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "queryKey": {"type": "apiKey", "in": "query", "name": "key"},
        "cookieKey": {"type": "apiKey", "in": "cookie", "name": "key"},
        "oauth": {
            "type": "oauth2",
            "flows": {"clientCredentials": {"tokenUrl": "/token", "scopes": {"read": ""}}},
        },
        "mutual": {"type": "mutualTLS"},
    },
}


def read_cases() -> list[dict[str, Any]]:
    """The cases, each with an id of its own."""
    value = parse(FILE.read_bytes(), file=FILE.name, limits=DOCUMENT).value
    assert value is not None
    return [{"id": f"case{number}", **case} for number, case in enumerate(value["cases"], 1)]


def verdict(case: dict[str, Any]) -> str:
    """Whether a feature is supported."""
    if "note" in case or "partly" in case:
        return "partly"
    return "no" if "refused" in case else "yes"


def document(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """A document with an operation for each case, and the security schemes of all of them."""
    named = {
        name for case in cases for each in case["operation"].get("security", []) for name in each
    }
    schemes = {name: COMPONENTS["securitySchemes"][name] for name in sorted(named)}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Support", "version": "1"},
        "servers": [{"url": "https://support.example"}],
        "paths": dict(map(_path, cases)),
        "components": {**COMPONENTS, "securitySchemes": schemes},
    }


def _path(case: dict[str, Any]) -> tuple[str, Any]:
    operation = {"responses": {"200": {"description": "ok"}}, **case["operation"]}
    if "nameless" not in case:
        operation["operationId"] = case["id"]
    method = case.get("method", "post" if "requestBody" in operation else "get")
    return f"/{case['id']}{case.get('path', '')}", {method: operation}


def rows(cases: list[dict[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """The section, feature, verdict and remark of each case."""
    for case in cases:
        remark = case.get("partly", case.get("remark", ""))
        yield case["section"], case["feature"], verdict(case), remark
