"""The base class of all declarations: frozen values whose fields are declared once.

A record is written like a dataclass. Its fields are the annotated names of its class and of its
base classes, in that order, and all are keyword arguments:

    class SkillRef(Record):
        id: str
        version: str | None = None

A value stores its JSON in `json`. The constructor writes `json`, and `SkillRef.of(json)` takes
existing JSON. Attributes are read from `json`. A member that has its default is left out of `json`,
unless it is declared with `always`. Neither way checks anything: foreign data is checked before
(`declarations.checked`).

A constructor is compiled when the first value is constructed (docs/adr/0026-records.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self, dataclass_transform

from cogcli.declarations.field import (
    ABSENT,
    RECORDS,
    REQUIRED,
    Field,
    always,
    fields_of,
    key,
    place,
)
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(always, key, place)
)
class _RecordType(type):
    """A metaclass that turns the annotated names of a class into its fields."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: Json) -> _RecordType:
        for field, annotation in members.get("__annotations__", {}).items():
            if not annotation.startswith("ClassVar"):
                members[field] = Field(field, annotation, members.get(field, REQUIRED))
        members.setdefault("__slots__", ())
        members["__init__"] = _first_init
        return super().__new__(cls, name, bases, members)

    def __init__(cls, name: str, bases: tuple[type, ...], members: Json) -> None:
        super().__init__(name, bases, members)
        if "__dict__" not in members["__slots__"]:
            RECORDS[name] = cls  # type: ignore[assignment]


def _first_init(self: Record, **members: object) -> None:
    """Replace this `__init__` by a compiled one when the first value of a class is constructed."""
    cls = type(self)
    cls.__init__ = cls.constructor()  # type: ignore[method-assign]
    cls.__init__(self, **members)


class _JsonHolder:
    __slots__ = ("json",)
    json: Json
    """The members as JSON, in order. It is not copied, so it must not be changed."""


set_json: Callable[[object, Json], None] = vars(_JsonHolder)["json"].__set__


class Record(_JsonHolder, metaclass=_RecordType):
    """A frozen value with declared fields."""

    other_members: ClassVar[bool] = False
    """Whether its JSON may have undeclared members, as older versions wrote them."""

    @classmethod
    def of(cls, json: Json) -> Self:
        """Return the value of this JSON.

        Reading a member that is absent and has no default raises AttributeError.
        """
        value = cls.__new__(cls)
        set_json(value, json)
        return value

    @classmethod
    def with_attributes(cls) -> type[Self]:
        """Return a subclass whose values have an attribute dictionary, which takes precedence over
        `json`.
        """
        members = {"__slots__": ("__dict__",), "__module__": cls.__module__, "__doc__": cls.__doc__}
        below: type[Self] = _RecordType(cls.__name__, (cls,), members)  # type: ignore[assignment]
        return below

    @classmethod
    def constructor(cls) -> Callable[..., None]:
        """Return the function that becomes `__init__` when the first value is constructed."""
        return _compile_init(cls)

    def replace(self, **changes: object) -> Self:
        """Return a copy with other values. Raise TypeError for a name that is not a field."""
        return type(self)(**{**self.json, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and type(self) is type(other) and self.json == other.json

    def __repr__(self) -> str:
        return f"{type(self).__name__}.of({self.json!r})"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from cogcli.declarations.pydantic_schema import core_schema_of

        return core_schema_of(cls, handler)


def _compile_init(cls: type[Record]) -> Callable[..., None]:
    """Return an `__init__` that writes the JSON of a value.

    The JSON begins as one literal of the members that are always written.
    """
    known: Json = {"set_json": set_json, "_plain": _plain_json}
    parameters: list[str] = []
    literal: list[str] = []
    statements: list[str] = []
    for field in fields_of(cls):
        name, default = field.name, field.default
        value = name if field.record is None else f"_plain({name})"
        if default is REQUIRED:
            parameters.append(name)
        else:
            known[f"_default_{name}"] = default
            parameters.append(f"{name}=_default_{name}")
        if default in ([], {}):
            value = f"({default!r} if {name} is _default_{name} else {value})"
        if default is not REQUIRED and not field.always:
            is_other = "is not" if default is None or default is ABSENT else "!="
            statements.append(f"    if {name} {is_other} _default_{name}: json[{name!r}] = {value}")
        elif statements:
            statements.append(f"    json[{name!r}] = {value}")
        else:
            literal.append(f"{name!r}: {value}")
    lines = [
        f"def __init__(self, *, {', '.join(parameters)}):" if parameters else "def __init__(self):",
        f"    json = {{{', '.join(literal)}}}",
        *statements,
        "    set_json(self, json)",
    ]
    exec("\n".join(lines), known)  # noqa: S102  # its only foreign parts are names of fields
    compiled: Callable[..., None] = known["__init__"]
    return compiled


def _plain_json(value: object) -> object:
    """Return records as JSON, including those in a list or a dictionary. Any other value is returned unchanged."""
    if isinstance(value, Record):
        return value.json
    if type(value) is dict:
        return {
            name: each.json if isinstance(each, Record) else each for name, each in value.items()
        }
    if type(value) is list and value:
        return [each.json if isinstance(each, Record) else each for each in value]
    return value
