"""Named tuples whose constructors share their code."""

from __future__ import annotations

import inspect

import pytest

from cogcli.base.named_tuple import NamedTuple


class Point(NamedTuple):
    x: int
    y: int = 2


class Name(NamedTuple):
    given: str
    family: str


def test_two_classes_with_as_many_members_keep_their_own_names() -> None:
    assert Point(1) == (1, 2)
    assert Name(family="Noether", given="Emmy") == ("Emmy", "Noether")
    assert list(inspect.signature(Point.__new__).parameters) == ["_cls", "x", "y"]
    assert Name.__new__.__qualname__ == "Name.__new__"


@pytest.mark.parametrize("members", [{"given": "Emmy"}, {"given": "Emmy", "family": "N", "x": 1}])
def test_missing_and_unknown_members_are_refused(members: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"^Name\.__new__\(\)"):
        Name(**members)
