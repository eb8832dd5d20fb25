"""The fields of a record: its annotated names with their declarations."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final, Protocol, Self

from cogcli.declarations.value_types import Json


class RecordValue(Protocol):
    """The interface of a record that fields use.

    The class is `record.Record`, which imports this module.
    """

    json: Json
    other_members: ClassVar[bool]

    @classmethod
    def of(cls, json: Json) -> Self:
        """Return the value of this JSON."""


REQUIRED: Final = object()
"""The default of a field that has no default."""
ABSENT: Final[Any] = object()
"""The default of a field that is absent unless a value is set. Null is a value."""
RECORDS: Final[dict[str, type[RecordValue]]] = {}
"""All record classes by name. A field whose type is one of these names contains records."""


_UNKNOWN: Final[Any] = object()
"""Stands for the class of a field's records before it is looked up: it may be defined after the field."""


class Declaration:
    """The declaration of a field in addition to its type. It is written as the default of the
    field.
    """

    always = False
    """Whether the field is written even where it has its default."""

    def __init__(self, default: object) -> None:
        self.default = default


class _AlwaysWritten(Declaration):
    """Declares a field that is written even if it has its default."""

    always = True


class FileKey(Declaration):
    """The representation of a member in a spec file.

    `name`: the key in the file. `required`: the file must have the key although the member has a default. `nullable`:
    null means the default or an empty mapping. `in_file`: the file may have the key.
    """

    def __init__(
        self,
        default: object,
        *,
        name: str = "",
        required: bool = False,
        nullable: bool = False,
        in_file: bool = True,
    ) -> None:
        super().__init__(default)
        self.name = name
        self.required = required
        self.nullable = nullable
        self.in_file = in_file


def key(
    *, default: object = REQUIRED, name: str = "", required: bool = False, nullable: bool = False
) -> Any:
    """Declare a member whose file key has more properties than name, type and default (`FileKey`)."""
    return FileKey(default, name=name, required=required, nullable=nullable)


def place(*, default: object) -> Any:
    """Declare a member that spec files do not contain. Its value is the place of the spec, or comes from the
    environment.
    """
    return FileKey(default, in_file=False)


_PLAIN: Final = FileKey(None)


def always(*, default: object) -> Any:
    """Declare a field that is written even if it has this default."""
    return _AlwaysWritten(default)


class Field:
    """A field of a record: a descriptor that reads it from the JSON of a value."""

    __slots__ = ("_record", "always", "annotation", "declaration", "default", "name")

    def __init__(self, name: str, annotation: str, default: object) -> None:
        """Create a field. `annotation` is the source text of its type."""
        self.name = name
        self.annotation = annotation
        self.declaration = default if isinstance(default, Declaration) else None
        """Its declarations apart from type and default; None for most fields."""
        self.always = self.declaration is not None and self.declaration.always
        """Whether it is written even where it is its default."""
        self.default = self.declaration.default if self.declaration else default
        self._record: type[RecordValue] | None = _UNKNOWN

    @property
    def file_key(self) -> FileKey:
        """Return the representation of the field in the file of a spec."""
        return self.declaration if isinstance(self.declaration, FileKey) else _PLAIN

    @property
    def key(self) -> str:
        """Return the key of the field in the file of a spec."""
        return self.file_key.name or self.name

    @property
    def required(self) -> bool:
        """Whether the file of a spec must have the key."""
        return self.default is REQUIRED or self.file_key.required

    @property
    def record(self) -> type[RecordValue] | None:
        """Return the class of the records in this field; None if it contains other values."""
        if self._record is _UNKNOWN:
            words = re.findall(r"\w+", self.annotation)
            self._record = next((RECORDS[word] for word in words if word in RECORDS), None)
        return self._record

    def __get__(self, value: RecordValue | None, cls: type[RecordValue]) -> object:
        if value is None:
            return self
        found = value.json.get(self.name, self.default)
        if found is REQUIRED:
            raise AttributeError(f"{cls.__name__} has no `{self.name}`")
        if type(found) is dict and self.record is not None:
            if self.annotation.startswith("dict["):
                return {name: self.record.of(each) for name, each in found.items()}
            return self.record.of(found)
        if type(found) is list and self.record is not None:
            return [self.record.of(each) if type(each) is dict else each for each in found]
        return type(found)() if found is self.default and found in ([], {}) else found


_FOUND: Final[dict[type[RecordValue], tuple[Field, ...]]] = {}
"""The fields of each class that was requested: they never change."""


def own_annotations(cls: type) -> dict[str, str]:
    """Return the annotations in the body of a class as source text, by name."""
    annotations: dict[str, str] = vars(cls).get("__annotations__", {})
    return annotations


def fields_of(cls: type[RecordValue]) -> tuple[Field, ...]:
    """Return the fields of a record, those of its base classes first. A redeclared field with another type or default
    keeps its position.
    """
    if cls not in _FOUND:
        _FOUND[cls] = tuple(_collect_fields(cls).values())
    return _FOUND[cls]


def _collect_fields(cls: type[RecordValue]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for each in reversed(cls.__mro__):
        members = vars(each)
        own = (members.get(name) for name in own_annotations(each))
        fields |= {field.name: field for field in own if type(field) is Field}
    return fields
