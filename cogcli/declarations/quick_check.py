"""The quick check whether JSON fits a record: one look at keys and types together, and the values whose type says
too little.

It finds that a value surely fits. Where it does not, `declarations.checked` gives the answer and the reason. So
whatever this check does not know, such as a pattern or a key `x-...`, it leaves to that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.events import OneOf
from cogcli.declarations.field import REQUIRED, fields_of
from cogcli.declarations.reading import plain_types, types_of
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import ValueLimits

Fits = Callable[[Any], bool]
_SHAPES: Final = 1_000
"""The shapes of one record that are kept. Those that cogcli writes are few."""


class _Arm(NamedTuple):
    """One alternative of a member's type: the Python types of its values, and a further test, if there is one."""

    types: frozenset[type] | None
    """None for any type."""
    fits: Fits | None = None


_ANY: Final = _Arm(None)
_NEVER: Final = _Arm(frozenset())
"""Stands for a type that this check does not know."""


def certainly_fits(cls: type[Record], json: object) -> bool:
    """Return True if a JSON value certainly fits a record. False means that the value must be checked."""
    return _check_of(cls).fits(json)


class _RecordCheck:
    """The check of one class of records."""

    def __init__(self, cls: type[Record]) -> None:
        hints = types_of(cls)
        fields = fields_of(cls)
        self._arms = {field.name: tuple(_arms_of(hints[field.name])) for field in fields}
        self._required = {field.name for field in fields if field.default is REQUIRED}
        self._takes_any = cls.other_members
        self._tests: dict[tuple[object, ...], tuple[tuple[str, Fits], ...]] = {}
        """By keys and types that fit: the members whose values need a test as well."""

    def fits(self, json: Any) -> bool:
        """Return whether a value certainly fits."""
        if type(json) is not dict:
            return False
        shape = (*json, *map(type, json.values()))
        tests = self._tests.get(shape)
        if tests is None:
            tests = self._tests_of(json)
            if tests is None or len(self._tests) >= _SHAPES:
                return False
            self._tests[shape] = tests
        for name, fits in tests:  # noqa: SIM110  # a generator takes twice as long
            if not fits(json[name]):
                return False
        return True

    def _tests_of(self, json: dict[str, object]) -> tuple[tuple[str, Fits], ...] | None:
        """Return the tests that are left for members of these types; None if a key or a type does not fit."""
        if not self._required <= json.keys():
            return None
        others = (_ANY,) if self._takes_any else ()
        tests = []
        for name, value in json.items():
            arms = self._arms.get(name, others)
            fitting = [arm for arm in arms if arm.types is None or type(value) in arm.types]
            if not fitting:
                return None
            if all(arm.fits is not None for arm in fitting):
                tests.append((name, _any_of([arm.fits for arm in fitting if arm.fits])))
        return tuple(tests)


@cache
def _check_of(cls: type[Record]) -> _RecordCheck:
    return _RecordCheck(cls)


def _any_of(tests: list[Fits]) -> Fits:
    if len(tests) == 1:
        return tests[0]
    return lambda value: any(fits(value) for fits in tests)


def _arms_of(hint: Any) -> list[_Arm]:
    """Return the alternatives of a type."""
    if get_origin(hint) in (Union, UnionType):
        return [arm for each in get_args(hint) for arm in _arms_of(each)]
    return [_arm_of(hint)]


def _arm_of(hint: Any) -> _Arm:
    origin, args = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return _ANY
    if (types := plain_types(hint)) is not None:
        return _Arm(types)
    if origin is Literal:
        return _Arm(frozenset(map(type, args)), frozenset(args).__contains__)
    if origin is Annotated:
        return _with_rules(_arm_of(args[0]), args[1:])
    if origin is list:
        return _Arm(frozenset((list,)), _all_fit(_arms_of(args[0])))
    if origin is dict and args[0] is str:
        return _values_arm(_arms_of(args[1]))
    if isinstance(hint, type) and issubclass(hint, Record):
        return _Arm(frozenset((dict,)), lambda value: _check_of(hint).fits(value))
    return _NEVER


def _with_rules(arm: _Arm, rules: tuple[object, ...]) -> _Arm:
    """Return the alternative of a type with further rules."""
    tests = [] if arm.fits is None else [arm.fits]
    for rule in rules:
        test = _test_of(rule)
        if test is None:
            return _NEVER
        tests.append(test)
    return _Arm(
        arm.types, tests[0] if len(tests) == 1 else lambda value: all(t(value) for t in tests)
    )


def _test_of(rule: object) -> Fits | None:
    if isinstance(rule, OneOf):
        return lambda value: value in rule.names
    if isinstance(rule, ValueLimits) and not rule.pattern:
        return rule.allows
    return None


def _all_fit(arms: list[_Arm]) -> Fits | None:
    """Return the test of the elements of a list."""
    if _ANY in arms:
        return None
    plain = frozenset[type]().union(*(arm.types or () for arm in arms if arm.fits is None))
    if all(arm.fits is None for arm in arms):
        return lambda values: plain.issuperset(map(type, values))

    def fit_each(values: Iterable[object]) -> bool:
        for value in values:  # noqa: SIM110  # a generator takes twice as long
            if not _fits_one(arms, value):
                return False
        return True

    return fit_each


def _values_arm(arms: list[_Arm]) -> _Arm:
    """Return the alternative of an object with any keys."""
    all_fit = _all_fit(arms)
    if all_fit is None:
        return _Arm(frozenset((dict,)))
    return _Arm(frozenset((dict,)), lambda value: all_fit(value.values()))


def _fits_one(arms: list[_Arm], value: object) -> bool:
    for types, fits in arms:  # noqa: SIM110  # a generator takes twice as long
        if (types is None or type(value) in types) and (fits is None or fits(value)):
            return True
    return False
