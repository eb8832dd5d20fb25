"""JSON Schemas of the files of an episode and of a batch and of messages of hooks, derived from their records: lines
of events, learn, checkpoints and ledgers, and documents.

`state.json` has two: `state` for the documents of any tool (docs/reference/episode.md#shared-format), `state-written`
for our own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from cogcli.declarations import batch_records, documents
from cogcli.declarations.checked import adapter_of
from cogcli.declarations.envelope import OPTIONAL, PHASES
from cogcli.declarations.event_table import PAYLOADS
from cogcli.declarations.field import RECORDS
from cogcli.declarations.hook_message import HookMessage
from cogcli.declarations.record import Record
from cogcli.declarations.shared_state import SeedState
from cogcli.declarations.summary_document import Summary
from cogcli.declarations.value_types import Json

Schema = Json
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_BLOB: Final = {
    "title": "Blob",
    "description": "A member above 64 KiB, kept in blobs/ under its hash.",
    "type": "object",
    "properties": {
        "$blob": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
        "bytes": {"type": "integer", "minimum": 0},
        "media_type": {"const": "application/json"},
    },
    "required": ["$blob", "bytes", "media_type"],
    "additionalProperties": False,
}
_TEXT: Final = {"type": "string"}
_METRICS: Final = {
    "type": "object",
    "properties": {
        "started_at": {"type": ["string", "null"]},
        "completed_at": {"type": ["string", "null"]},
        "duration_ms": {"type": ["number", "null"]},
    },
    "additionalProperties": False,
}
_ENVELOPE: Final = {
    "seq": {"type": "integer", "minimum": 0},
    "id": {"type": "string", "pattern": "^ev_[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    "timestamp": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$"},
    "episode_id": {"type": "string", "pattern": "^ep_"},
    "run_id": _TEXT,
    "trace_id": {"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
    "phase": {"enum": list(PHASES)},
    "event_type": _TEXT,
    "step_id": _TEXT,
    "agent_id": _TEXT,
    "caused_by": {"type": "string", "pattern": "^ev_"},
    "payload": {"type": "object"},
    "evidence_ids": {"type": "array", "items": _TEXT},
    "metrics": _METRICS,
    "clock": {"const": "clamped"},
    "prev": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
    "sum": {"type": "string", "pattern": "^[0-9a-f]{8}$"},
}


def event_schema() -> Schema:
    """Return the schema of one line of `events.jsonl`, in which the event type determines the payload."""
    definitions: Schema = {"Blob": dict(_BLOB)}
    cases = []
    for record in PAYLOADS:
        schema = adapter_of(record).json_schema(ref_template="#/$defs/{model}")
        definitions.update(schema.pop("$defs", {}))
        schema["properties"] = {
            name: {"anyOf": [member, {"$ref": "#/$defs/Blob"}]}
            for name, member in schema["properties"].items()
        }
        name = record.__name__
        definitions[name] = schema
        case = {"properties": {"event_type": {"const": record.event.name}}}
        payload = {"properties": {"payload": {"$ref": f"#/$defs/{name}"}}}
        cases.append({"if": case, "then": payload})
    return {
        "$schema": _DIALECT,
        "title": "events.jsonl",
        "description": "One line: one event.",
        "type": "object",
        "properties": _ENVELOPE,
        "required": [key for key in _ENVELOPE if key not in OPTIONAL],
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "allOf": cases,
        "$defs": {
            name: _close_unless_open(name, definitions[name]) for name in sorted(definitions)
        },
    }


def _close_unless_open(name: str, schema: Schema) -> Schema:
    record = RECORDS.get(name)
    return schema if record is not None and record.other_members else _close_schema(schema)


def _document_schema(title: str, record: type[Record], *, closed: bool = True) -> Schema:
    """Return the schema of a document. A `closed` document allows only its declared keys and `x-...`."""
    schema: Schema = dict(adapter_of(record).json_schema(ref_template="#/$defs/{model}"))
    definitions = schema.pop("$defs", {})
    parts = {name: definitions[name] for name in sorted(definitions)}
    if closed:
        schema, parts = (
            _close_schema(schema),
            {name: _close_schema(part) for name, part in parts.items()},
        )
    return {"$schema": _DIALECT, **schema, "title": title, "$defs": parts}


_LEDGER: Final = (
    batch_records.EndedLine,
    batch_records.MovedLine,
    batch_records.DispatchedLine,
)


def ledger_schema() -> Schema:
    """Return the schema of one line of a ledger, whose kind determines its members."""
    kinds = [_ledger_line(record) for record in _LEDGER]
    return {"$schema": _DIALECT, "title": "ledger.jsonl", "oneOf": kinds}


def _ledger_line(record: type[Record]) -> Schema:
    """Return the schema of a line of one kind. `try` is no name for a member in Python."""
    schema = _document_schema(record.__name__, record)
    del schema["$schema"], schema["$defs"]
    properties = schema["properties"]
    properties["try"] = {**properties.pop("attempt"), "title": "Try"}
    schema["required"] = ["try" if name == "attempt" else name for name in schema["required"]]
    return schema


def _close_schema(schema: Schema) -> Schema:
    """Return an object schema that allows only its declared keys and `x-...`."""
    if "properties" in schema and schema.get("additionalProperties") is not False:
        return {**schema, "patternProperties": {"^x-": {}}, "additionalProperties": False}
    return schema


SCHEMAS: Final[dict[str, Callable[[], Schema]]] = {
    "events": event_schema,
    "learn": partial(_document_schema, "learn.jsonl", documents.LearnEntry),
    "state": partial(_document_schema, "state.json", SeedState, closed=False),
    "state-written": partial(
        _document_schema, "state.json, as cogcli writes it", documents.StateDocument
    ),
    "summary": partial(_document_schema, "summary.json", Summary),
    "manifest": partial(_document_schema, "manifest.json", documents.Manifest),
    "checkpoint": partial(_document_schema, "checkpoint.jsonl", documents.CheckpointRecord),
    "context": partial(_document_schema, "context.json", documents.ContextFile),
    "decision": partial(_document_schema, "decision.json", documents.DecisionFile),
    "batch": partial(_document_schema, "batch.json", batch_records.BatchHeader),
    "batch-command": partial(_document_schema, "command.json", batch_records.ShardCommand),
    "batch-summary": partial(_document_schema, "OUT.summary.json", batch_records.BatchSummary),
    "ledger": ledger_schema,
    "hook": partial(_document_schema, "The message of a hook", HookMessage),
}
"""The schemas by the stem of their file and its writer."""
