"""Skills as tools of the Model Context Protocol: names, schemas, hints (protocols.md 9). Knows no library of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cogcli.specs.capability import Capability
    from cogcli.specs.fields import Fields, FieldSpec
    from cogcli.specs.skill import Skill

NAMES: Final = ("dots", "underscore")
_OWN_ROOT: Final = frozenset(("$ref", "$dynamicRef", "$id", "$anchor", "$dynamicAnchor", "$defs", "$schema"))
"""Keywords that mean something else once a schema stands inside another one."""


class Hints(NamedTuple):
    """What a tool may do outside, from the effect classes of all that it can call."""

    read_only: bool
    idempotent: bool


class Tool(NamedTuple):
    """One tool as a client sees it."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    hints: Hints


def tool_of(skill: Skill, capabilities: Iterable[Capability], names: str = "dots") -> Tool:
    """The tool of a skill that can call these capabilities, gates included."""
    return Tool(
        name=skill.id.replace(".", "__") if names == "underscore" else skill.id,
        title=skill.name,
        description=skill.description,
        input_schema=schema_of(skill.inputs) | {"additionalProperties": False},
        output_schema=schema_of(skill.outputs),
        hints=hints_of(capabilities),
    )


def hints_of(capabilities: Iterable[Capability]) -> Hints:
    """What is not known counts as an effect."""
    effects = {capability.effect for capability in capabilities}
    return Hints(read_only=effects <= {"none"}, idempotent=effects <= {"none", "idempotent"})


def schema_of(fields: Fields) -> dict[str, Any]:
    """The JSON Schema of declared fields: never narrower than what the skill takes or gives."""
    required = [name for name, field in fields.items() if field.required and field.default is None]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _field(field) for name, field in fields.items()},
    }
    return schema | ({"required": required} if required else {})


def _field(field: FieldSpec) -> dict[str, Any]:
    schema: dict[str, Any] = {} if field.type == "any" else {"type": field.type}
    if field.description:
        schema["description"] = field.description
    if field.default is not None:
        schema["default"] = field.default
    if field.enum is not None:
        schema["enum"] = field.enum
    if field.items is not None:
        schema["items"] = _field(field.items)
    if isinstance(field.schema, dict) and not _has_root_of_its_own(field.schema):
        schema["allOf"] = [field.schema]
    return schema


def _has_root_of_its_own(schema: Any) -> bool:
    if isinstance(schema, dict):
        return bool(_OWN_ROOT & schema.keys()) or any(map(_has_root_of_its_own, schema.values()))
    return isinstance(schema, list) and any(map(_has_root_of_its_own, schema))
