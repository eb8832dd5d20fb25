from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.errors import RequestMappingError
from cogcli.protocols.live.request import TemplateContext, compile_template

GIVEN: dict[str, Any] = {
    "s": "text", "n": 1.5, "i": 3, "b": True, "null": None, "o": {"a": {"b": [1, "two"]}}, "l": [[1], {"k": "v"}],
    "trick": "${input.s}", "ref": "input.s",
}  # fmt: skip


def payload(request: dict[str, Any], given: dict[str, Any] = GIVEN) -> Any:
    return compile_template(request)(given)


@pytest.mark.parametrize("name", ["s", "n", "i", "b", "null", "o", "l"])
@pytest.mark.parametrize("shape", ["input.{}", "${{input.{}}}"])
def test_a_whole_value_keeps_its_type(name: str, shape: str) -> None:
    assert payload({"x": shape.format(name)}) == {"x": GIVEN[name]}


def test_paths_go_through_keys_and_indices() -> None:
    assert payload({"x": "input.o.a.b.1", "y": "${input.l.1.k}", "z": "input.l.0"}) == {
        "x": "two",
        "y": "v",
        "z": [1],
    }


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("a ${input.s} b", "a text b"),
        ("${input.s}${input.i}", "text3"),
        ("n=${input.n} b=${input.b} z=${input.null}", "n=1.5 b=true z=null"),
        ("o=${input.o} l=${input.l.0}", 'o={"a":{"b":[1,"two"]}} l=[1]'),
        ("${input.gone:-none}", "none"),
        ("${input.gone:-}", ""),
        ("x${input.o.gone:-d}y", "xdy"),
        ("${input.s:-d}", "text"),
        ("${input.i:-d}", "3"),
        ("$${input.s}", "${input.s}"),
        ("a $${ b ${input.i}", "a ${ b 3"),
        ("costs 5$", "costs 5$"),
        ("see input.s there", "see input.s there"),
        ("öä ${input.s} €", "öä text €"),
        ("", ""),
    ],
)
def test_embedded_values_make_text(template: str, text: str) -> None:
    assert payload({"x": template}) == {"x": text}


def test_keys_are_never_resolved_and_other_values_are_literal() -> None:
    request = {"input.s": 1, "x": None, "y": [True, 2.5, {"${input.s}": "input.s"}]}
    assert payload(request) == {"input.s": 1, "x": None, "y": [True, 2.5, {"${input.s}": "text"}]}


def test_nothing_is_expanded_twice() -> None:
    assert payload({"x": "input.trick", "y": "a ${input.trick}", "z": "input.ref"}) == {
        "x": "${input.s}", "y": "a ${input.s}", "z": "input.s",
    }  # fmt: skip


def test_literal_is_verbatim() -> None:
    literal = {"$literal": {"a": "input.s", "b": ["${input.s}"]}}
    assert payload({"x": literal}) == {"x": {"a": "input.s", "b": ["${input.s}"]}}


def test_an_absent_optional_drops_its_key_or_element_at_any_depth() -> None:
    request = {
        "a": "input.gone",
        "b": "${input.gone.deeper}",
        "c": {"d": "input.gone", "e": [1, "input.gone", {"f": "input.gone"}]},
        "g": "input.s",
    }
    assert payload(request) == {"c": {"e": [1, {}]}, "g": "text"}


@pytest.mark.parametrize(
    "value", ["input.o.gone", "input.l.7", "input.s.x", "${input.null.x}", "input.l.x"]
)
def test_a_path_missing_inside_a_present_value_is_an_error(value: str) -> None:
    with pytest.raises(RequestMappingError) as caught:
        payload({"x": value})
    assert (caught.value.code, caught.value.left) == ("request.missing", False)


@pytest.mark.parametrize("value", ["a ${input.o.gone}", "${input.null.x}b", "a ${input.l.7}"])
def test_a_path_missing_inside_a_present_value_is_an_error_in_text_too(value: str) -> None:
    with pytest.raises(RequestMappingError) as caught:
        payload({"x": value})
    assert caught.value.code == "request.missing"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("a ${input.gone}", "a "),
        ("${input.gone} b", " b"),
        ("${input.gone}${input.gone.deeper}", ""),
        ("<${input.s} ${input.gone}>", "<text >"),
    ],
)
def test_an_absent_optional_leaves_nothing_inside_a_text(template: str, text: str) -> None:
    assert payload({"x": template, "y": [template], "z": {"k": template}}) == {
        "x": text,
        "y": [text],
        "z": {"k": text},
    }


@pytest.mark.parametrize("value", ["a ${input.gone}", ["x", "${input.gone}b"]])
def test_a_text_of_a_path_lacks_nothing(value: Any) -> None:
    template = compile_template(
        {"id": value, "q": "a ${input.gone}"}, context=TemplateContext(path_keys={"id"})
    )
    with pytest.raises(
        RequestMappingError, match=r"`input\.gone` is missing .* another path"
    ) as caught:
        template(GIVEN)
    assert (caught.value.code, caught.value.left, caught.value.place[:2]) == (
        "request.missing",
        False,
        ("request", "id"),
    )
    assert template(GIVEN | {"gone": 1})["q"] == "a 1"


def test_payloads_share_nothing_with_input_or_request() -> None:
    request = {"x": "input.o", "y": {"$literal": [[1]]}, "z": [[2]]}
    kept_request, kept_given = copy.deepcopy(request), copy.deepcopy(GIVEN)
    template = compile_template(request)
    first = template(GIVEN)
    first["x"]["a"]["b"].append(9)
    first["y"][0].append(9)
    first["z"][0].append(9)
    assert (request, GIVEN) == (kept_request, kept_given)
    assert template(GIVEN) == {"x": GIVEN["o"], "y": [[1]], "z": [[2]]}


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("${}input.s:-", max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(JSON)
def test_values_pass_through_whatever_they_look_like(value: Any) -> None:
    assert payload({"x": "input.v"}, {"v": value}) == {"x": value}
    if isinstance(value, str):
        assert payload({"x": "<${input.v}>"}, {"v": value}) == {"x": f"<{value}>"}


def test_a_star_takes_a_member_of_each_element_and_a_text_as_it_is() -> None:
    given = {"labels": [{"label": "late", "keywords": ["delay"]}, "early", {"label": "lost"}]}
    assert compile_template("input.labels.*.label")(given) == ["late", "early", "lost"]
    assert compile_template({"a": "input.labels.*.label"})({}) == {}
    for labels in ([{"name": "late"}], {"label": "late"}, [3]):
        with pytest.raises(RequestMappingError) as caught:
            compile_template("input.labels.*.label")({"labels": labels})
        assert caught.value.code == "request.missing"
