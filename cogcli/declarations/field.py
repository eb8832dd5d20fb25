"""The fields of a record: its annotated names, with what stands as their default."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final, Protocol, Self

from cogcli.declarations.value_types import Json


class RecordValue(Protocol):
    """A value of a record as its fields read it: `record.Record`, which imports this module."""

    json: Json
    other_members: ClassVar[bool]

    @classmethod
    def of(cls, json: Json) -> Self:
        """The value of this JSON."""


REQUIRED: Final = object()
"""Stands for the default of a field that has none."""
ABSENT: Final[Any] = object()
"""The default of a field that is no member of the value unless it is given: null is something else."""
RECORDS: Final[dict[str, type[RecordValue]]] = {}
"""The classes of all records by name: a field whose type names one holds records."""


_UNKNOWN: Final[Any] = object()
"""Stands for the class of a field's records before it is looked up: it may be defined after the field."""


class Declaration:
    """What is declared of a field beside its type; it stands as the default of the field."""

    always = False
    """Whether the field is written even where it has its default."""

    def __init__(self, default: object) -> None:
        self.default = default


class _Always(Declaration):
    always = True


class FileKey(Declaration):
    """How a member of a spec stands in its file: the name there; whether the file must have it although
    it has a default; whether null stands for the default, or for an empty mapping; whether it is there
    at all."""

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
    """A member of a spec that is not only its name, type and default in the file (`FileKey`)."""
    return FileKey(default, name=name, required=required, nullable=nullable)


def place(*, default: object) -> Any:
    """A member that no file has: it follows from where the spec was found, or from its environment."""
    return FileKey(default, in_file=False)


_PLAIN: Final = FileKey(None)


def always(*, default: object) -> Any:
    """The default of a field that is written even where it has this value."""
    return _Always(default)


class Field:
    """A member of a record, and what reads it from the JSON of a value."""

    __slots__ = ("_record", "always", "annotation", "declaration", "default", "name")

    def __init__(self, name: str, annotation: str, default: object) -> None:
        """`annotation` is the source of its type."""
        self.name = name
        self.annotation = annotation
        self.declaration = default if isinstance(default, Declaration) else None
        """What is declared of it beside its type and default; None for most fields."""
        self.always = self.declaration is not None and self.declaration.always
        """Whether it is written even where it is its default."""
        self.default = self.declaration.default if self.declaration else default
        self._record: type[RecordValue] | None = _UNKNOWN

    @property
    def file_key(self) -> FileKey:
        """How it stands in the file of a spec."""
        return self.declaration if isinstance(self.declaration, FileKey) else _PLAIN

    @property
    def key(self) -> str:
        """What the file of a spec calls it."""
        return self.file_key.name or self.name

    @property
    def required(self) -> bool:
        """Whether the file of a spec must have it."""
        return self.default is REQUIRED or self.file_key.required

    @property
    def record(self) -> type[RecordValue] | None:
        """The class of the records that it holds; None where it holds other values."""
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
"""The fields of each class that was asked for: they never change."""


def fields_of(cls: type[RecordValue]) -> tuple[Field, ...]:
    """The fields of a record, those of the classes above it first.

    A class may give an inherited field another type or default; its place stays.
    """
    if cls not in _FOUND:
        _FOUND[cls] = tuple(_collect_fields(cls).values())
    return _FOUND[cls]


def _collect_fields(cls: type[RecordValue]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for each in reversed(cls.__mro__):
        members = vars(each)
        own = (members.get(name) for name in members.get("__annotations__", ()))
        fields |= {field.name: field for field in own if type(field) is Field}
    return fields
