"""Where the parts of an expression stand in its text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.expressions import ExpressionFault, _SourceText, read_expression

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("inputs.a == vars.b", ["inputs.a", "vars.b"]),
        ("inputs.a.0.b == vars.c.1.2 and vars.d", ["inputs.a.0.b", "vars.c.1.2", "vars.d"]),
        ("  'é' == vars.x", ["vars.x"]),
        ("inputs.rows[0]['k'] in [vars.a, vars.a]", ["inputs.rows[0]['k']", "vars.a", "vars.a"]),
    ],
)
def test_every_reference_is_known_with_its_place(text: str, found: list[str]) -> None:
    mentions = read_expression(text, NONE).mentions
    assert [
        text[mention.offset :].startswith(part)
        for mention, part in zip(mentions, found, strict=True)
    ] == [True] * len(found)


def test_a_mention_tells_whether_absence_counts_as_null() -> None:
    text = "vars.a is null or vars.b == null or not vars.c or vars.d == 1 or vars.e or vars.f"
    lenient = [m.reference.text for m in read_expression(text, NONE).mentions if m.lenient]
    assert lenient == ["vars.a", "vars.b", "vars.e"]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("inputs.a.0 == size(vars.b)", "size(vars.b)"),
        ("inputs.a and '&&' == inputs.b || 1", "|| 1"),
        ("inputs.a == foo", "foo"),
        ("inputs.a is 1", "1"),
        ("inputs.a = 1", "= 1"),
        ("'é' == (vars.a.0.1, 2)", "(vars.a.0.1, 2)"),
    ],
)
def test_a_fault_is_placed_in_the_text_as_written(text: str, rest: str) -> None:
    with pytest.raises(ExpressionFault) as raised:
        read_expression(text, NONE)
    assert text[raised.value.column - 1 :] == rest


def places(text: str) -> list[int]:
    """Where in the text its references stand, or the fault for which it is none."""
    try:
        return [mention.offset for mention in read_expression(text, NONE).mentions]
    except ExpressionFault as fault:
        return [fault.column - 1]


@given(st.text("inputs.vr0 1[]()='\"<>andotér\n", max_size=60))
def test_every_place_lies_in_the_text(text: str) -> None:
    assert all(0 <= place < max(len(text), 1) for place in places(text))


@given(
    st.lists(
        st.sampled_from(
            ["a", ".", "0", "1.5", "'x.1'", '"', "]", " ", "or", "é", "\n", "\r", "_", "("]
        )
    ).map("".join)
)
def test_a_text_without_positions_is_read_as_it_is_written(text: str) -> None:
    """What is not cut into tokens is what its tokens would give."""
    stripped = text.replace("\r", " ").strip()
    source = _SourceText(text)
    assert source.python == "".join(_SourceText("")._convert_pieces(stripped))
    if "." not in text:
        assert source.python == stripped
