"""What is known of the inside of values: the members of objects and the elements of lists
(docs/reference/skill.md#flow-checks).

1. Known are the `properties` and `items` of a field's schema, the fields of results that are named, and written lists.
2. An object has no other members where its schema says `additionalProperties: false`, and probably none where it says
   nothing of others. What a schema says in other words (`anyOf`, `patternProperties`, ...) is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cogcli.base.json_pointer import NOWHERE, find_at, parse_reference
from cogcli.base.jsonvalue import kind_of
from cogcli.declarations.field_spec import Fields, FieldSpec, FieldType

MOST: Final = 16
"""Of a place with more writers nothing is known, so that the checks stay linear."""
_OPEN: Final = frozenset(
    (
        "allOf", "anyOf", "oneOf", "if", "not", "patternProperties", "dependentSchemas", "$dynamicRef",
        "unevaluatedProperties",
    )
)  # fmt: skip
"""Keywords beside which `properties` does not say all there is to know."""
_TYPE_OF_KIND: Final[dict[str, FieldType]] = {
    "text": "string", "number": "number", "boolean": "boolean", "list": "array", "object": "object", "null": "any"
}  # fmt: skip


class InnerShape(NamedTuple):
    """What is known of one value: the declared type; its schema, in the document `root`; the element of a list; the
    fields of an object that has no others."""

    type: str = "any"
    schema: Any = None
    root: Any = None
    items: FieldSpec | None = None
    fields: Fields | None = None

    def is_like(self, other: InnerShape) -> bool:
        """Whether both come from one declaration."""
        pairs = zip(self, other, strict=True)
        return self.type == other.type and all(a is b for a, b in pairs if not isinstance(a, str))


class AbsentMember(NamedTuple):
    """A member that a value does not have: `known` are those that it has, `type` is that of a value without members;
    `certain`: it cannot have it."""

    known: tuple[str, ...] = ()
    type: str = ""
    certain: bool = True


class Inside(NamedTuple):
    """Where a path leads: what may stand there, None where that is not known; or the index of the segment that none of
    the values has, and why."""

    shapes: tuple[InnerShape, ...] | None
    failed: int = 0
    absent: AbsentMember | None = None


def shape_of(field: FieldSpec) -> InnerShape:
    """What a declared field says of its value."""
    return InnerShape(field.type, field.schema, field.schema, field.items)


def shape_of_value(value: Any) -> InnerShape:
    """What is known of a written value, one level deep."""
    kind = kind_of(value)
    if kind == "object":
        return InnerShape(
            "object",
            fields={
                name: FieldSpec(type=_TYPE_OF_KIND[kind_of(each)]) for name, each in value.items()
            },
        )
    return InnerShape(_TYPE_OF_KIND.get(kind, "any"))


def follow(shapes: Sequence[InnerShape], segments: Sequence[str], *, lists: bool) -> Inside:
    """Where a path leads in values of these shapes, any of which may be the one; `lists`: it walks lists, too."""
    for index, segment in enumerate(segments):
        found = [_member(shape, segment, lists=lists) for shape in shapes]
        reached = [each for each in found if isinstance(each, InnerShape)]
        absent = [each for each in found if isinstance(each, AbsentMember)]
        if not found or len(reached) + len(absent) < len(found):
            return Inside(None)
        if not reached:
            known = tuple(dict.fromkeys(name for each in absent for name in each.known))
            certain = all(each.certain for each in absent)
            return Inside(None, index, AbsentMember(known, absent[0].type, certain))
        shapes = reached
    return Inside(tuple(shapes))


def element_of(shape: InnerShape) -> InnerShape | None:
    """What is known of the elements of a list; None for anything else, and where nothing is."""
    found = (
        _member(shape, "0", lists=True) if _type_of(shape, _resolved(shape)) == "array" else None
    )
    return found if isinstance(found, InnerShape) else None


def _member(shape: InnerShape, segment: str, *, lists: bool) -> InnerShape | AbsentMember | None:
    """One member of a value; None where it may have it, and nothing is known of it."""
    schema = _resolved(shape)
    type = _type_of(shape, schema)
    if type == "array":
        if not (lists and segment.isdecimal()):
            return AbsentMember(type="a list")
        if shape.items is not None:
            return shape_of(shape.items)
        items = schema.get("items")
        return InnerShape(schema=items, root=shape.root) if isinstance(items, dict) else None
    if shape.fields is not None:
        field = shape.fields.get(segment)
        return shape_of(field) if field else AbsentMember(tuple(shape.fields))
    if type not in ("object", "any"):
        return AbsentMember(type=type)
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not _OPEN.isdisjoint(schema):
        return None
    if segment in properties:
        return InnerShape(schema=properties[segment], root=shape.root)
    others = schema.get("additionalProperties")
    return (
        AbsentMember(tuple(properties), certain=others is False)
        if others in (None, False)
        else None
    )


def _resolved(shape: InnerShape) -> dict[str, Any]:
    """The schema of a shape behind its references; empty where there is none, or not one that can be followed."""
    schema = shape.schema
    for _ in range(MOST):
        if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)):
            return schema if isinstance(schema, dict) else {}
        if len(schema) > 1 or not schema["$ref"].startswith("#"):
            return {}
        schema = find_at(shape.root, parse_reference(schema["$ref"]))
        if schema is NOWHERE:
            return {}
    return {}


def _type_of(shape: InnerShape, schema: dict[str, Any]) -> str:
    if shape.type != "any":
        return shape.type
    types = schema.get("type")
    named = [
        each
        for each in (types if isinstance(types, list) else [types])
        if each not in (None, "null")
    ]
    return named[0] if len(named) == 1 and isinstance(named[0], str) else "any"
