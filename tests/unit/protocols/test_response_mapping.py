from __future__ import annotations

from typing import Any

import pytest

from cogcli.base.errors import ResponseMappingError
from cogcli.protocols.live.response import ResponseMapping
from cogcli.specs.fields import fields_from

BODY: dict[str, Any] = {"a": {"b": [{"c": 1}, None]}, "n": 3.0, "null": None}


def outputs(response: dict[str, Any], body: Any = BODY, **fields: Any) -> dict[str, Any]:
    declared = {name: {"type": "any", **fields.get(name, {})} for name in response}
    return ResponseMapping(response, fields_from(declared)).map_body(body)


def refused(response: dict[str, Any], body: Any = BODY, **fields: Any) -> ResponseMappingError:
    with pytest.raises(ResponseMappingError) as caught:
        outputs(response, body, **fields)
    assert caught.value.left is True
    return caught.value


def test_paths_walk_the_body_and_response_is_all_of_it() -> None:
    assert outputs({"x": "response.a.b.0.c", "y": "response", "z": "response.null"}) == {
        "x": 1,
        "y": BODY,
        "z": None,
    }


def test_a_body_of_any_type_can_be_mapped() -> None:
    assert outputs({"x": "response"}, [1, 2]) == {"x": [1, 2]}
    assert outputs({"x": "response.1"}, [1, 2]) == {"x": 2}


def test_other_values_are_literal() -> None:
    assert outputs({"x": "plain", "y": 5, "z": {"k": "response.a"}, "w": "responses.a"}) == {
        "x": "plain", "y": 5, "z": {"k": "response.a"}, "w": "responses.a",
    }  # fmt: skip


@pytest.mark.parametrize(
    "path", ["response.gone", "response.a.b.5", "response.n.x", "response.null.x"]
)
def test_a_missing_path_fails_for_a_required_output_only(path: str) -> None:
    assert outputs({"x": path}) == {}
    error = refused({"x": path}, x={"required": True})
    assert error.code == "response.missing"
    assert outputs({"x": path}, x={"required": True, "default": 7}) == {"x": 7}


def test_the_error_says_how_far_the_path_led() -> None:
    error = refused({"x": "response.a.bb"}, x={"required": True})
    assert "`response.a` holds b" in error.message
    assert error.hint == "did you mean `response.a.b`?"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("response.sumary.text", "response.summary.text"),
        ("response.result.text", "response.summary.text"),
        ("response.price", "response.data.price"),
        ("response.data.prise", "response.data.price"),
        ("response.summary.price", "response.data.price"),
        ("response.item.price.net", ""),
        ("response.data.price.net", ""),
        ("response.nowhere", ""),
    ],
)
def test_a_hint_names_a_path_that_leads_somewhere(path: str, meant: str) -> None:
    body = {
        "summary": {"text": "x"},
        "data": {"price": 5, "a b": {"key": 1}},
        "list": [{"nowhere": 1}],
    }
    with pytest.raises(ResponseMappingError) as caught:
        ResponseMapping(
            {"x": path}, fields_from({"x": {"type": "any", "required": True}})
        ).map_body(body)
    assert caught.value.hint == (f"did you mean `{meant}`?" if meant else "")


def test_null_for_a_required_output_is_missing_unless_any() -> None:
    assert (
        refused({"x": "response.null"}, x={"type": "string", "required": True}).code
        == "response.missing"
    )
    assert outputs({"x": "response.null"}, x={"required": True}) == {"x": None}


def test_outputs_are_checked_and_normalised() -> None:
    assert outputs({"x": "response.n"}, x={"type": "integer"}) == {"x": 3}
    error = refused({"x": "response.a"}, x={"type": "string"})
    assert (error.code, error.message) == (
        "response.type",
        "output `x`: expected string, found object",
    )


def test_outputs_share_nothing_with_the_body_or_the_binding() -> None:
    literal = {"k": [1]}
    result = outputs({"x": "response.a", "y": literal})
    result["x"]["b"].clear()
    result["y"]["k"].clear()
    assert BODY["a"]["b"] == [{"c": 1}, None]
    assert literal == {"k": [1]}
