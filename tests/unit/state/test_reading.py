from __future__ import annotations

from typing import Any

import pytest

from cogcli.base.errors import ExpressionError, InputMappingError, ReferenceResolutionError
from cogcli.base.refs import parse
from cogcli.state.execution import ExecutionState, FrameState, OutputState, WorkingState
from cogcli.state.expressions import compile_expression, value_of
from cogcli.state.inputs import Scope, compile_input, resolve_input
from cogcli.state.namespaces import read_reference


def state(**blocks: Any) -> ExecutionState:
    made = ExecutionState("run_1", "t", "test.main")
    vars(made).update(blocks)
    return made


def given(text: str, **blocks: Any) -> Any:
    reference = parse(text)
    assert reference is not None
    return read_reference(state(**blocks), reference)


@pytest.mark.parametrize("namespace", ["inputs", "frame", "output", "extensions"])
def test_missing_is_null_in_permissive_namespaces(namespace: str) -> None:
    assert given(f"{namespace}.nothing.at.all") is None


@pytest.mark.parametrize("namespace", ["vars", "outputs", "working"])
def test_missing_is_an_error_in_strict_namespaces(namespace: str) -> None:
    with pytest.raises(ReferenceResolutionError) as caught:
        given(f"{namespace}.nothing")
    assert caught.value.code == "input.reference"
    assert "`nothing`" in caught.value.message


def test_error_names_failing_segment_and_keys_present() -> None:
    with pytest.raises(ReferenceResolutionError) as caught:
        given("vars.a.b.c", vars={"a": {"x": 1, "y": 2}})
    assert caught.value.message == "`vars.a.b.c`: no `b`, present: x, y"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("vars.order.skuu", "did you mean `vars.order.sku`?"),
        ("vars.ordr.sku.x", "did you mean `vars.order.sku.x`?"),
        ("vars.order.sku.x", ""),
        ("working.artifacts.plann", "did you mean `working.artifacts.plan`?"),
    ],
)
def test_the_error_proposes_a_whole_reference(text: str, hint: str) -> None:
    working = WorkingState(artifacts={"plan": 1})
    with pytest.raises(ReferenceResolutionError) as caught:
        given(text, vars={"order": {"sku": "a"}}, working=working)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "len(vars.ordr.sku) > 1",
            "did you mean `vars.order.sku`? Else compare with `is null` first",
        ),
        ("item.skuu == 1", "did you mean `item.sku`? Else compare with `is null` first"),
        ("vars.nothing or vars.zzz", "compare with `is null` first"),
    ],
)
def test_a_missing_path_of_an_expression_proposes_one_that_is_there(text: str, hint: str) -> None:
    names = frozenset(("item",))
    scope = Scope(state(vars={"order": {"sku": "a"}}), {"item": {"sku": 1}})
    with pytest.raises(ExpressionError) as caught:
        value_of(compile_expression(text, names), scope, {}, {})
    assert caught.value.hint == hint


@pytest.mark.parametrize("namespace", ["inputs", "vars", "outputs"])
def test_whole_path_as_one_key_comes_before_walking(namespace: str) -> None:
    block = {namespace: {"a.b": "flat", "a": {"b": "walked", "c": 3}}}
    assert given(f"{namespace}.a.b", **block) == "flat"
    assert given(f"{namespace}.a.c", **block) == 3


@pytest.mark.parametrize("namespace", ["vars", "outputs"])
def test_lists_are_not_walked_where_only_dicts_are(namespace: str) -> None:
    with pytest.raises(ReferenceResolutionError) as caught:
        given(f"{namespace}.l.0", **{namespace: {"l": ["first"]}})
    assert "lists are not walked" in caught.value.message


def test_inputs_do_not_walk_lists_and_missing_is_null() -> None:
    assert given("inputs.l.0", inputs={"l": ["first"]}) is None


def test_frame_is_walked_through_attributes_dicts_and_lists() -> None:
    frame = FrameState(goal="g", constraints={"budget": [10, {"max": 5}]}, assumptions=("a", "b"))
    assert given("frame.goal", frame=frame) == "g"
    assert given("frame.constraints.budget.1.max", frame=frame) == 5
    assert given("frame.assumptions.1", frame=frame) == "b"
    assert given("frame.nonsense", frame=frame) is None


def test_working_is_walked_through_slots_dicts_and_lists() -> None:
    working = WorkingState(entities=[{"name": "n"}], artifacts={"0": "key", "d": {"1": "x"}})
    assert given("working.entities.0.name", working=working) == "n"
    assert given("working.artifacts.0", working=working) == "key"
    assert given("working.artifacts.d.1", working=working) == "x"


