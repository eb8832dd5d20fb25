"""The meta-schema of OpenRPC 1.3 and 1.4 documents, of the parts that a call depends on."""

from __future__ import annotations

from typing import Any, Final

_REFERENCE: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["$ref"],
    "properties": {"$ref": {"type": "string"}},
}
_NAMED: Final[dict[str, Any]] = {"type": "object"}

META_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["openrpc", "info", "methods"],
    "properties": {
        "openrpc": {"type": "string"},
        "info": {
            "type": "object",
            "required": ["title", "version"],
            "properties": {"title": {"type": "string"}, "version": {"type": "string"}},
        },
        "servers": {
            "type": "array",
            "items": {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}},
        },
        "methods": {
            "type": "array",
            "items": {"if": _REFERENCE, "then": True, "else": {"$ref": "#/$defs/method"}},
        },
        "components": {
            "type": "object",
            "properties": {
                "schemas": {"type": "object", "additionalProperties": {"$ref": "#/$defs/schema"}},
                "contentDescriptors": {
                    "type": "object",
                    "additionalProperties": {"$ref": "#/$defs/descriptorOrReference"},
                },
                "errors": _NAMED,
                "examples": _NAMED,
                "examplePairings": _NAMED,
                "links": _NAMED,
                "tags": _NAMED,
            },
        },
        "x-batch": {"type": "boolean"},
    },
    "$defs": {
        "schema": {"type": ["object", "boolean"]},
        "method": {
            "type": "object",
            "required": ["name", "params"],
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "params": {"type": "array", "items": {"$ref": "#/$defs/descriptorOrReference"}},
                "result": {"$ref": "#/$defs/descriptorOrReference"},
                "paramStructure": {"enum": ["by-name", "by-position", "either"]},
                "deprecated": {"type": "boolean"},
                "errors": {"type": "array"},
            },
        },
        "descriptorOrReference": {"if": _REFERENCE, "then": True, "else": {"$ref": "#/$defs/descriptor"}},
        "descriptor": {
            "type": "object",
            "required": ["name", "schema"],
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "required": {"type": "boolean"},
                "deprecated": {"type": "boolean"},
                "schema": {"$ref": "#/$defs/schema"},
            },
        },
    },
}
