"""A step path is built and taken apart in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sources import PACKAGE, modules

from cogcli.base.step_path import StepPath

ROOMS = {"engine", "episode", "events", "governance", "mapping", "report", "state"}
CUTS = {"partition", "rpartition", "split", "rsplit", "find", "rfind", "index", "rindex"}
IDS = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)


@pytest.mark.parametrize(
    ("path", "is_step", "owner", "parent", "name", "root_step", "first"),
    [
        ("a", True, "", "", "a", "a", "a"),
        ("a/b", True, "", "a", "b", "a", "a"),
        ("a#3", False, "a", "a", "a#3", "a", "a#3"),
        ("a#3/b", True, "", "a#3", "b", "a", "a#3"),
        ("a#3/b#left", False, "a#3/b", "a#3/b", "b#left", "a", "a#3"),
        ("a/b@pre0", False, "a/b", "a/b", "b@pre0", "a", "a"),
        ("a#1@post2", False, "a#1", "a#1", "a#1@post2", "a", "a#1@post2"),
        ("a@probe0@pre1", False, "a@probe0", "a@probe0", "a@probe0@pre1", "a", "a@probe0@pre1"),
        ("", True, "", "", "", "", ""),
        ("#1", False, "", "", "#1", "", "#1"),
    ],
)
def test_parts_of_a_path(
    path: str, is_step: bool, owner: str, parent: str, name: str, root_step: str, first: str
) -> None:
    asked = StepPath(path)
    assert asked.is_step is is_step
    answers = asked.owner, asked.parent, asked.name, asked.root_step, asked.first()
    assert answers == (owner, parent, name, root_step, first)


@pytest.mark.parametrize(
    ("path", "gate", "before", "probe", "in_probe", "in_call"),
    [
        ("a@pre0", True, True, False, False, True),
        ("a#1@post12", True, False, False, False, True),
        ("a@probe3", False, False, True, True, True),
        ("a@probe3@pre0", True, True, False, True, True),
        ("pre0", False, False, False, False, False),
        ("a@pre", False, False, False, False, True),
        ("a@pre0/b", False, False, False, False, True),
    ],
)
def test_gates_and_probes_are_known_by_their_mark(
    path: str, gate: bool, before: bool, probe: bool, in_probe: bool, in_call: bool
) -> None:
    asked = StepPath(path)
    found = asked.is_gate, asked.is_gate_before, asked.is_probe, asked.in_probe, asked.in_call
    assert found == (gate, before, probe, in_probe, in_call)


def test_what_is_equal_for_all_of_a_loop() -> None:
    assert StepPath("a#3/b#12@pre0").loop == "a#/b#@pre0"
    assert StepPath("a#3/b#left@pre0").without_items == "a/b@pre0"
    assert StepPath("a#left").loop == "a#left"


def test_first_part_below_a_nested_run() -> None:
    assert StepPath("a/b#1/c").first("a") == "b#1"
    assert StepPath("a/b#1/c").first("a/b#1") == "c"


def test_within_counts_whole_parts() -> None:
    assert all(StepPath(path).within("a") for path in ("a", "a/b", "a#1", "a@pre0/b"))
    assert not any(StepPath(path).within("a") for path in ("ab", "ab/a", "b"))


@given(IDS, IDS, st.integers(0, 99), st.sampled_from(["pre", "post"]))
def test_a_path_comes_apart_as_it_was_built(outer: str, inner: str, number: int, when: str) -> None:
    step = StepPath(outer).step(inner)
    item = StepPath(step).item(number)
    gate = StepPath(item).gate(when, number)
    probe = StepPath(step).probe(number)
    assert (StepPath(step).parent, StepPath(step).name, StepPath(step).is_step) == (
        outer,
        inner,
        True,
    )
    assert (StepPath(item).owner, StepPath(item).in_loop) == (step, True)
    assert (StepPath(gate).owner, StepPath(gate).is_gate) == (item, True)
    assert (StepPath(probe).owner, StepPath(probe).is_probe) == (step, True)
    assert StepPath(gate).within(outer)


@pytest.mark.parametrize("path", ["a", "a/b", "a#1/b@pre0", ""])
def test_answers_are_plain_texts(path: str) -> None:
    asked = StepPath(path)
    answers = [
        asked.name, asked.root_step, asked.parent, asked.owner, asked.without_items, asked.loop, asked.first(),
        asked.step("x"), asked.item(1), asked.gate("pre", 0), asked.probe(0),
    ]  # fmt: skip
    assert {type(answer) for answer in answers} == {str}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "path",
    [path for path in modules() if path.relative_to(PACKAGE).parts[0] in ROOMS],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_no_room_of_a_run_cuts_step_paths_itself(path: Path) -> None:
    """Neither asks whether `#` or `@` is in an id, nor cuts there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = [*node.args] if node.func.attr in CUTS else []
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            asked = [node.left]
        else:
            continue
        for part in asked:
            found = part.value if isinstance(part, ast.Constant) else ""
            assert found not in ("#", "@"), f"{path}:{node.lineno}: ask a StepPath"


def test_a_step_that_is_called_like_a_gate_is_none() -> None:
    from cogcli.declarations.envelope import Event
    from cogcli.run.log_index import LogIndex

    def event(seq: int, event_type: str, step: str | None, payload: dict[str, object]) -> Event:
        return Event(seq, f"ev_{seq}", "", "ep_1", "run_1", "t", "act", event_type, payload, step)

    started = event(0, "run.started", None, {"options": {}})
    answers = [
        event(n, "step.answered", step, {"output": {}})
        for n, step in enumerate(("pre0", "a@post0"), 1)
    ]
    assert LogIndex([started, *answers]).gates_passed == ["a@post0"]