def test_output_and_extensions_are_walked_through_lists() -> None:
    assert given("output.result.0.a", output=OutputState(result=[{"a": 1}])) == 1
    assert given("extensions.p.0", extensions={"p": ["x"]}) == "x"
    assert given("extensions.a.b", extensions={"a.b": "flat keys are no keys here"}) is None


@pytest.mark.parametrize("segment", ["2", "9" * 20, "9" * 5000, "-1", "x"])
def test_past_the_end_of_a_list_is_missing(segment: str) -> None:
    reference = parse(f"working.entities.{segment}") if segment != "-1" else None
    if reference is not None:
        with pytest.raises(ReferenceResolutionError):
            read_reference(state(working=WorkingState(entities=[{}, {}])), reference)


def test_present_null_is_a_value_and_walking_into_it_is_missing() -> None:
    assert given("vars.n", vars={"n": None}) is None
    with pytest.raises(ReferenceResolutionError):
        given("vars.n.x", vars={"n": None})
    with pytest.raises(ReferenceResolutionError):
        given("vars.s.x", vars={"s": "scalar"})


@pytest.mark.parametrize(
    "text",
    [
        "inputs", "inputs.", "inputs..a", " inputs.a", "inputs.a ", "inputs.a\n", "Inputs.a", "trace.steps", "state.a",
        "inputs.-a", "inputs.a b", "see inputs.a", "vars." + ".".join("a" * 17), "${inputs.a}", "item.x",
    ],
)  # fmt: skip
def test_other_texts_are_literal(text: str) -> None:
    assert parse(text) is None
    assert resolve_input(compile_input(text), Scope(state(inputs={"a": 1})), {}) == text


def test_sixteen_segments_are_a_reference() -> None:
    assert parse("vars." + ".".join("a" * 16)) is not None


def test_input_is_resolved_recursively_but_never_in_keys_and_never_twice() -> None:
    mapping = {"a": ["inputs.x", {"inputs.x": "inputs.y"}], "b": 3, "c": None}
    reads: dict[str, None] = {}
    values = resolve_input(
        compile_input(mapping), Scope(state(inputs={"x": "inputs.y", "y": [1]})), reads
    )
    assert values == {"a": ["inputs.y", {"inputs.x": [1]}], "b": 3, "c": None}
    assert list(reads) == ["inputs.x", "inputs.y"]


def test_literal_gives_its_value_verbatim() -> None:
    value = {"$literal": {"$literal": "inputs.x", "l": ["inputs.x"]}}
    assert resolve_input(compile_input(value), Scope(state()), {}) == {
        "$literal": "inputs.x",
        "l": ["inputs.x"],
    }
    mixed = {"$literal": "inputs.x", "other": 1}
    assert resolve_input(compile_input(mixed), Scope(state(inputs={"x": 2})), {}) == {
        "$literal": 2,
        "other": 1,
    }


def test_reads_are_in_order_without_repeats() -> None:
    reads: dict[str, None] = {}
    resolve_input(
        compile_input({"a": "inputs.b", "c": "inputs.a", "d": "inputs.b"}), Scope(state()), reads
    )
    assert list(reads) == ["inputs.b", "inputs.a"]


def test_resolved_values_share_no_object_that_a_write_can_change() -> None:
    run = state(inputs={"l": [1], "o": {"p": {"q": 1}}})
    literal = {"$literal": [2]}
    give = compile_input({"a": "inputs.l", "b": literal, "c": [1], "d": "inputs.o"})
    values = resolve_input(give, Scope(run), {})
    values["a"].append(9)
    values["b"].append(9)
    values["c"].append(9)
    values["d"]["p"]["q"] = 9
    assert run.inputs == {"l": [1], "o": {"p": {"q": 1}}}
    assert literal == {"$literal": [2]}
    assert resolve_input(give, Scope(run), {})["c"] == [1]


def test_assumptions_are_given_as_a_list() -> None:
    values = resolve_input(
        compile_input({"a": "frame.assumptions"}),
        Scope(state(frame=FrameState(assumptions=("x",)))),
        {},
    )
    assert values == {"a": ["x"]}
    assert type(values["a"]) is list


def test_failing_reference_is_an_input_mapping_error_with_its_cause() -> None:
    with pytest.raises(InputMappingError) as caught:
        resolve_input(compile_input({"a": "vars.gone"}), Scope(state()), {})
    assert caught.value.code == "input.reference"
    assert isinstance(caught.value.__cause__, ReferenceResolutionError)


def test_loop_names_are_references_and_missing_is_an_error() -> None:
    give = compile_input({"a": "item", "b": "item.l.0", "c": "items.x"}, frozenset({"item"}))
    assert resolve_input(give, Scope(state(), {"item": {"l": [7]}}), {}) == {
        "a": {"l": [7]},
        "b": 7,
        "c": "items.x",
    }
    with pytest.raises(InputMappingError):
        resolve_input(give, Scope(state(), {"item": {}}), {})
