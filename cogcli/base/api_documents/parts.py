"""Mappings inside an API document: their members by type, and faults that point to a place."""

from __future__ import annotations

from collections.abc import Iterator

from cogcli.base.json_pointer import (
    NOWHERE,
    DocumentFault,
    Pointer,
    find_at,
    parse_reference,
    pointer_text,
)
from cogcli.base.jsonvalue import Json, kind_of, text_of
from cogcli.base.named_tuple import NamedTuple


def resolve(document: Json, value: object, place: Pointer) -> tuple[Json, Pointer]:
    """Return `value`, or the target of its `$ref`, as a mapping with its place.

    Raise DocumentFault `wire.document`.
    """
    seen: set[Pointer] = set()
    while isinstance(value, dict) and isinstance(value.get("$ref"), str):
        if place in seen:
            raise document_fault(place, "`$ref` leads in a circle")
        seen.add(place)
        place = parse_reference(value["$ref"])
        value = find_at(document, place)
    return _require_mapping(value, place), place


def _require_mapping(value: object, place: Pointer) -> Json:
    if not isinstance(value, dict):
        found = "nothing" if value is NOWHERE else kind_of(value)
        raise document_fault(place, f"found {found}, expected a mapping")
    return value


def document_fault(place: Pointer, message: str, hint: str = "") -> DocumentFault:
    """Return a fault `wire.document` that points to a place."""
    return DocumentFault(
        "wire.document", f"`{pointer_text(place)}`: {message}", hint, pointer=place
    )


class DocumentPart(NamedTuple):
    """A mapping in a document, and its place.

    Its methods raise DocumentFault `wire.document` for a member of the wrong type, or a reference
    that leads nowhere.
    """

    document: Json
    value: Json
    place: Pointer

    def place_of(self, key: str) -> Pointer:
        """Return the place of a member."""
        return (*self.place, key)

    def has(self, key: str) -> bool:
        """Return whether a member exists and is not null."""
        return self.value.get(key) is not None

    def is_true(self, key: str, *, default: bool = False) -> bool:
        """Return whether a member is `true`; `default` if it is absent."""
        return self.value.get(key, default) is True

    def text(self, key: str) -> str:
        """Return the text of a member; empty if it is absent or not text."""
        return text_of(self.value.get(key))

    def mapping(self, key: str) -> DocumentPart:
        """Return a member that is a mapping; an empty one if it is absent or null."""
        value = self.value.get(key)
        return self.require_mapping(key) if value is not None else self._replace_member(key, {})

    def require_mapping(self, key: str) -> DocumentPart:
        """Return a member that must be a mapping."""
        value = self.value.get(key, NOWHERE)
        return self._replace_member(key, _require_mapping(value, self.place_of(key)))

    def _replace_member(self, key: str, value: Json) -> DocumentPart:
        return DocumentPart(self.document, value, self.place_of(key))

    def resolve_member(self, key: str) -> DocumentPart:
        """Return a member, or the target of its reference, which must be a mapping."""
        value, place = resolve(self.document, self.value[key], self.place_of(key))
        return DocumentPart(self.document, value, place)

    def items(self, key: str) -> list[tuple[object, Pointer]]:
        """Return the items of a list with their places; empty if the list is absent or null."""
        value, place = self.value.get(key), self.place_of(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise document_fault(place, f"found {kind_of(value)}, expected a list")
        return [(item, (*place, str(index))) for index, item in enumerate(value)]

    def mappings(self, key: str) -> Iterator[DocumentPart]:
        """Yield the items of a list, each of which must be a mapping."""
        for item, place in self.items(key):
            yield DocumentPart(self.document, _require_mapping(item, place), place)

    def resolved_items(self, key: str) -> Iterator[DocumentPart]:
        """Yield the items of a list, or the targets of their references, each of which must be a
        mapping."""
        for item, place in self.items(key):
            yield DocumentPart(self.document, *resolve(self.document, item, place))
