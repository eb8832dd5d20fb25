"""The known inner shapes of values: members of objects, elements of lists (docs/reference/skill.md#flow-checks).

1. Shapes are known from `properties` and `items` of a field's schema, fields of named results, and literal lists.
2. An object has no other members if its schema has `additionalProperties: false`, and probably none if the schema does
   not mention others. Other keywords (`anyOf`, `patternProperties`, ...) make the members unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cogcli.base.json_pointer import find_at, parse_reference
from cogcli.base.jsonvalue import Json, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.field_spec import Fields, FieldSpec, FieldType
from cogcli.specs.unchecked import list_at, object_at, text_at, value_at

MAX_SHAPES: Final = 16
"""If a place has more writers, its shape is treated as unknown, so that the checks stay linear."""
_OPEN: Final = frozenset(
    (
        "allOf", "anyOf", "oneOf", "if", "not", "patternProperties", "dependentSchemas", "$dynamicRef",
        "unevaluatedProperties",
    )
)  # fmt: skip
"""If a schema has one of these keywords, `properties` does not describe it completely."""
_TYPE_OF_KIND: Final[dict[str, FieldType]] = {
    "text": "string", "number": "number", "boolean": "boolean", "list": "array", "object": "object", "null": "any"
}  # fmt: skip

_OF_FILE: Final[Fields] = {
    "path": FieldSpec(type="string", required=True),
    "name": FieldSpec(type="string", required=True),
    "bytes": FieldSpec(type="integer", required=True),
    "sha256": FieldSpec(type="string", required=True),
}
"""The members of a file."""


class InnerShape(NamedTuple):
    """The known shape of a value. It has the declared type, a schema in the document `root`, the element of a list, and
    the fields of an object without other members.
    """

    type: str = "any"
    schema: object = None
    root: object = None
    items: FieldSpec | None = None
    fields: Fields | None = None

    def has_same_declaration(self, other: InnerShape) -> bool:
        """Return whether both shapes come from the same declaration."""
        pairs = zip(self, other, strict=True)
        return self.type == other.type and all(a is b for a, b in pairs if not isinstance(a, str))


class AbsentMember(NamedTuple):
    """A member that a value does not have.

    `known` are the existing members. `type` is the type of a value without members. `certain` is whether the value can
    never have the member.
    """

    known: tuple[str, ...] = ()
    type: str = ""
    certain: bool = True


class PathResult(NamedTuple):
    """The result of following a path: the possible shapes of the value, or None if they are unknown.

    If no value has one of the segments, `failed` is the index of that segment and `absent` the reason.
    """

    shapes: tuple[InnerShape, ...] | None
    failed: int = 0
    absent: AbsentMember | None = None


def shape_of(field: FieldSpec) -> InnerShape:
    """Return the shape of the values of a declared field."""
    return InnerShape(field.type, field.schema, field.schema, field.items)


def shape_of_value(value: object) -> InnerShape:
    """Return the shape of a literal value, one level deep."""
    if isinstance(value, dict):
        kinds = {name: kind_of(each) for name, each in value.items()}
        fields = {name: FieldSpec(type=_TYPE_OF_KIND[kind]) for name, kind in kinds.items()}
        return InnerShape("object", fields=fields)
    return InnerShape(_TYPE_OF_KIND.get(kind_of(value), "any"))


def follow(shapes: Sequence[InnerShape], segments: Sequence[str], *, lists: bool) -> PathResult:
    """Follow a path from values with any of these shapes. With `lists`, segments may be list indices."""
    for index, segment in enumerate(segments):
        found = [_find_member(shape, segment, lists=lists) for shape in shapes]
        reached = [each for each in found if isinstance(each, InnerShape)]
        absent = [each for each in found if isinstance(each, AbsentMember)]
        if not found or len(reached) + len(absent) < len(found):
            return PathResult(None)
        if not reached:
            return PathResult(None, index, _join_absences(absent))
        shapes = reached
    return PathResult(tuple(shapes))


def _join_absences(absent: Sequence[AbsentMember]) -> AbsentMember:
    known = tuple(dict.fromkeys(name for each in absent for name in each.known))
    certain = all(each.certain for each in absent)
    return AbsentMember(known, absent[0].type, certain)


def element_of(shape: InnerShape) -> InnerShape | None:
    """Return the shape of the elements of a list. None for any other value, and if the elements are unknown."""
    found = (
        _find_member(shape, "0", lists=True)
        if _find_type(shape, _resolve_schema(shape)) == "array"
        else None
    )
    return found if isinstance(found, InnerShape) else None


def _find_member(
    shape: InnerShape, segment: str, *, lists: bool
) -> InnerShape | AbsentMember | None:
    """Return the shape of one member, or why it is absent. None if the value may have it with an unknown shape."""
    schema = _resolve_schema(shape)
    type = _find_type(shape, schema)
    if type == "array":
        is_index = lists and segment.isdecimal()
        return _find_element(shape, schema) if is_index else AbsentMember(type="a list")
    if shape.fields is not None:
        field = shape.fields.get(segment)
        return shape_of(field) if field else AbsentMember(tuple(shape.fields))
    if type == "file":
        return shape_of(_OF_FILE[segment]) if segment in _OF_FILE else AbsentMember(tuple(_OF_FILE))
    if type not in ("object", "any"):
        return AbsentMember(type=type)
    return _find_property(shape, schema, segment)


def _find_element(shape: InnerShape, schema: Json) -> InnerShape | None:
    if shape.items is not None:
        return shape_of(shape.items)
    items = value_at(schema, "items")
    return InnerShape(schema=items, root=shape.root) if isinstance(items, dict) else None


def _find_property(
    shape: InnerShape, schema: Json, segment: str
) -> InnerShape | AbsentMember | None:
    properties = value_at(schema, "properties")
    if not isinstance(properties, dict) or not _OPEN.isdisjoint(schema):
        return None
    if segment in properties:
        return InnerShape(schema=properties[segment], root=shape.root)
    others = value_at(schema, "additionalProperties")
    if others not in (None, False):
        return None
    return AbsentMember(tuple(properties), certain=others is False)


def _resolve_schema(shape: InnerShape) -> Json:
    """Return the schema of a shape with references resolved. Empty if it has none, or if it cannot be resolved."""
    schema = shape.schema
    for _ in range(MAX_SHAPES):
        reference = text_at(schema, "$ref")
        if reference is None:
            return object_at(schema)
        if len(object_at(schema)) > 1 or not reference.startswith("#"):
            return {}
        schema = find_at(shape.root, parse_reference(reference))
    return {}


def _find_type(shape: InnerShape, schema: Json) -> str:
    if shape.type != "any":
        return shape.type
    types = list_at(schema, "type") or [value_at(schema, "type")]
    match [each for each in types if each not in (None, "null")]:
        case [str(name)]:
            return name
        case _:
            return "any"
