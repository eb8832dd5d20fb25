from __future__ import annotations

import copy
from typing import Any

import pytest
from fakes.states import whole

from cogcli.base.errors import OutputMappingError
from cogcli.base.refs import READ_ONLY, WORKING_SLOTS, WRITABLE, parse_target
from cogcli.state.execution import ExecutionState, OutputState, WorkingState
from cogcli.state.outputs import LoopWrites, compile_output, writes_of
from cogcli.state.reducer import write_value


def state(**blocks: Any) -> ExecutionState:
    made = ExecutionState("run_1", "t", "test.main")
    vars(made).update(blocks)
    return made


def mapped(
    run: ExecutionState,
    mapping: dict[str, str],
    produced: dict[str, Any],
    strategy: str = "overwrite",
    declared: str | None = None,
) -> list[str]:
    """Write what was produced, as a finished step does; gives the targets written."""
    names = declared.split() if declared is not None else list(produced)
    rules = compile_output(mapping, strategy, names)
    before = copy.deepcopy(whole(run))
    try:
        writes = writes_of(rules, produced, run)
    finally:
        assert whole(run) == before, "computing writes must not write"
    for write in writes:
        write_value(run, write.target, write.strategy, copy.deepcopy(write.value))
    return [write.target.text for write in writes]


def refused(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(OutputMappingError) as caught:
        mapped(*args, **kwargs)
    return caught.value.code


@pytest.mark.parametrize("namespace", READ_ONLY)
def test_read_only_namespaces_are_no_targets(namespace: str) -> None:
    assert parse_target(f"{namespace}.x") is None
    assert refused(state(), {"y": f"{namespace}.x"}, {"y": 1}) == "output.path"


def test_five_namespaces_are_writable() -> None:
    assert WRITABLE == ("vars", "outputs", "working", "output", "extensions")


def test_vars_and_outputs_take_the_rest_as_one_flat_key() -> None:
    run = state()
    mapped(run, {"y": "vars.a.b", "z": "outputs.c.d"}, {"y": 1, "z": 2})
    assert (run.vars, run.outputs) == ({"a.b": 1}, {"c.d": 2})


def test_intermediate_dicts_are_created_below_slots_and_extensions() -> None:
    run = state()
    mapped(
        run,
        {"a": "working.artifacts.x.y", "b": "output.result.p.q", "c": "extensions.e.f"},
        {"a": 1, "b": 2, "c": 3},
    )
    assert run.working.artifacts == {"x": {"y": 1}}
    assert run.output.result == {"p": {"q": 2}}
    assert run.extensions == {"e": {"f": 3}}


@pytest.mark.parametrize(
    ("blocks", "target"),
    [
        ({"working": WorkingState(artifacts={"x": 5})}, "working.artifacts.x.y"),
        ({"working": WorkingState(artifacts={"x": None})}, "working.artifacts.x.y"),
        ({"output": OutputState(result="text")}, "output.result.y"),
        ({"extensions": {"p": [1]}}, "extensions.p.0"),
        ({}, "working.entities.x"),
    ],
)
def test_writing_through_what_is_no_dict_is_refused(blocks: dict[str, Any], target: str) -> None:
    assert refused(state(**blocks), {"y": target}, {"y": 1}) == "output.path"


def test_nothing_is_written_below_a_text_field_of_output() -> None:
    assert refused(state(), {"y": "output.summary.x"}, {"y": "text"}) == "output.slot-type"


@pytest.mark.parametrize("slot", sorted(set(WORKING_SLOTS) - {"artifacts"}))
@pytest.mark.parametrize("value", [{}, "x", None, [1], [{}, "x"], [[{}]]])
def test_nine_slots_hold_lists_of_objects(slot: str, value: Any) -> None:
    assert refused(state(), {"y": f"working.{slot}"}, {"y": value}) == "output.slot-type"


def test_artifacts_hold_an_object_and_output_fields_text_or_null() -> None:
    assert refused(state(), {"y": "working.artifacts"}, {"y": []}) == "output.slot-type"
    for name in ("result_type", "summary", "status_reason"):
        assert refused(state(), {"y": f"output.{name}"}, {"y": 3}) == "output.slot-type"
        mapped(state(), {"y": f"output.{name}"}, {"y": None})
    for value in (1, None, [], {"a": 1}):
        run = state()
        mapped(run, {"y": "output.result"}, {"y": value})
        assert run.output.result == value


STRATEGIES: list[tuple[str, Any, Any, Any]] = [
    ("overwrite", ..., 1, 1),
    ("overwrite", {"a": 1}, [2], [2]),
    ("replace", ..., 1, 1),
    ("replace", [1], {"b": 2}, {"b": 2}),
    ("append", ..., [1], [1]),
    ("append", [1], [2, 3], [1, 2, 3]),
    ("append", [1], [], [1]),
    ("append", ..., {"a": 1}, "output.merge"),
    ("append", ..., None, "output.merge"),
    ("append", [1], "x", "output.merge"),
    ("append", {"a": 1}, [1], "output.merge"),
    ("append", None, [1], "output.merge"),
    ("deep_merge", ..., {"a": 1}, {"a": 1}),
    (
        "deep_merge",
        {"a": {"b": 1}, "c": [1]},
        {"a": {"d": 2}, "c": [2]},
        {"a": {"b": 1, "d": 2}, "c": [2]},
    ),
    ("deep_merge", {"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ("deep_merge", {"a": {"b": 1}}, {"a": None}, {"a": None}),
    ("deep_merge", {"a": 1}, {}, {"a": 1}),
    ("deep_merge", ..., [1], [1]),
    ("deep_merge", [1], {"a": 1}, {"a": 1}),
    ("deep_merge", {"a": 1}, "x", "x"),
]


@pytest.mark.parametrize(
    "target", ["vars.t", "outputs.t", "working.artifacts.t", "extensions.t", "output.result"]
)
@pytest.mark.parametrize(("strategy", "present", "value", "after"), STRATEGIES)
def test_four_strategies_with_target_absent_and_present(
    target: str, strategy: str, present: Any, value: Any, after: Any
) -> None:
    run = state()
    if present is not ...:
        mapped(run, {"y": target}, {"y": copy.deepcopy(present)}, "replace")
    if present is None and target == "output.result":
        return  # a null there is how an unset field looks
    if after == "output.merge":
        assert refused(run, {"y": target}, {"y": value}, strategy) == after
        return
    mapped(run, {"y": target}, {"y": value}, strategy)
    namespace, *path = target.split(".")
    found: Any = getattr(run, namespace)
    for name in path:
        found = found[name] if isinstance(found, dict) else getattr(found, name)
    assert found == after


def test_append_to_a_slot_adds_to_what_is_there() -> None:
    run = state(working=WorkingState(risks=[{"n": 1}]))
    mapped(run, {"y": "working.risks"}, {"y": [{"n": 2}]}, "append")
    assert run.working.risks == [{"n": 1}, {"n": 2}]


def test_replace_allows_duplicates_and_the_last_in_mapping_order_wins() -> None:
    run = state()
    mapped(run, {"a": "vars.t", "b": "vars.t"}, {"b": 2, "a": 1}, "replace")
    assert run.vars == {"t": 2}


def test_all_or_none_of_a_mapping_is_written() -> None:
    run = state(vars={"n": 5})
    assert (
        refused(run, {"a": "vars.ok", "b": "vars.n"}, {"a": [1], "b": [1]}, "append")
        == "output.merge"
    )
    assert run.vars == {"n": 5}


@pytest.mark.parametrize(
    ("strategy", "mapping", "produced"),
    [
        (
            "replace",
            {"a": "working.artifacts.x", "b": "working.artifacts.x.y.z"},
            {"a": {"y": 5}, "b": 1},
        ),
        ("append", {"a": "extensions.a.b", "b": "extensions.a"}, {"a": [1], "b": [1]}),
        ("append", {"a": "vars.x", "b": "vars.x"}, {"a": [], "b": {}}),
    ],
)
def test_writes_of_one_mapping_see_the_earlier_ones(
    strategy: str, mapping: dict[str, str], produced: dict[str, Any]
) -> None:
    assert refused(state(), mapping, produced, strategy) in ("output.merge", "output.path")


def test_same_target_twice_appends_twice() -> None:
    run = state(vars={"l": [0]})
    mapped(run, {"a": "vars.l", "b": "vars.l"}, {"a": [1], "b": [2]}, "append")
    assert run.vars == {"l": [0, 1, 2]}


def test_left_side_is_a_key_as_a_whole_then_a_path() -> None:
    run = state()
    mapped(
        run, {"a.b": "vars.flat", "a.l.1": "vars.walked"}, {"a.b": 1, "a": {"b": 2, "l": [3, 4]}}
    )
    assert run.vars == {"flat": 1, "walked": 4}


def test_absent_optional_output_writes_nothing() -> None:
    run = state()
    assert mapped(
        run, {"a": "vars.a", "b": "vars.b", "b.c": "vars.c"}, {"a": 1}, declared="a b"
    ) == ["vars.a"]
    assert run.vars == {"a": 1}


@pytest.mark.parametrize("value", [{"x": 1}, None, "text", []])
def test_path_missing_inside_a_present_value_is_an_error(value: Any) -> None:
    assert refused(state(), {"a.b.c": "vars.t"}, {"a": value}) == "output.missing"


def test_left_reference_copies_from_inputs_vars_and_outputs() -> None:
    run = state(inputs={"x": [1]}, vars={"v": 2}, outputs={"o": 3})
    mapped(
        run, {"inputs.x": "vars.l", "vars.v": "vars.w", "outputs.o": "outputs.p"}, {}, declared="y"
    )
    assert (run.vars, run.outputs) == ({"v": 2, "l": [1], "w": 2}, {"o": 3, "p": 3})


def test_declared_output_comes_before_a_reference_of_the_same_name() -> None:
    run = state(vars={"x": "state"})
    mapped(run, {"vars.x": "outputs.a"}, {"vars": {"x": "produced"}})
    assert run.outputs == {"a": "produced"}


def test_copying_what_is_not_there_is_an_output_error() -> None:
    assert refused(state(), {"vars.gone": "outputs.a"}, {}, declared="y") == "output.missing"


def test_appending_to_a_copy_leaves_the_original_alone() -> None:
    run = state(inputs={"x": [1]})
    mapped(run, {"inputs.x": "vars.l"}, {}, declared="y")
    mapped(run, {"y": "vars.l"}, {"y": [2]}, "append")
    assert (run.inputs, run.vars) == ({"x": [1]}, {"l": [1, 2]})


def test_written_values_share_no_object_that_a_write_can_change() -> None:
    run = state()
    produced = {"y": {"a": {"b": 1}, "l": [1]}}
    rules = compile_output({"y": "vars.t"}, "overwrite", ["y"])
    (write,) = writes_of(rules, produced, run)
    produced["y"]["a"]["b"] = 2
    produced["y"]["l"].append(2)
    assert write.value == {"a": {"b": 1}, "l": [1]}


def test_written_lists_share_their_elements() -> None:
    run = state()
    produced = {"y": [{"a": 1}]}
    rules = compile_output({"y": "vars.t"}, "overwrite", ["y"])
    (write,) = writes_of(rules, produced, run)
    assert write.value[0] is produced["y"][0]


def test_a_loop_keeps_no_write_that_a_later_round_replaces() -> None:
    rules = compile_output({"y": "vars.t", "z": "vars.u"}, {"vars.u": "append"}, ["y", "z"])
    writes = LoopWrites()
    for number in range(3):
        for write in writes_of(rules, {"y": number, "z": [number]}, state()):
            writes.add(write)
    kept = [(write.target.text, write.value) for write in writes.to_list()]
    assert kept == [("vars.u", [0]), ("vars.u", [1]), ("vars.t", 2), ("vars.u", [2])]


def test_a_loop_keeps_all_writes_of_targets_that_contain_each_other() -> None:
    mapping = {"y": "extensions.t", "z": "extensions.t.u"}
    rules = compile_output(mapping, "overwrite", ["y", "z"])
    run, writes = state(), LoopWrites()
    for number in range(2):
        for write in writes_of(rules, {"y": {"n": number}, "z": number}, run):
            writes.add(write)
    for write in writes.to_list():
        write_value(run, write.target, write.strategy, write.value)
    assert run.extensions == {"t": {"n": 1, "u": 1}}
    assert len(writes.to_list()) == 4
