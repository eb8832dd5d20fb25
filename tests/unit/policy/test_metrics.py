"""The metrics of agents' runs (docs/reference/agent-run.md#metrics)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.declarations.envelope import Event
from cogcli.declarations.pack_spec import METRIC_NAMES, MetricTarget
from cogcli.policy.metrics import (
    METRICS,
    MeasuredCall,
    MeasuredRun,
    Ratio,
    RunMeter,
    TargetResult,
    judge,
    measure,
)

PACK = "desk@1.0.0#sha256:0"
DONE = MeasuredCall(True, True, True)
FAILED = MeasuredCall(True, True, False, True)
RECOVERED = MeasuredCall(True, True, True, True)
RECORD: dict[str, Any] = {
    "lineage": {"pack_ref": PACK},
    "intent": "support.refund",
    "status": "completed",
    "critic": {"verify": [{"verdict": "replan"}, {"verdict": "ok"}]},
    "evidence_gates": [{"status": "satisfied"}, {"status": "stale"}],
}


def _event(kind: str, step: str | None = "t1_pay", run: str = "run_1", **payload: Any) -> Event:
    return Event(0, "ev", "", "ep", run, "trace", "", kind, payload, step)


def _measured(*events: Event, ceiling: str = "destructive") -> MeasuredRun:
    meter = RunMeter(ceiling)
    for event in (_event("run.started", None), *events):
        meter.apply(event)
    return meter.finish(RECORD, 70)


def _decided(decision: str = "allow", mode: str = "network", **more: Any) -> Event:
    return _event("policy.decided", decision=decision, approval_mode=mode, **more)


LEFT = _event("step.started", binding="pay", capability="payments.refund")
ASKED = _event("approval.requested", approval_id="ap_1", gate="GATE")
GRANTED = _event("approval.granted", approval_id="ap_1")
GATED = _decided(verdict="allow_with_gate", gate="GATE")


def _ended(status: str = "done", *attempts: str) -> Event:
    made = [{"status": each} for each in attempts or ("success",)]
    return _event(
        "step.completed" if status == "done" else "step.failed", step_status=status, attempts=made
    )


@pytest.mark.parametrize(
    ("events", "complies"),
    [
        ((_decided(),), True),
        ((_decided("audit"),), True),
        ((_decided("veto"),), False),
        ((), False),
        ((_decided("veto"), _decided()), True),
        ((_decided(), _decided("veto")), False),
        ((_decided(mode="destructive"),), True),
        ((_decided(mode="godlike"),), False),
        ((_event("policy.decided", decision="allow"),), False),
        ((GATED,), False),
        ((GATED, ASKED), False),
        ((GATED, ASKED, GRANTED), True),
        ((GATED, ASKED, GRANTED, _decided(gate="GATE")), True),
        ((GATED, ASKED, GRANTED, GATED), False),
        ((GATED, ASKED, GRANTED, _decided(verdict="escalate", gate="GATE")), False),
        ((GATED, ASKED, GRANTED, _decided(verdict="allow_with_gate", gate="OTHER")), False),
        ((GATED, ASKED, _event("approval.rejected", approval_id="ap_1")), False),
        ((GATED, _event("approval.granted", approval_id="ap_1"), ASKED), False),
        ((GATED, _event("approval.requested", approval_id="ap_1", gate="OTHER"), GRANTED), False),
        ((GATED, ASKED, GRANTED, _decided(gate="OTHER")), False),
        ((_decided(rule="effect.in-doubt"),), False),
        ((_event("policy.decided", "t1_other", decision="allow", approval_mode="network"),), False),
        (
            (_event("policy.decided", run="run_2", decision="allow", approval_mode="network"),),
            False,
        ),
    ],
)
def test_whether_a_call_complies(events: tuple[Event, ...], complies: bool) -> None:
    run = _measured(*events, LEFT)
    assert [call.complies for call in run.calls] == [complies]
    assert run.complies is complies


def test_a_call_above_the_ceiling_does_not_comply() -> None:
    assert not _measured(_decided(mode="destructive"), LEFT, ceiling="network").complies
    assert _measured(_decided(mode="network"), LEFT, ceiling="network").complies


def test_what_comes_after_a_call_permits_nothing() -> None:
    assert not _measured(LEFT, _decided()).complies
    assert not _measured(GATED, ASKED, LEFT, GRANTED).complies
    assert _measured(_decided(), LEFT, _decided("veto")).complies


@pytest.mark.parametrize(
    "event",
    [
        _event("step.started", capability="skill:a"),
        _event("step.started", None, binding="b"),
        _event("step.started", "t1_pay@pre0", binding="b"),
        _event("step.started", "t1_pay@probe0", binding="b"),
        _event("step.completed", step_status="done"),
        _event("step.started", "", binding="b"),
        _event("another.tools", binding="b"),
    ],
)
def test_what_is_no_call(event: Event) -> None:
    assert _measured(event).calls == ()


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        (None, (False, False, False)),
        (_event("call.retried", attempt=2), (False, False, False)),
        (_ended(), (True, True, False)),
        (_ended("failed", "error"), (True, False, True)),
        (_ended("failed", "success", "error"), (True, False, False)),
        (_ended("done", "error", "success"), (True, True, True)),
        (_ended("done", "skipped", "success"), (True, True, False)),
        (_ended("failed", "skipped"), (True, False, False)),
        (_ended("vetoed", "success"), (True, False, False)),
        (_event("step.failed", step_status="failed"), (True, False, False)),
        (_event("step.failed", step_status="failed", attempts=[1]), (True, False, True)),
    ],
)
def test_how_a_call_ended(ending: Event | None, expected: tuple[bool, bool, bool]) -> None:
    (call,) = _measured(_decided(), LEFT, *([ending] if ending else [])).calls
    assert (call.ended, call.done, call.failed_first) == expected


def test_a_call_of_each_run_and_step_is_its_own() -> None:
    inner = _event("step.started", "t1_pay", "run_2", binding="b")
    run = _measured(_decided(), LEFT, inner, _ended())
    assert run.calls == (DONE, MeasuredCall(False))


def test_a_run_takes_its_words_from_the_record() -> None:
    run = _measured()
    assert (run.pack_ref, run.intent, run.status) == (PACK, "support.refund", "completed")
    assert (run.verdicts, run.gates) == (("replan", "ok"), ("satisfied", "stale"))
    assert (run.calls, run.tripped, run.duration_ms, run.complies) == ((), False, 70, True)
    foreign = RunMeter("network").finish({**RECORD, "lineage": {"pack_ref": None}}, None)
    assert foreign.pack_ref == ""


def test_a_trip_of_the_loop_guard_is_one_of_the_run() -> None:
    assert _measured(_event("loop.detected", None)).tripped


def _run(status: str = "completed", **members: Any) -> MeasuredRun:
    return MeasuredRun(PACK, "support.refund", status, **members)


@pytest.mark.parametrize(
    ("metric", "runs", "expected"),
    [
        ("plan_verification_pass_rate", [_run(verdicts=("replan", "ok")), _run(verdicts=("reject",))], (1, 3)),
        ("plan_verification_pass_rate", [_run()], (0, 0)),
        ("tool_success_rate", [_run(calls=(DONE, FAILED, MeasuredCall(True)))], (1, 2)),
        ("recovery_rate", [_run(calls=(DONE, FAILED, RECOVERED))], (1, 2)),
        ("recovery_rate", [_run(calls=(DONE,))], (0, 0)),
        ("evidence_backed_rate", [_run(gates=("satisfied",)), _run(), _run(gates=("satisfied", "stale"))], (2, 3)),
        ("evidence_backed_rate", [_run("denied", gates=("satisfied",))], (0, 0)),
        ("policy_compliance_rate", [_run(calls=(DONE, MeasuredCall(False)))], (1, 2)),
        ("mean_time_to_safe_completion_ms", [_run(duration_ms=10), _run(duration_ms=30)], (40, 2)),
        ("mean_time_to_safe_completion_ms", [_run("failed", duration_ms=10)], (0, 0)),
        ("mean_time_to_safe_completion_ms", [_run(duration_ms=1, calls=(MeasuredCall(False),))], (0, 0)),
        ("mean_time_to_safe_completion_ms", [_run()], (0, 0)),
        ("loop_guard_trip_rate", [_run(tripped=True), _run("denied")], (1, 2)),
        ("loop_guard_trip_rate", [], (0, 0)),
    ],
)  # fmt: skip
def test_a_metric(metric: str, runs: list[MeasuredRun], expected: tuple[int, int]) -> None:
    assert METRICS[metric](runs) == Ratio(*expected)


def test_a_ratio_over_nothing_has_no_value() -> None:
    assert (Ratio(0, 0).value, Ratio(0, 4).value, Ratio(1, 4).value) == (None, 0.0, 0.25)


def test_every_metric_of_every_pack_has_a_formula() -> None:
    assert tuple(METRICS) == METRIC_NAMES


def test_metrics_come_over_all_runs_and_then_by_intent() -> None:
    runs = [_run(tripped=True), _run()._replace(intent=""), _run()._replace(intent="a.b")]
    found = [each.to_payload() for each in measure(runs) if each.metric == "loop_guard_trip_rate"]
    assert found == [
        {
            "metric": "loop_guard_trip_rate",
            "intent": intent,
            "numerator": n,
            "denominator": of,
            "value": n / of,
        }
        for intent, n, of in (
            (None, 1, 3),
            ("unknown_intent", 0, 1),
            ("a.b", 0, 1),
            ("support.refund", 1, 1),
        )
    ]
    assert len(measure([])) == len(METRICS)


def _judged(*targets: MetricTarget, runs: list[MeasuredRun] | None = None) -> list[TargetResult]:
    return judge(runs or [_run(tripped=True)], {PACK: targets})


@pytest.mark.parametrize(
    ("least", "intent", "status"),
    [
        (1.0, "", "met"),
        (1.1, "", "missed"),
        (0.5, "support.refund", "met"),
        (0.5, "a.b", "unmeasured"),
    ],
)
def test_a_target_is_met_missed_or_over_nothing(least: float, intent: str, status: str) -> None:
    (found,) = _judged(MetricTarget(metric="loop_guard_trip_rate", min=least, intent=intent))
    assert found.status == status
    assert found.to_payload()["intent"] == (intent or None)


def test_a_target_is_over_the_runs_under_exactly_its_pack() -> None:
    other = _run()._replace(pack_ref="desk@2.0.0#sha256:1")
    (found,) = _judged(
        MetricTarget(metric="loop_guard_trip_rate", min=0.9), runs=[_run(tripped=True), other]
    )
    assert found.to_payload() == {
        "pack_ref": PACK, "metric": "loop_guard_trip_rate", "min": 0.9, "intent": None, "status": "met",
        "numerator": 1, "denominator": 1, "value": 1.0,
    }  # fmt: skip


def test_a_target_with_a_maximum_is_told_with_it() -> None:
    target = MetricTarget(metric="loop_guard_trip_rate", min=0.0, max=0.5)
    (found,) = _judged(target, runs=[_run(tripped=True)])
    told = {name: found.to_payload()[name] for name in ("min", "max", "status")}
    assert told == {"min": 0.0, "max": 0.5, "status": "missed"}


def test_a_metric_that_another_version_knows_is_unmeasured() -> None:
    (found,) = _judged(MetricTarget(metric="unheard_of_rate", min=0.9))
    figures = {
        name: found.to_payload()[name] for name in ("status", "numerator", "denominator", "value")
    }
    assert figures == {"status": "unmeasured", "numerator": 0, "denominator": 0, "value": None}
