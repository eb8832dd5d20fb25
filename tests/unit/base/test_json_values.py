from __future__ import annotations

import operator
import time
from collections import Counter, OrderedDict, UserDict, defaultdict, namedtuple
from dataclasses import InitVar, dataclass, field
from enum import Enum, IntEnum, IntFlag, StrEnum
from typing import Any, ClassVar, NamedTuple

import orjson
import pytest

from cogcli.base.json_text import excerpt_of_json, to_plain_reply
from cogcli.base.jsonvalue import (
    MAX_DEPTH,
    MAX_INTEGER,
    NotJson,
    deep_copy,
    equal,
    is_list_of,
    only_texts,
    to_plain_json,
    walk_scalars,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


class Count(IntEnum):
    ONE = 1


class Tone(StrEnum):
    CALM = "calm"


class Level(str, Enum):  # noqa: UP042 - as it is written before 3.11
    HIGH = "high"


class Bits(IntFlag):
    A = 1
    B = 2


class Colour(Enum):
    RED = "red"


class Big(int): ...


class Number(float): ...


class Word(str):
    """Equal to nothing, so that two of them may be keys beside the same text."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return 1


class Row(NamedTuple):
    name: str
    tone: Tone


@dataclass
class Point:
    x: Any
    y: Any = None
    unit: str = field(default="m", init=False)
    kind: ClassVar[str] = "point"
    extra: InitVar[int] = 0


@dataclass(slots=True, frozen=True)
class Slotted:
    x: int
    inner: Any = None


class Computed:
    @property
    def x(self) -> int:
        raise AssertionError("it was run")

    @x.setter
    def x(self, value: int) -> None: ...

    __annotations__ = {"x": int}


Computed = dataclass(init=False)(Computed)  # type: ignore[misc]


class Shy:
    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        raise ValueError("no")


Pair = namedtuple("Pair", "a b")


def test_tuples_become_lists_at_any_depth() -> None:
    assert to_plain_json({"a": (1, (2, [3]))}) == {"a": [1, [2, [3]]]}
    assert deep_copy({"a": (1, ("x",))}) == {"a": [1, ["x"]]}


def test_what_is_admitted_or_copied_shares_nothing() -> None:
    value: dict[str, Any] = {"a": [{"b": []}]}
    for give in (to_plain_json, deep_copy):
        other = give(value)
        other["a"][0]["b"].append(1)
        assert value == {"a": [{"b": []}]}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Tone.CALM, "calm"),
        (Level.HIGH, "high"),
        (Count.ONE, 1),
        (Bits.A | Bits.B, 3),
        (Big(7), 7),
        (Number(1.5), 1.5),
        (OrderedDict(a=1), {"a": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (defaultdict(list, a=[Tone.CALM]), {"a": ["calm"]}),
        ({Tone.CALM: Count.ONE}, {"calm": 1}),
        (Pair(1, Pair(2, [Count.ONE])), {"a": 1, "b": {"a": 2, "b": [1]}}),
        (Row("x", Tone.CALM), {"name": "x", "tone": "calm"}),
        (namedtuple("Nothing", "")(), {}),
        (time.gmtime(0), [1970, 1, 1, 0, 0, 0, 3, 1, 0]),
        (Point(1, [Point(2)]), {"x": 1, "y": [{"x": 2, "y": None, "unit": "m"}], "unit": "m"}),
        (Slotted(1, (Level.HIGH,)), {"x": 1, "inner": ["high"]}),
    ],
)
def test_values_of_other_types_are_taken_as_what_they_are(value: Any, plain: Any) -> None:
    for given, expected in ((value, plain), ({"a": [value]}, {"a": [plain]})):
        found = to_plain_json(given)
        assert found == expected
        assert types_in(found) <= {str, int, float, dict, list, type(None)}


def types_in(value: Any) -> set[type]:
    inside = (
        [*value, *value.values()] if type(value) is dict else value if type(value) is list else []
    )
    return {type(value)}.union(*map(types_in, inside))


def hostile(base: type, metaclass: type = type) -> type:
    """A subclass that fails whenever a method of its own is run."""

    def fail(*given: Any, **named: Any) -> Any:
        raise AssertionError("it was run")

    names = (
        "__iter__",
        "__str__",
        "__repr__",
        "__int__",
        "__index__",
        "__float__",
        "__len__",
        "__getitem__",
    )
    names += (
        "__getattribute__",
        "__getattr__",
        "__eq__",
        "__lt__",
        "__le__",
        "__bool__",
        "__format__",
        "__missing__",
    )
    names += (
        "items",
        "keys",
        "values",
        "get",
        "__contains__",
        "__sub__",
        "encode",
        "isascii",
        "_asdict",
        "__hash__",
    )
    return metaclass("Hostile", (base,), dict.fromkeys(names, fail))


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError("it was run")

    def __instancecheck__(cls, value: Any) -> bool:
        raise AssertionError("it was run")

    __subclasscheck__ = __instancecheck__


@pytest.mark.parametrize("metaclass", [type, Meta])
@pytest.mark.parametrize(
    ("base", "stored", "plain"),
    [
        (str, ("ö",), "ö"),
        (int, (5,), 5),
        (float, (0.5,), 0.5),
        (list, ([1, "x"],), [1, "x"]),
        (tuple, ([1, "x"],), [1, "x"]),
        (dict, ({"a": 1},), {"a": 1}),
        (Pair, (1, 2), {"a": 1, "b": 2}),
    ],
)
def test_no_code_of_a_subclass_is_run(
    base: type, stored: tuple[Any, ...], plain: Any, metaclass: type
) -> None:
    value = base.__new__(made := hostile(base, metaclass), *stored)
    assert type(value) is made
    if base in (list, dict):
        base.__init__(value, *stored)  # type: ignore[misc]
    assert to_plain_json([value]) == [plain]


@pytest.mark.parametrize("slots", [False, True])
def test_no_code_of_a_dataclass_is_run(slots: bool) -> None:
    base = dataclass(slots=slots)(type("Base", (), {"__annotations__": {"x": int, "y": list}}))
    made = hostile(base, Meta)
    value = object.__new__(made)
    object.__setattr__(value, "x", 1)
    object.__setattr__(value, "y", [2])
    assert to_plain_json({"a": value}) == {"a": {"x": 1, "y": [2]}}


def test_a_field_that_was_never_set_is_told() -> None:
    with pytest.raises(ValueError, match="field `x`"):
        to_plain_json(object.__new__(Point))
    with pytest.raises(ValueError, match="field `x`"):
        to_plain_json(object.__new__(Slotted))


def test_what_only_looks_like_a_dict_is_none() -> None:
    with pytest.raises(NotJson):
        to_plain_json(UserDict(a=1))


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, float("nan")]}, "a.1"),
        (float("inf"), ""),
        ({"a": {"b": MAX_INTEGER + 1}}, "a.b"),
        ([-MAX_INTEGER - 1], "0"),
        ({"a": b"x"}, "a"),
        ({"a": {1, 2}}, "a"),
        ({"a": object()}, "a"),
        ({"a": {1: "x"}}, "a"),
        ({"a": {Shy(): "x"}}, "a"),
        ({"a": "\ud800"}, "a"),
        ({"a": {"\ud800": 1}}, "a"),
        ({"a": Colour.RED}, "a"),
        ({"a": Number("nan")}, "a"),
        ([Big(MAX_INTEGER + 1)], "0"),
        ({"a": Word("\ud800")}, "a"),
        ({"a": {Count.ONE: "x"}}, "a"),
        ({"a": {Word("x"): 1, "x": 2}}, "a"),
        ({"a": Computed()}, "a.x"),
        ({"a": Point(1, b"x")}, "a.y"),
        ({"a": Point}, "a"),
        ((n for n in "x"), ""),
    ],
)
def test_foreign_values_are_refused_with_their_place(value: Any, place: str) -> None:
    with pytest.raises(NotJson) as caught:
        to_plain_json(value)
    assert caught.value.place == place


def test_depth_has_a_cap_and_cycles_meet_it() -> None:
    to_plain_json(nested(MAX_DEPTH))
    with pytest.raises(NotJson):
        to_plain_json(nested(MAX_DEPTH + 1))
    cycle: list[Any] = []
    cycle.append(cycle)
    point = Point(1)
    point.y = OrderedDict(a=(point,))
    for each in (cycle, point):
        with pytest.raises(NotJson):
            to_plain_json(each)
    to_plain_json([nested(MAX_DEPTH - 1), Count.ONE])


def test_extremes_are_admitted() -> None:
    value = [MAX_INTEGER, -MAX_INTEGER, 0.0, -1e308, True, None, "", "ö\u2028"]
    assert to_plain_json(value) == value


def test_same_coerces_nothing_but_number_to_number() -> None:
    assert equal({"a": [1, {"b": 1.0}]}, {"a": [1.0, {"b": 1}]})
    for a, b in (
        (True, 1),
        (0, False),
        ("1", 1),
        ([True], [1]),
        ({"a": 1}, {"a": 1, "b": None}),
        (None, False),
    ):
        assert not equal(a, b)


def test_the_scalars_of_a_value_come_in_its_order_without_keys() -> None:
    value = {"a": [1, {"b": None}, []], "c": {}, "d": "x"}
    assert list(walk_scalars(value)) == [1, None, "x"]
    assert list(walk_scalars("x")) == ["x"]


def test_only_texts_remain_of_several_values() -> None:
    assert only_texts(["a", 1, None, True, ["b"], ""]) == ["a", ""]


@pytest.mark.parametrize(
    ("value", "expected"), [(["a", "b"], True), ([], True), (["a", 1], False), ("a", False)]
)
def test_a_list_of_texts_has_nothing_else(value: object, expected: bool) -> None:
    assert is_list_of(value, str) is expected


def carried(count: int = 70) -> list[Any]:
    return [{"id": n, "tags": ["a"], "price": n / 4, "gone": None} for n in range(count)]


def test_a_reply_that_carries_a_given_list_shares_its_elements() -> None:
    given = {"rows": carried(), "fewer": carried(65), "few": carried(3), "name": "x"}
    returned = {"rows": [*carried(), {"id": (1,)}], "same": carried(65), "short": carried(3)}
    plain = to_plain_reply(returned, given)
    assert plain == to_plain_json(returned)
    assert all(map(operator.is_, plain["rows"], given["rows"]))
    assert plain["rows"] is not given["rows"]
    assert plain["rows"][-1] == {"id": [1]}
    assert all(map(operator.is_, plain["same"], given["fewer"]))
    assert plain["short"][0] is not given["few"][0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", True),
        ("id", 0.0),
        ("id", Count.ONE),
        ("tags", ("a",)),
        ("gone", Tone.CALM),
        ("new", 1),
    ],
)
def test_a_changed_element_is_never_taken_for_the_given_one(key: str, value: object) -> None:
    given, rows = {"rows": carried()}, carried()
    rows[0][key] = value
    plain = to_plain_reply({"rows": rows}, given)["rows"]
    assert repr(plain) == repr(to_plain_json(rows))
    assert plain[1] is not given["rows"][1]


def test_what_is_no_json_in_a_carried_list_is_refused_at_its_place() -> None:
    given, rows = {"rows": carried()}, carried()
    rows[3]["gone"] = float("nan")
    with pytest.raises(NotJson, match=r"rows\.3\.gone"):
        to_plain_reply({"rows": rows}, given)
    with pytest.raises(NotJson, match=r"rows\.70"):
        to_plain_reply({"rows": [*carried(), float("nan")]}, given)


@pytest.mark.parametrize(
    "value", [{"rows": ["é"] * 5000}, ["\U0001f600" * 9] * 5000, "x", {}, [1] * 9]
)
def test_an_excerpt_is_the_beginning_of_the_json(value: object) -> None:
    assert excerpt_of_json(value, 200) == orjson.dumps(value).decode()[:200]
