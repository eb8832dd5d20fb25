"""Sample inputs of a skill: an example by the author, otherwise values that suit the type of each field. Pure."""

from __future__ import annotations

import os
from shlex import quote
from typing import Any, Final

import orjson

from cogcli.base.jsonvalue import Json
from cogcli.base.redact import names_secret
from cogcli.base.terminal_text import visible, visible_json
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.fields import fit_values
from cogcli.specs.unchecked import list_at, object_at, text_at

_BY_TYPE: Final[Json] = {
    "string": "A first sentence. A second one.",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "any": "some text",
    "file": "document.pdf",
}


_BY_WORD: Final[dict[str, str]] = {
    "url": "https://example.com/",
    "address": "https://example.com/",
    "language": "en",
    "key": "example",
    "id": "example",
    "name": "example",
    "query": "how tides work",
    "question": "How do tides work?",
    "email": "ana@example.com",
    "date": "2026-06-01",
}
"""Texts for inputs whose name ends with one of these words, such as `target_language`."""


def sample_inputs(skill: Skill) -> Json:
    """Return the example in `metadata.examples`, or a value for each required input without a default."""
    example = _find_example(skill)
    return example or {
        name: sample_value(field, name) for name, field in skill.inputs.items() if field.needs_value
    }


def sample_value(field: FieldSpec, name: str = "") -> Any:
    """Return a value that the field accepts, if possible one that suits its name.

    If no sample fits the field's schema, return a value of its type.
    """
    by_name = _BY_WORD.get(name.lower().rpartition("_")[2])
    candidates = [
        *(field.enum or ())[:1],
        *([by_name] if by_name else []),
        _BY_TYPE.get(field.type),
    ]
    found = next((value for value in candidates if _is_accepted(field, value)), None)
    return _sample_by_schema(field) if found is None else found


def sample_arguments(skill: Skill) -> dict[str, str]:
    """Return the `-p` argument for each input of `sample_inputs`, by name.

    An input with the name of a secret gets a placeholder: `api_key=…`.
    """
    return {
        name: f"{name}=…"
        if names_secret(name)
        else name + written_value(value, skill.inputs[name].type)
        for name, value in sample_inputs(skill).items()
    }


def _sample_by_schema(field: FieldSpec) -> Any:
    if field.schema is not None:
        from cogcli.base.schema.sample import NoSample, sample

        try:
            value = sample(field.schema)
        except NoSample:
            value = None
        if value is not None and _is_accepted(field, value):
            return value
    return _BY_TYPE.get(field.type)


def _is_accepted(field: FieldSpec, value: object) -> bool:
    return not fit_values({"value": field}, {"value": value})[1]


def _find_example(skill: Skill) -> Json:
    """Return the inputs of the first valid example, or an empty object.

    Each `{$file: NAME}` is replaced by the path of a file next to the skill.
    """
    for entry in list_at(skill.metadata, "examples"):
        given = object_at(entry, "inputs")
        values = {name: _resolve_path(value, skill.file) for name, value in given.items()}
        if values and _are_complete(skill.inputs, values):
            return values
    return {}


def _resolve_path(value: object, file: str) -> object:
    name = text_at(value, "$file")
    return value if name is None else os.path.join(os.path.dirname(file), name)


def _are_complete(fields: Fields, values: Json) -> bool:
    return values.keys() <= fields.keys() and not fit_values(fields, values)[1]


def written_value(value: object, type: str) -> str:
    """Return a value as `-p` accepts it for an input of this type."""
    if isinstance(value, str) and not value.startswith("@") and visible(value) == value:
        return f"={quote(value)}"
    text = quote(visible_json(orjson.dumps(value).decode()))
    return f"={text}" if type in ("integer", "number", "boolean") else f":={text}"
