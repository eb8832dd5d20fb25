from __future__ import annotations

import copy
from typing import Any

import pytest
from fakes.states import whole
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.errors import OutputMappingError
from cogcli.state.execution import ExecutionState, OutputState, WorkingState
from cogcli.state.inputs import Scope, resolve_input
from cogcli.state.inputs import compile_input as compiled_input
from cogcli.state.outputs import compile_output, writes_of
from cogcli.state.reducer import write_value

NAMES = st.sampled_from(["a", "b", "c"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "inputs.a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)
LISTS = st.lists(OBJECTS, max_size=2)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(".".join)
TARGETS = (
    st.builds(
        "{}.{}".format,
        st.sampled_from(["vars", "outputs", "extensions", "working.artifacts", "output.result"]),
        PATHS,
    )
    | st.sampled_from(["working.artifacts", "working.risks", "output.result", "output.summary"])
    | st.builds("output.summary.{}".format, NAMES)
)


def _state(
    inputs: Any, values: Any, extensions: Any, artifacts: Any, risks: Any, result: Any
) -> ExecutionState:
    made = ExecutionState("run_1", "t", "test.main", inputs=inputs)
    made.vars, made.extensions = values, extensions
    made.working = WorkingState(artifacts=artifacts, risks=risks)
    made.output = OutputState(result=result)
    return made


STATES = st.builds(_state, OBJECTS, OBJECTS, OBJECTS, OBJECTS, LISTS, JSON)
STRATEGIES = st.sampled_from(["overwrite", "append", "deep_merge", "replace"])


@pytest.mark.slow
@given(STATES, st.lists(st.tuples(TARGETS, JSON), max_size=5), STRATEGIES)
def test_what_writes_of_allows_can_be_applied_and_what_it_refuses_changes_nothing(
    run: ExecutionState, pairs: list[tuple[str, Any]], strategy: str
) -> None:
    produced = {f"o{n}": value for n, (_, value) in enumerate(pairs)}
    rules = compile_output(
        {f"o{n}": target for n, (target, _) in enumerate(pairs)}, strategy, produced
    )
    before = copy.deepcopy(whole(run))
    try:
        writes = writes_of(rules, produced, run)
    except OutputMappingError:
        writes = []
    assert whole(run) == before
    for write in writes:
        write_value(run, write.target, write.strategy, copy.deepcopy(write.value))
    slots = run.working
    assert type(slots.artifacts) is dict
    assert all(type(risk) is dict for risk in slots.risks)
    assert run.output.summary is None or type(run.output.summary) is str
    assert run.inputs == before["inputs"]


@pytest.mark.slow
@given(STATES, st.lists(JSON, max_size=3), st.lists(JSON, max_size=3))
def test_append_never_changes_the_callers_value(
    run: ExecutionState, first: list[Any], second: list[Any]
) -> None:
    run.inputs["x"] = copy.deepcopy(first)
    run.vars.pop("l", None)
    produced = {"y": copy.deepcopy(second)}
    for mapping, strategy in (({"inputs.x": "vars.l"}, "overwrite"), ({"y": "vars.l"}, "append")):
        for write in writes_of(compile_output(mapping, strategy, ["y"]), produced, run):
            write_value(run, write.target, write.strategy, write.value)
    run.vars["l"].append("later")
    assert run.inputs["x"] == first
    assert produced == {"y": second}
    assert run.vars["l"] == [*first, *second, "later"]


def mutate(value: Any) -> None:
    """Change everything in a value that a write to a state can change."""
    if isinstance(value, dict):
        for member in value.values():
            mutate(member)
        value["mutated"] = True
    elif isinstance(value, list):
        value.append("mutated")


@pytest.mark.slow
@given(
    STATES, st.recursive(TARGETS | JSON, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
)
def test_a_write_to_a_resolved_input_changes_nothing_else(
    run: ExecutionState, mapping: Any
) -> None:
    give = compiled_input(
        {"a": "inputs.a", "b": mapping, "c": "output.result", "d": "working.artifacts"}
    )
    before = copy.deepcopy(whole(run))
    try:
        values = resolve_input(give, Scope(run), {})
    except Exception:
        return
    kept = copy.deepcopy(values)
    mutate(values)
    assert whole(run) == before
    assert resolve_input(give, Scope(run), {}) == kept
