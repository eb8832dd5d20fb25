"""`NamedTuple` as in `typing`, for a tenth of what it costs to define a class (docs/adr/0035-named-tuples.md).

A command defines some 180 named tuples while its modules are imported, and makes values of half of them. `typing`
compiles each annotation and each constructor. Here annotations stay texts, and a constructor is made with the first
value. The code is compiled once for each number of members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

new_tuple: Final = tuple.__new__
"""The base constructor of named tuples. It accepts all members as one tuple and takes a third of the time. For
values that each step creates.
"""

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter
    from functools import cache
    from types import FunctionType

    class _NamedType(type):
        """Turns the annotated names of a class into the members of a tuple."""

        def __new__(mcs, name, bases, members):
            if bases == (tuple,) or _TupleWithNames not in bases:  # the base itself, and subclasses
                return type.__new__(mcs, name, bases, members)
            fields = tuple(members.get("__annotations__", ()))
            members["_field_defaults"] = {
                field: members[field] for field in fields if field in members
            }
            for index, field in enumerate(fields):
                members[field] = _tuplegetter(index, None)
            members.update(__slots__=(), __match_args__=fields, _fields=fields, __new__=_first_new)
            return type.__new__(mcs, name, bases, members)

    def _first_new(cls, /, *values, **named):
        """Replace this `__new__` by a fast one when the first value of a class is made."""
        owner = next(each for each in cls.__mro__ if "_fields" in vars(each))
        owner.__new__ = staticmethod(_make_new(owner))
        return owner.__new__(cls, *values, **named)

    def _make_new(owner):
        code = _code_of_new(len(owner._fields)).replace(
            co_varnames=("_cls", *owner._fields),
            co_name="__new__",
            co_qualname=f"{owner.__qualname__}.__new__",
        )
        defaults = tuple(owner._field_defaults.values())
        return FunctionType(code, _NAMES_OF_NEW, "__new__", defaults)

    _NAMES_OF_NEW = {"_new": tuple.__new__, "__builtins__": {}}

    @cache
    def _code_of_new(count):
        """Compile a constructor of so many members. Compiling takes a hundred times as long as
        giving other names to the parameters.
        """
        names = "".join(f"_{index}, " for index in range(count))
        return compile(f"lambda _cls, {names}: _new(_cls, ({names}))", "<names>", "eval").co_consts[
            0
        ]

    class _TupleWithNames(tuple, metaclass=_NamedType):
        """The common base of all named tuples."""

        __slots__ = ()
        _fields = ()

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"Got unexpected field names: {list(changes)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            members = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({members})"

        def __getnewargs__(self):
            return tuple(self)

    class _NamedTupleBase:
        """Placeholder base that resolves to `_TupleWithNames`."""

        def __mro_entries__(self, bases):
            return (_TupleWithNames,)

    NamedTuple = _NamedTupleBase()
