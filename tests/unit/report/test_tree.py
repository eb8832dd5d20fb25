"""The tree of a run, folded from events."""

from __future__ import annotations

from typing import Any

from fakes.logged import NOW, STAMP, event

from cogcli.declarations.envelope import Event, row_of
from cogcli.episode.history import history_of
from cogcli.report.event_lines import EventLines
from cogcli.report.styled_text import ASCII, UNICODE, plain_text, width
from cogcli.report.table import rows
from cogcli.report.tree import footer, header, tree


def log() -> list[Event]:
    plan = {"step_records": [{"id": name, "uses": uses, "depends_on": deps} for name, uses, deps in (
        ("risks", "skill:analysis.risks", []), ("entities", "text.entities", []), ("report", "doc.report", ["risks"]),
    )]}  # fmt: skip
    return [
        event(0, "run.started", "start", {"skill": {"id": "risk.review", "version": "0.4.1"}}),
        event(1, "plan.created", "plan", plan),
        event(2, "step.started", "act", {"step_id": "risks", "step_status": "running", "reads": ["inputs.text"]}),
        event(2, "run.started", "start", {"skill": {"id": "analysis.risks"}, "parent_run_id": "run_root"},
              run_id="run_child", step_id="risks"),
        event(3, "step.started", "act", {"step_id": "risks/rank", "step_status": "running", "uses": "a.rank"},
              run_id="run_child"),
        event(3, "step.started", "act", {"step_id": "entities", "step_status": "running", "reads": ["inputs.text"]}),
        event(4, "step.completed", "act", {"step_id": "risks/rank", "step_status": "done", "latency_ms": 420,
              "usage": {"llm_calls": 1, "tokens_in": 412, "tokens_out": 190}}, run_id="run_child"),
        event(5, "step.failed", "act", {"step_id": "risks", "step_status": "failed", "latency_ms": 1630,
              "error": {"code": "call.rejected", "message": "HTTP 422\x1b[2J"}}),
        event(6, "step.completed", "act", {"step_id": "entities", "step_status": "done", "latency_ms": 902,
              "writes": [{"target": "working.entities"}]}),
        event(6, "step.skipped", "act", {"step_id": "report", "step_status": "skipped", "reason": "dependency"}),
        event(7, "run.terminated", "terminate", {"status": "error"}, metrics={"duration_ms": 2270}),
    ]  # fmt: skip


def lines(width: int | None, glyphs: Any = UNICODE) -> list[str]:
    return [
        plain_text(line) for line in tree(history_of(log()), glyphs, status="error", width=width)
    ]


def test_nested_steps_stand_under_their_step_and_parallel_ones_are_marked() -> None:
    assert lines(100) == [
        "✗ risk.review                        2.27s  1 of 3 done",
        "├─ ✗ risks     skill:analysis.risks  1.63s    inputs.text → ?",
        "│     call.rejected: HTTP 422\\x1b[2J",
        "│  └─ ✓ rank   a.rank                420ms    412→190 tokens",
        "├─ ✓ entities  text.entities         902ms  ∥ inputs.text → working.entities",
        "└─ – report    doc.report                     skipped, needs risks",
    ]


def gated() -> list[Event]:
    """A run whose first step has a gate, and whose second works through items, one of them gated."""
    ids = ("read", "each")
    plan = {"step_records": [{"id": id, "uses": f"doc.{id}", "depends_on": []} for id in ids]}
    log = [
        event(0, "run.started", "start", {"skill": {"id": "a.b"}}),
        event(0, "plan.created", "plan", plan),
    ]
    log += [
        event(1, "step.completed", "act", {"step_id": id, "step_status": "done", "latency_ms": 1})
        for id in ("read@pre0", "read", "each", "each#0@pre0", "each#0", "each#1")
    ]
    return log


def test_gates_items_and_rounds_stand_under_their_step_and_are_not_counted() -> None:
    shown = [plain_text(line) for line in tree(history_of(gated()), UNICODE, status="ok", width=60)]
    assert [line.rstrip().removesuffix("1ms").split("✓ ")[0] + line.split()[-3 if "doc." in line else -2]
            for line in shown[1:]] == [
        "├─ read", "│  └─ read@pre0", "└─ each", "   ├─ each#0", "   │  └─ each#0@pre0", "   └─ each#1",
    ]  # fmt: skip
    assert shown[0].endswith("2 of 2 done")
    assert [row["step_id"] for row in rows(history_of(gated()), only="each#0")] == [
        "each#0",
        "each#0@pre0",
    ]


