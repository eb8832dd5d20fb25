"""All JSON Schemas by name: spec files, files of an episode, the configuration, and the envelope of
`--json`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import orjson

from cogcli.app.settings.config import KEYS
from cogcli.base.errors import UsageError
from cogcli.base.problems import suggestion
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.specs.json_schema import KnownIds, schema_of

SPECS: Final = (
    "skill",
    "capability",
    "binding",
    "service",
    "pack",
    "policy",
    "services",
    "active",
    "overrides",
    "case",
)
ARTIFACTS: Final = ("events", "learn", "state", "state-written", "summary", "manifest")
OWN: Final = ("config", "result")
NAMES: Final = (*SPECS, *ARTIFACTS, *OWN)

_KEYS: Final = Path(__file__).parent / "pages" / "keys.json"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str, known_ids: KnownIds | None = None) -> Json:
    """Return the schema of this name. A schema of a spec file accepts only the ids in `known_ids`.

    Raise UsageError, with a suggestion, for an unknown name."""
    if name in SPECS:
        return schema_of(name, PROTOCOLS, _key_descriptions(), known_ids)
    if name in ARTIFACTS:
        from cogcli.episode.schemas import SCHEMAS

        return SCHEMAS[name]()
    if name in OWN:
        return config_schema() if name == "config" else envelope_schema()

    hint = suggestion(name, NAMES) or f"there is {', '.join(NAMES)}"
    raise UsageError(
        "usage.value", f"there is no schema `{name[:60]}`", hint=hint, next=("cogcli schema",)
    )


@cache
def _key_descriptions() -> dict[str, Json]:
    """Return the description of each key in spec files, by `CLASS.KEY`."""
    words: dict[str, Json] = orjson.loads(_KEYS.read_bytes())
    return words


def schema_file(name: str, known_ids: KnownIds | None = None) -> bytes:
    """Return the content of the file `NAME.schema.json`."""
    return orjson.dumps(
        schema(name, known_ids), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    )


def config_schema() -> Json:
    """Return the schema of `cogcli.toml`."""
    return {
        "$schema": _DRAFT,
        "title": "cogcli configuration",
        "type": "object",
        "properties": {**_key_schemas(""), **{table: _table_schema(table) for table in _TABLES}},
        "patternProperties": {"^x-": True},
        "additionalProperties": False,
    }


_TABLES: Final = tuple(dict.fromkeys(name.partition(".")[0] for name in KEYS if "." in name))


def _table_schema(name: str) -> Json:
    """Return the schema of a table in `cogcli.toml`."""
    return {"type": "object", "properties": _key_schemas(f"{name}."), "additionalProperties": False}


def _key_schemas(prefix: str) -> Json:
    """Return the schemas of the keys with a prefix, by the name after the prefix.

    An empty prefix selects the keys of the top level."""
    names = (name for name in KEYS if name.rpartition(".")[0] == prefix.rstrip("."))
    return {name.removeprefix(prefix): KEYS[name].type.json_schema() for name in names}


def envelope_schema() -> Json:
    """Return the schema of the envelope of `--json`. Commands add further members."""
    text = {"type": "string"}
    error = {
        "type": "object",
        "required": ["code", "message", "retryable", "hint", "next"],
        "properties": {
            **dict.fromkeys(("code", "message", "hint", "reason", "file"), text),
            **{
                name: {"type": ["string", "null"]}
                for name in ("step", "capability", "binding", "service")
            },
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
            "problems": {
                "type": "array",
                "items": {"type": "object", "required": ["code", "message"]},
            },
        },
    }
