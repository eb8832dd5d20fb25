"""Loops on screens: one row with counts and the time left, whatever their size
(docs/reference/command-line.md#loops)."""

from __future__ import annotations

import io
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

import pytest
from fakes.logged import event
from hypothesis import given
from hypothesis import strategies as st

from cogcli.cli.live_display import AnimatedSteps, StepLines
from cogcli.cli.streams import OutputStream, Screen
from cogcli.declarations.envelope import Event
from cogcli.episode.history import History, history_of
from cogcli.episode.run_history import RunHistory
from cogcli.report.styled_text import UNICODE, plain_text
from cogcli.report.tree import loop_text, tree

ENDS = ("done", "failed", "skipped", "vetoed")
FIRST = datetime(2026, 11, 20, 22, 58, tzinfo=UTC)


def act(ms: int, id: str, status: str, **payload: Any) -> Event:
    stamp = (FIRST + timedelta(milliseconds=ms)).isoformat().replace("+00:00", "Z")
    made = event(
        0, "step.x", "act", {"step_id": id, "step_status": status, **payload}, timestamp=stamp
    )
    return made._replace(event_type="step.started" if status == "running" else f"step.{status}")


def begun(uses: str = "demo.text", **payload: Any) -> list[Event]:
    record = {"id": "each", "uses": uses, "depends_on": []}
    return [
        event(0, "run.started", "start", {"skill": {"id": "demo.loop", "version": "1.0.0"}}),
        event(0, "plan.created", "plan", {"step_records": [record, {**record, "id": "after"}]}),
        act(0, "each", "running", **payload),
    ]


def items(*ends: str, ms: int = 1000, total: int = 120) -> list[Event]:
    log = begun(items=total)
    for number, end in enumerate(ends):
        log.append(act(number * ms, f"each#{number}", "running"))
        log.append(
            act(
                (number + 1) * ms,
                f"each#{number}",
                end,
                error={"code": "a.b", "message": f"no {number}"},
            )
        )
    return log


def shown(log: list[Event]) -> str:
    root = history_of(log).root
    assert root is not None
    step = root.steps["each"]
    assert step.loop is not None
    return loop_text(step.loop, running=step.status == "running")


def test_a_loop_that_runs_has_counts_and_the_time_that_is_left() -> None:
    assert shown(items(*["done"] * 34, "failed", "failed")) == "34/120 done, 2 failed  ~84s left"
    assert shown(items(*["done"] * 3, "skipped", ms=10)) == "3/120 done, 1 skipped  ~2s left"
    assert shown(items(*["done"] * 2, ms=4000)) == "2/120 done  ~8m left"
    assert shown(items(*["done"] * 2, ms=400_000)) == "2/120 done  ~13h left"
    assert shown(items()) == "0/120 done"
    assert shown([*items(*["done"] * 120), act(120_000, "each", "done")]) == "120/120 done"


def test_rounds_have_no_end_that_is_known_and_targets_their_number() -> None:
    rounds = [act(n, f"each#{n // 2}", ("running", "done")[n % 2]) for n in range(6)]
    assert shown([*begun(), *rounds]) == "3 rounds done"
    targets = [
        act(0, "each#b", "running"),
        act(5000, "each#b", "done"),
        act(0, "each#c", "running"),
    ]
    assert shown([*begun(targets=["x.b", "x.c"]), *targets]) == "1/2 done  ~5s left"


def test_what_every_round_writes_is_named_once() -> None:
    writes = [{"target": "vars.a"}, {"target": "vars.b"}, {"target": "vars.a"}]
    log = [*begun(), act(1, "each", "done", writes=writes)]
    assert "→ vars.a, vars.b" in lines(log)[1]
    assert "vars.b, vars.a" not in lines(log)[1]


def test_gates_and_what_items_call_are_no_items() -> None:
    log = [
        *items("done", total=2),
        act(9000, "each#1@pre0", "done"),
        act(9000, "each#1@pre0#0", "done"),
    ]
    assert shown(log).startswith("1/2 done")


CHANGES = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(("running", *ENDS))), max_size=40)


