"""What is derived from the fields of a record."""

from __future__ import annotations

from typing import ClassVar

import pytest

from cogcli.declarations import record
from cogcli.declarations.field import ABSENT, always, fields_of
from cogcli.declarations.record import Record


class Point(Record):
    x: int
    y: int = 0


class Shape(Record):
    kind: ClassVar[str] = "shape"
    name: str
    corners: list[Point] = []  # noqa: RUF012
    center: Point | None = None
    tags: dict[str, str] = always(default={})
    color: str | None = ABSENT


class Square(Shape):
    side: int = 1
    name: str = "square"


def test_a_field_is_an_annotated_name_and_a_class_variable_is_none() -> None:
    assert [field.name for field in fields_of(Shape)] == [
        "name",
        "corners",
        "center",
        "tags",
        "color",
    ]


def test_an_inherited_field_with_another_default_keeps_its_place() -> None:
    assert [field.name for field in fields_of(Square)] == [
        "name", "corners", "center", "tags", "color", "side",
    ]  # fmt: skip
    assert Square().name == "square"


def test_only_what_differs_from_its_default_is_written_unless_it_always_is() -> None:
    assert Shape(name="a").json == {"name": "a", "tags": {}}
    assert Shape(name="a", color=None).json == {"name": "a", "tags": {}, "color": None}
    assert Square(side=1, name="a").json == {"name": "a", "tags": {}}


def test_records_within_a_record_are_written_as_json() -> None:
    shape = Shape(name="a", corners=[Point(x=1), Point(x=2, y=3)], center=Point(x=0))
    assert shape.json == {
        "name": "a",
        "corners": [{"x": 1}, {"x": 2, "y": 3}],
        "center": {"x": 0},
        "tags": {},
    }


def test_an_empty_default_is_made_anew_for_each_value() -> None:
    first, second = Shape(name="a"), Shape(name="b")
    first.tags["a"] = "b"
    first.corners.append(Point(x=1))
    assert (second.tags, Shape(name="c").tags, second.corners) == ({}, {}, [])


def test_attributes_are_read_from_json() -> None:
    shape = Shape.of({"name": "a", "corners": [{"x": 1}], "center": {"x": 2, "y": 3}, "more": 1})
    assert (shape.name, shape.corners, shape.center) == ("a", [Point(x=1)], Point(x=2, y=3))
    assert (shape.tags, shape.color, Shape.of({"name": "a"}).center) == ({}, ABSENT, None)
    with pytest.raises(AttributeError, match="Shape has no `name`"):
        _ = Shape.of({}).name


def test_a_value_is_frozen() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError, match="Point is frozen"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.z = 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("members", [{}, {"x": 1, "z": 2}])
def test_a_missing_or_an_unknown_member_is_a_type_error(members: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Point(**members)  # type: ignore[arg-type]


def test_values_are_equal_where_class_and_members_are() -> None:
    class Other(Record):
        x: int
        y: int = 0

    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(x=1))


def test_a_copy_has_the_other_values() -> None:
    assert Point(x=1, y=2).replace(x=3) == Point(x=3, y=2)
    with pytest.raises(TypeError):
        Point(x=1).replace(z=3)


def test_a_value_is_shown_by_its_given_members() -> None:
    assert repr(Shape(name="a")) == "Shape.of({'name': 'a', 'tags': {}})"


def test_nothing_is_compiled_before_the_first_value() -> None:
    class Unused(Record):
        a: int

    assert Unused.__init__ is record._first_init
    Unused(a=1)
    assert Unused.__init__ is not record._first_init


def test_a_subclass_of_a_used_class_has_its_own_constructor() -> None:
    assert Point(x=1).y == 0

    class Spot(Point):
        z: int = always(default=5)

    assert Spot(x=1).json == {"x": 1, "z": 5}


def test_a_dictionary_may_hold_records() -> None:
    class Board(Record):
        points: dict[str, Point] = always(default={})

    board = Board(points={"a": Point(x=1), "b": Point(x=2, y=3)})
    assert board.json == {"points": {"a": {"x": 1}, "b": {"x": 2, "y": 3}}}
    assert Board.of(board.json).points == {"a": Point(x=1), "b": Point(x=2, y=3)}
    assert Board().points == {}