def test_items_and_gates_are_no_parallel_steps_of_what_they_belong_to() -> None:
    def begun(id: str) -> Event:
        return event(1, "step.started", "act", {"step_id": id, "step_status": "running"})

    def ended(id: str) -> Event:
        return event(2, "step.completed", "act", {"step_id": id, "step_status": "done"})

    one_by_one = [
        begun("each"),
        begun("each#0"),
        ended("each#0"),
        begun("each#1"),
        begun("each#1@post0"),
    ]
    run = history_of([log()[0], *one_by_one]).root
    assert run is not None
    assert not any(step.overlaps for step in run.steps.values())
    run = history_of([log()[0], *one_by_one, begun("each#2"), begun("eachother")]).root
    assert run is not None
    assert [step.id for step in run.steps.values() if step.overlaps] == ["each#2", "eachother"]


def test_runs_that_claim_to_be_inside_one_another_end() -> None:
    forged = [event(0, "run.started", "start", {"skill": {"id": "a.b"}})]
    parents = [("run_root", "run_0"), *((f"run_{n - 1}", f"run_{n}") for n in range(1, 300))]
    parents += [("run_3", "run_root"), ("run_9", "run_1"), ("run_1", "run_1")]
    forged += [
        event(1, "run.started", "start", {"parent_run_id": outer}, run_id=inner, step_id="x")
        for outer, inner in parents
    ]
    assert 0 < len(tree(history_of(forged), UNICODE, status="ok", width=80)) < 300


def test_rows_never_exceed_the_width() -> None:
    for columns in (30, 40, 60, 80):
        for line in tree(history_of(log()), UNICODE, status="error", width=columns):
            assert width(line) <= columns, (columns, plain_text(line))


def test_without_a_terminal_there_are_no_boxes_and_full_ids() -> None:
    assert not any("├" in line or "│" in line for line in lines(None))
    head = plain_text(header(history_of(log()), UNICODE, status="error", now=NOW, width=None))
    assert "ep_01M7XJXW876C0000000000000A" in head
    assert STAMP.format(0) in head


def test_ascii_signs_carry_the_same_meaning() -> None:
    text = "\n".join(lines(100, ASCII))
    assert "FAIL risks" in text
    assert "ok   entities" in text
    assert "||" in text


def test_sums_count_nested_calls_once() -> None:
    assert (
        plain_text(footer(history_of(log()), UNICODE))
        == "tokens 412 in, 190 out · 1 call · slowest risks 1.63s (72%)"
    )


def test_sums_count_the_calls_of_items_and_gates_once() -> None:
    def ended(id: str, calls: int) -> Event:
        usage = {"tool_calls": calls, "tokens_in": calls, "tokens_out": 0}
        return event(
            1, "step.completed", "act", {"step_id": id, "step_status": "done", "usage": usage}
        )

    each = [ended("each@pre0", 1), ended("each#0", 1), ended("each#1", 1)]
    for whole in ([*each], [*each, ended("each", 3)]):
        begun = event(0, "step.started", "act", {"step_id": "each", "step_status": "running"})
        sums = footer(history_of([log()[0], begun, *whole]), UNICODE)
        assert plain_text(sums) == "tokens 3 in, 0 out · 3 calls"


def test_a_step_left_out_says_by_whom() -> None:
    left = {
        "step_id": "b",
        "step_status": "skipped",
        "reason": "degraded",
        "detail": "left out by eve",
    }
    shown = tree(
        history_of([log()[0], event(1, "step.degraded", "act", left)]),
        UNICODE,
        status="ok",
        width=100,
    )
    assert plain_text(shown[1]).endswith("skipped, left out by eve")


def test_table_rows_follow_the_tree() -> None:
    table = rows(history_of(log()))
    assert [row["step_id"] for row in table] == ["risks", "risks/rank", "entities", "report"]
    assert table[2]["writes"] == ["working.entities"]


def test_what_a_step_calls_is_kept_until_the_step_closes() -> None:
    told = EventLines()
    events = list(log())
    for one in events:
        told.line(one)
    open_steps = {one.step_id for one in events if one.event_type == "step.started"}
    closed = {one.step_id for one in events if row_of(one.event_type).closes}
    assert closed
    assert {step for _, step in told._uses} <= open_steps - closed


def test_an_event_is_one_line_without_control_characters() -> None:
    told = EventLines()
    text = [told.line(one) for one in log()]
    assert text[7].startswith("2026-11-20T22:58:05.000Z step.failed")
    assert text[7].endswith('error=call.rejected message="HTTP 422\\x1b[2J"')
    assert all("\n" not in line and "\x1b" not in line for line in text)