@given(CHANGES)
def test_counts_are_those_of_the_items_however_often_they_begin_again(
    changes: list[tuple[int, str]],
) -> None:
    log = begun(items=6) + [
        act(n, f"each#{number}", status) for n, (number, status) in enumerate(changes)
    ]
    root = history_of(log).root
    assert root is not None
    parts = [step for step in root.steps.values() if step.id.startswith("each#")]
    loop = root.steps["each"].loop
    assert loop is not None
    assert +Counter(loop.counts) == Counter(step.status for step in parts)
    running = {step.id for step in root.steps.values() if step.status == "running"}
    assert set(root.running) == running
    assert root.own == [step for step in root.steps.values() if step.id in ("each", "after")]


def test_parts_that_come_before_their_step_belong_to_it() -> None:
    run = RunHistory("r")
    for id in ("a#0", "b", "a"):
        run.add(id, id)
    assert [step.id for step in run.own] == ["b", "a"]


def calls(action: Any, log: list[Event]) -> int:
    """How many functions are called for the events of a log."""
    count = 0

    def tell(frame: FrameType, kind: str, of: object) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(tell)
    try:
        for each in log:
            action(each)
    finally:
        sys.setprofile(None)
    return count


def screen(columns: int = 80) -> Screen:
    made = Screen({"COGCLI_FORCE_TTY": str(columns), "NO_COLOR": "1"})
    made.err = OutputStream(
        io.StringIO(), {"COGCLI_FORCE_TTY": str(columns), "NO_COLOR": "1"}, "never"
    )
    return made


@pytest.mark.sampled(3)
@pytest.mark.parametrize("display", [StepLines, History])
def test_an_event_costs_the_same_in_a_loop_of_any_size(display: Any) -> None:
    def of_size(size: int) -> int:
        made = display().apply if display is History else display(screen())
        return calls(made, items(*["done"] * size, total=size))

    assert of_size(2000) < 11 * of_size(200)


@pytest.mark.sampled(6)
def test_an_event_costs_the_same_in_a_run_of_any_length() -> None:
    def of_size(size: int) -> int:
        records = [{"id": f"s{n}", "uses": "demo.text", "depends_on": []} for n in range(size)]
        log = [*begun()[:1], event(0, "plan.created", "plan", {"step_records": records})]
        log += [
            act(n, f"s{n}", status, uses="demo.text")
            for n in range(size)
            for status in ("running", "done")
        ]
        return calls(StepLines(screen()), log)

    assert of_size(1000) < 11 * of_size(100)


def test_a_display_has_one_row_for_a_loop_and_a_few_of_what_runs() -> None:
    made = AnimatedSteps(screen())
    log = items("done", "done", "failed", total=40)
    for each in [
        *log,
        *(act(4000, f"each#{n}", "running") for n in range(3, 9)),
        act(4000, "each#3@pre0", "running"),
    ]:
        made.fold.apply(each)
    assert str(made.__rich__()).splitlines() == [
        "  ● each   demo.text          2/40 done, 1 failed  ~37s left",
        "      ● each#3",
        "      ● each#4",
        "      ● each#5",
        "  · after  demo.text",
    ]


def lines(log: list[Event], **more: Any) -> list[str]:
    return [
        plain_text(line)
        for line in tree(history_of(log), UNICODE, status="error", width=100, **more)
    ]


def test_a_tree_folds_items_that_ended_well_and_shows_the_others() -> None:
    log = items(*["done"] * 5, "failed", "done", "skipped", "vetoed", total=9)
    assert lines(log)[2] == "│     9 items: 6 done, 1 failed, 1 vetoed, 1 skipped; --full shows all"
    assert [lines(log)[n].strip("│ ") for n in (4, 6)] == ["a.b: no 5", "a.b: no 8"]
    assert "each#5" in lines(log)[3]
    assert "each#8" in lines(log)[5]
    assert sum("each#" in line for line in lines(log)) == 2
    assert sum("each#" in line for line in lines(log, full=True)) == 9
    assert not any("--full" in line for line in lines(log, full=True))


def test_few_items_are_not_folded_and_many_failed_ones_are_cut() -> None:
    assert sum("each#" in line for line in lines(items("done", "done", "done"))) == 3
    log = items(*["failed"] * 50)
    assert sum("each#" in line for line in lines(log)) == 20
    assert "50 of 120 items: 50 failed; --full shows all" in "\n".join(lines(log))
