"""JSON Schemas of what the command line itself reads and prints: configuration files and the envelope."""

from __future__ import annotations

from typing import Any

from cogcli.app.config import KEYS, ConfigKey

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {"integer": "integer", "number": "number", "boolean": "boolean", "choice": "string"}


def config_schema() -> dict[str, Any]:
    """The schema of `cogcli.toml`."""
    return {
        "$schema": _DRAFT,
        "title": "cogcli configuration",
        "type": "object",
        "properties": {name: _key(key) for name, key in KEYS.items()},
        "patternProperties": {"^x-": True},
        "additionalProperties": False,
    }


def _key(key: ConfigKey) -> dict[str, Any]:
    if key.kind == "paths":
        return {"type": "array", "items": {"type": "string", "minLength": 1}}
    schema: dict[str, Any] = {"type": _TYPES[key.kind]}
    if key.choices:
        schema["enum"] = list(key.choices)
    if key.kind in ("integer", "number"):
        schema["minimum" if key.kind == "integer" else "exclusiveMinimum"] = key.least
        schema["maximum"] = key.most
    return schema


def envelope_schema() -> dict[str, Any]:
    """The schema of what `--json` prints; commands add keys of their own."""
    text = {"type": "string"}
    error = {
        "type": "object",
        "required": ["code", "message", "retryable", "hint", "next"],
        "properties": {
            **dict.fromkeys(("code", "message", "hint", "file"), text),
            **{name: {"type": ["string", "null"]} for name in ("step", "capability", "binding", "service")},
            "line": {"type": "integer", "minimum": 0},
            "column": {"type": "integer", "minimum": 0},
            "retryable": {"type": "boolean"},
            "next": {"type": "array", "items": text},
        },
    }
    return {
        "$schema": _DRAFT,
        "title": "cogcli result",
        "type": "object",
        "required": ["schema", "command", "status", "exit_code", "warnings", "error"],
        "properties": {
            "schema": {"const": "cogcli.result/1"},
            "command": text,
            "status": {"enum": ["ok", "error", "vetoed", "aborted", "partial", "pending"]},
            "exit_code": {"enum": [0, 1, 2, 3, 4, 5, 6, 70, 130, 143]},
            "warnings": {"type": "array"},
            "error": {"anyOf": [{"type": "null"}, error]},
            "outputs": {"type": ["object", "null"]},
            "problems": {"type": "array", "items": {"type": "object", "required": ["code", "message"]}},
        },
    }
