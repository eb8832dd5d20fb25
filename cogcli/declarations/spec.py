"""The base class of spec files: each kind of file has a class, and so has each part of a file.

    class Retry(Spec):
        "The attempts of a step and the delays between them."

        max_attempts: Annotated[int, SpecLimits(least=1, most=100)] = 3
        "How often the step is tried, the first time included."

The fields are the keys of the file, in the order in which messages list them. The type of a field is
that of its value: a list of the file becomes a tuple, a mapping with its own class becomes a value of
that class. The shape that a file is checked against (`specs.shape_of_spec`), the schema for editors and
the tables of the reference are derived from the same fields. The text below a field describes it there.

A checked mapping becomes a value once (`of`); reading an attribute is as fast as for any other object.
Null and an absent key mean the default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, Union, get_args, get_origin

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.field import REQUIRED, fields_of, own_annotations
from cogcli.declarations.record import Record, set_json
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class LimitWords(TypedDict, total=False):
        """The keywords of `SpecLimits`.

        For numbers and the length of lists: `minimum`, `maximum`, `above`. For texts: `pattern` and so
        on. For mappings: `foreign` and so on. For lists: `unique`, the member that must differ
        between entries. If the type is a dictionary, the entries are stored by that member.
        """

        minimum: float
        maximum: float
        above: float
        pattern: str
        ignore_case: bool
        choices: Collection[str]
        longest: int
        empty: bool
        secretive: bool
        code: str
        expected: str
        hint: str
        foreign: bool
        filled: bool
        ids: str
        keys: type[Spec]
        unique: str


class SpecLimits:
    """The limits of a value of a spec file in addition to its type.

    The keywords are those of the shapes; `specs.shape` explains them.
    """

    __slots__ = ("words",)

    def __init__(self, **words: Unpack[LimitWords]) -> None:
        self.words: Json = {**words}


class Spec(Record):
    """A frozen value of a spec file, or of a part of one.

    `json` is its checked mapping without replaced keys. It is empty for a value that was
    constructed.
    """

    __slots__ = ("__dict__",)
    thing: ClassVar[str] = ""
    """The word before its `id` in messages, as in ``step `sum` ``."""
    shorthand: ClassVar[str] = ""
    """The member that a text in the file sets, instead of a mapping."""

    @classmethod
    def of(cls, json: Json, **places: object) -> Self:
        """Return the value of a checked mapping. `places` contains the members that no file has."""
        reading = _READINGS.get(cls) or _reading_of(cls)
        value = cls.__new__(cls)
        set_json(value, json)
        attributes = value.__dict__
        attributes.update(reading.defaults)
        member_of = reading.members.get
        for name, member in json.items():
            found = member_of(name)
            if found is not None:
                attribute, convert = found
                if member is not None:
                    attributes[attribute] = member if convert is None else convert(member)
                elif attribute not in attributes:
                    attributes[attribute] = None
        if places:
            attributes.update(places)
        return value

    @classmethod
    def file_keys(cls) -> Collection[str]:
        """Return the keys that the file may have."""
        return _reading_of(cls).members.keys()

    @classmethod
    def constructor(cls) -> Callable[..., None]:
        """Return the function that becomes `__init__` when the first value is constructed."""
        reading = _reading_of(cls)

        def construct(self: Spec, **members: object) -> None:
            _require_names(cls, members)
            missing = reading.required - members.keys()
            if missing:
                raise TypeError(f"{cls.__name__} needs {', '.join(sorted(missing))}")
            set_json(self, {})
            vars(self).update(reading.defaults, **members)

        return construct

    def replace(self, **changes: object) -> Self:
        """Return a copy with other values. Raise TypeError for a name that is not a field."""
        _require_names(type(self), changes)
        copy = type(self).__new__(type(self))
        changed = {field.key for field in fields_of(type(self)) if field.name in changes}
        set_json(copy, {key: value for key, value in self.json.items() if key not in changed})
        vars(copy).update(vars(self), **changes)
        return copy

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({members})"


Converter = Callable[[Any], object]


class _SpecReading(NamedTuple):
    """The members of a spec class, and the function that converts each from a checked mapping."""

    defaults: Json
    """By attribute."""
    members: dict[str, tuple[str, Converter | None]]
    """By key of the file: the attribute, and the function that converts the value; None if it is kept unchanged."""
    names: frozenset[str]
    required: frozenset[str]


_READINGS: Final[dict[type[Spec], _SpecReading]] = {}


def _reading_of(cls: type[Spec]) -> _SpecReading:
    """Return the cached reading rules of a class."""
    found = _READINGS.get(cls)
    if found is None:
        found = _READINGS[cls] = _new_reading(cls)
    return found


def _new_reading(cls: type[Spec]) -> _SpecReading:
    fields, converters = fields_of(cls), _converters_of(cls)
    defaults = {field.name: field.default for field in fields if field.default is not REQUIRED}
    return _SpecReading(
        {field.name: {} for field in fields if field.file_key.nullable} | defaults,
        {
            field.key: (field.name, converters.get(field.name))
            for field in fields
            if field.file_key.in_file
        },
        frozenset(field.name for field in fields),
        frozenset(field.name for field in fields if field.default is REQUIRED),
    )


def _require_names(cls: type[Spec], members: Json) -> None:
    """Raise TypeError if a member is not a field of the class."""
    unknown = members.keys() - _reading_of(cls).names
    if unknown:
        raise TypeError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")


def require_whole(value: object) -> None:
    """Raise ValueError for a value that lacks a required member, at any depth.

    A value of an altered log may lack one. Reading the member would raise AttributeError.
    """
    if isinstance(value, Spec):
        missing = _reading_of(type(value)).required - vars(value).keys()
        for field in fields_of(type(value)):
            if field.name in missing:
                raise ValueError(f"{type(value).__name__} without `{field.key}`")
        require_whole([*vars(value).values()])
    elif isinstance(value, tuple | list):
        for each in value:
            require_whole(each)
    elif isinstance(value, dict):
        require_whole([*value.values()])


def hints_of(cls: type[Spec]) -> Json:
    """Return the types of the fields by name."""
    hints: Json = {}
    for names, sources in _annotations_of(cls):
        source = ", ".join(f"{name!r}: ({text})" for name, text in sources.items())
        hints |= eval(f"{{{source}}}", names)  # noqa: S307
    return hints


def _annotations_of(cls: type[Spec]) -> Iterator[tuple[Json, dict[str, str]]]:
    """Yield the annotations of each class from the base down to `cls`.

    Each item contains the names that the annotations may use, and the source text by field.
    """
    for each in reversed(cls.__mro__):
        if each is not Spec and issubclass(each, Spec):
            annotations = own_annotations(each).items()
            own = {name: text for name, text in annotations if not text.startswith("ClassVar")}
            yield vars(sys.modules[each.__module__]), own


def _converters_of(cls: type[Spec]) -> dict[str, Converter]:
    """Return the converters of the fields of a class by name. A field whose JSON is kept has none.

    Only types that may need a converter are evaluated: most fields are texts and numbers, and
    unions are slow to create.
    """
    converters: dict[str, Converter] = {}
    for names, sources in _annotations_of(cls):
        for name, text in sources.items():
            if any(
                word == "tuple" or _is_converted(names.get(word)) for word in _WORD.findall(text)
            ):
                convert = _make_converter(eval(text, names))  # noqa: S307
                if convert is not None:
                    converters[name] = convert
    return converters


_WORD: Final = lazy_pattern(r"[A-Za-z_]\w*")


def _is_converted(named: object) -> bool:
    """Return whether JSON of the type that an annotation names is converted."""
    if isinstance(named, type):
        return issubclass(named, Spec)
    return get_origin(named) in _COMPOSED and _make_converter(named) is not None


_COMPOSED: Final = frozenset((Annotated, Union, UnionType, tuple, dict))


def _make_converter(hint: object) -> Converter | None:
    """Return the function that converts JSON to a value of this type. None if the JSON is kept unchanged."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        for limits in args[1:]:
            if "unique" in limits.words and get_origin(args[0]) is dict:
                return _keyed_converter(get_args(args[0])[1], limits.words["unique"])
        return _make_converter(args[0])
    if origin in (Union, UnionType):
        return _union_converter([option for option in args if option is not NoneType])
    if origin is tuple:
        return _tuple_converter(_make_converter(args[0]))
    if origin is dict:
        return _dict_converter(_make_converter(args[1]))
    if isinstance(hint, type) and issubclass(hint, Spec):
        return _shorthand_converter(hint) if hint.shorthand else hint.of
    return None


def _union_converter(options: list[object]) -> Converter | None:
    """Return a converter that chooses an option by the JSON type of the value, or None if no option converts."""
    by_type: dict[type, Converter] = {}
    for option in options:
        if convert := _make_converter(option):
            by_type[list if get_origin(plain_hint(option)) is tuple else dict] = convert
    if not by_type:
        return None

    def convert_by_kind(value: object) -> object:
        convert = by_type.get(type(value))
        return value if convert is None else convert(value)

    return convert_by_kind


def _tuple_converter(convert: Converter | None) -> Converter:
    if convert is None:
        return tuple
    return lambda values: tuple(map(convert, values))


def _dict_converter(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda values: {name: convert(value) for name, value in values.items()}


def _keyed_converter(cls: type[Spec], member: str) -> Converter:
    """Return a converter that stores the entries of a list by one member."""
    return lambda entries: {entry[member]: cls.of(entry) for entry in entries}


def _shorthand_converter(cls: type[Spec]) -> Converter:
    """Return a converter that accepts a text instead of a mapping."""

    def convert_shorthand(value: Any) -> object:
        return cls.of({cls.shorthand: value} if type(value) is str else value)

    return convert_shorthand


def plain_hint(hint: object) -> object:
    """Return a type without its annotations."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
