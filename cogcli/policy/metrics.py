"""The metrics of agents' runs, computed from logs and decision records (docs/reference/agent-run.md#metrics). Pure.

1. Only calls whose attempt is in the log are measured. Calls that policy refused, gates and probes are not.
2. A ratio with denominator 0 is null, never 0 or 1.
3. Missing data is a failure: a call without a decision does not comply.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.agent_events import LoopDetected
from cogcli.declarations.documents import DecisionFile
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import StepFinished, StepStarted
from cogcli.declarations.governance_events import (
    IN_DOUBT,
    ApprovalGranted,
    ApprovalRequested,
    PolicyDecided,
)
from cogcli.declarations.pack_spec import MODES, MetricTarget
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.typed_payload import read_payload
from cogcli.declarations.value_types import Json
from cogcli.policy.verdict import is_above

UNKNOWN_INTENT: Final = "unknown_intent"
_Key = tuple[str | None, str | None]


class MeasuredCall(NamedTuple):
    """One call with an attempt in the log.

    `complies` is true if policy allowed the call, people approved it at its gates, and its approval mode was within the
    ceiling.
    """

    complies: bool
    ended: bool = False
    done: bool = False
    failed_first: bool = False
    """Whether its first attempt failed."""


class MeasuredRun(NamedTuple):
    """The measurements of one run."""

    pack_ref: str
    intent: str
    """Empty if the intent is unknown."""
    status: str
    verdicts: tuple[str, ...] = ()
    """The critic's verdict on each plan."""
    gates: tuple[str, ...] = ()
    """The final state of each required piece of evidence."""
    calls: tuple[MeasuredCall, ...] = ()
    tripped: bool = False
    duration_ms: float | None = None

    @property
    def complies(self) -> bool:
        """Whether all calls of the run comply."""
        return all(call.complies for call in self.calls)


class RunMeter:
    """Measures a run event by event. `ceiling` is the safety mode of the run."""

    def __init__(self, ceiling: str) -> None:
        self._ceiling = ceiling
        self._decisions: dict[_Key, list[PolicyDecided]] = defaultdict(list)
        self._gate_of_request: dict[str, str | None] = {}
        self._granted: dict[_Key, set[str | None]] = defaultdict(set)
        self._calls: dict[_Key, MeasuredCall] = {}
        self._tripped = False

    def apply(self, event: Event) -> None:
        """Fold the next event of the run tree."""
        key = event.run_id, event.step_id
        match read_payload(event):
            case PolicyDecided() as decided:
                self._record_decision(key, decided)
            case ApprovalRequested() as request:
                self._gate_of_request[request.approval_id] = request.gate
            case ApprovalGranted() as granted:
                self._granted[key].add(self._gate_of_request.get(granted.approval_id, granted.gate))
            case StepStarted(binding=binding) if binding and _is_step(event):
                self._calls.setdefault(key, MeasuredCall(self._is_compliant(key)))
            case StepFinished() as ended if key in self._calls:
                self._calls[key] = _complete_call(self._calls[key], ended)
            case LoopDetected():
                self._tripped = True

    def _record_decision(self, key: _Key, decision: PolicyDecided) -> None:
        """Record a decision about a call.

        If its verdict requires approval, an earlier approval at that gate becomes invalid.
        """
        # A person's answer about a call in doubt is not a permission.
        if decision.rule == IN_DOUBT:
            return
        self._decisions[key].append(decision)
        if decision.verdict in ("allow_with_gate", "escalate"):
            self._granted[key].discard(decision.gate)

    def _is_compliant(self, key: _Key) -> bool:
        """Return whether a call that starts now complies.

        The last decision must allow the call, all its gates must have an approval, and its approval mode must be within
        the ceiling.
        """
        decisions = self._decisions.get(key)
        if not decisions:
            return False
        mode, decision = decisions[-1].approval_mode, decisions[-1].decision
        within = mode is not None and mode in MODES and not is_above(mode, self._ceiling)
        gates = {each.gate for each in decisions if each.gate}
        return decision in ("allow", "audit") and within and gates <= self._granted[key]

    def finish(self, record: Json, duration_ms: float | None) -> MeasuredRun:
        """Return the measured run with its duration and the data of its decision record."""
        decision = DecisionFile.of(record)
        return MeasuredRun(
            decision.lineage.pack_ref or "",
            decision.intent,
            decision.status,
            tuple(each["verdict"] for each in decision.critic.verify),
            tuple(each["status"] for each in decision.evidence_gates),
            tuple(self._calls.values()),
            self._tripped,
            duration_ms,
        )


def _is_step(event: Event) -> bool:
    """Return whether an event is about a step of a skill. Events about a gate, a probe or an item are not."""
    return bool(event.step_id and not StepPath(event.step_id).in_call)


class RecordedAttempts(Record):
    """The attempts of a call as the log contains them, including values that are not objects."""

    attempts: list[object]


class AttemptStatus(Record):
    """The status of one attempt."""

    status: object = None


def _complete_call(call: MeasuredCall, closing: StepFinished) -> MeasuredCall:
    """Return the call completed with the data of its closing event.

    Skipped attempts are ignored. An attempt that is not an object is a failed one.
    """
    recorded = read_record(RecordedAttempts, closing.json).attempts
    statuses = [read_record(AttemptStatus, each).status for each in recorded]
    attempt_statuses = [status for status in statuses if status != "skipped"]
    done = closing.step_status == "done"
    return call._replace(
        ended=True, done=done, failed_first=attempt_statuses[:1] not in ([], ["success"])
    )


class Ratio(NamedTuple):
    """The numerator and the denominator of a metric."""

    numerator: float
    denominator: int

    @property
    def value(self) -> float | None:
        """The quotient, or None if the denominator is 0."""
        return self.numerator / self.denominator if self.denominator else None


Runs = Sequence[MeasuredRun]


def _ratio_of_true(values: Iterable[bool]) -> Ratio:
    """Return the ratio of true values to all values."""
    true_values = list(values)
    return Ratio(sum(true_values), len(true_values))


def _iterate_calls(runs: Runs) -> Iterator[MeasuredCall]:
    return (call for run in runs for call in run.calls)


def _measure_mean_time(runs: Runs) -> Ratio:
    safe = [run for run in runs if run.status == "completed" and run.complies]
    times = [run.duration_ms for run in safe if run.duration_ms is not None]
    return Ratio(sum(times), len(times))


METRICS: Final[dict[str, Callable[[Runs], Ratio]]] = {
    # Verifications that found nothing wrong / verifications.
    "plan_verification_pass_rate": lambda runs: _ratio_of_true(
        word == "ok" for run in runs for word in run.verdicts
    ),
    # Calls that ended done / calls that ended.
    "tool_success_rate": lambda runs: _ratio_of_true(
        call.done for call in _iterate_calls(runs) if call.ended
    ),
    # Calls done after a failed first attempt / calls with a failed first attempt.
    "recovery_rate": lambda runs: _ratio_of_true(
        call.done for call in _iterate_calls(runs) if call.failed_first
    ),
    # Completed with all required evidence satisfied / completed.
    "evidence_backed_rate": lambda runs: _ratio_of_true(
        all(gate == "satisfied" for gate in run.gates) for run in runs if run.status == "completed"
    ),
    # Calls with an allowing decision, an approval at each gate, and a mode within the ceiling / calls.
    "policy_compliance_rate": lambda runs: _ratio_of_true(
        call.complies for call in _iterate_calls(runs)
    ),
    # Active milliseconds of completed runs that complied / those runs.
    "mean_time_to_safe_completion_ms": _measure_mean_time,
    # Runs with a trip of the loop guard / runs.
    "loop_guard_trip_rate": lambda runs: _ratio_of_true(run.tripped for run in runs),
}
"""The metrics in display order."""


class Measure(NamedTuple):
    """One metric over the runs of an intent. `intent` is None for the metric over all runs."""

    metric: str
    intent: str | None
    ratio: Ratio

    def to_payload(self) -> Json:
        """Return the measure as JSON."""
        return {"metric": self.metric, "intent": self.intent, **_ratio_to_payload(self.ratio)}


def measure(runs: Runs) -> list[Measure]:
    """Compute every metric over all runs, then over the runs of each intent."""
    intents = sorted({run.intent for run in runs})
    groups: list[tuple[str | None, Runs]] = [(None, runs)]
    groups += [
        (intent or UNKNOWN_INTENT, [run for run in runs if run.intent == intent])
        for intent in intents
    ]
    return [
        Measure(name, intent, METRICS[name](chosen))
        for name in METRICS
        for intent, chosen in groups
    ]


class TargetResult(NamedTuple):
    """A target that a pack sets for a metric, and the value of the metric over the pack's runs."""

    pack_ref: str
    target: MetricTarget
    ratio: Ratio

    @property
    def status(self) -> str:
        """`met`, `missed`, or `unmeasured` if the metric has no value."""
        value = self.ratio.value
        if value is None:
            return "unmeasured"
        return "met" if self.target.is_met(value) else "missed"

    def to_payload(self) -> Json:
        """Return the result as JSON."""
        target = {
            "metric": self.target.metric,
            "min": self.target.min,
            **({} if self.target.max is None else {"max": self.target.max}),
            "intent": self.target.intent or None,
        }
        return {
            "pack_ref": self.pack_ref,
            **target,
            "status": self.status,
            **_ratio_to_payload(self.ratio),
        }


def judge(runs: Runs, targets: Mapping[str, Iterable[MetricTarget]]) -> list[TargetResult]:
    """Compare each pack's targets with the metrics over the runs under exactly that pack."""
    found = []
    for pack_ref, wanted in targets.items():
        for target in wanted:
            chosen = [
                run
                for run in runs
                if run.pack_ref == pack_ref and target.intent in ("", run.intent)
            ]
            formula = METRICS.get(
                target.metric
            )  # a pack of another version may name an unknown metric
            found.append(
                TargetResult(pack_ref, target, formula(chosen) if formula else Ratio(0, 0))
            )
    return found


def _ratio_to_payload(ratio: Ratio) -> Json:
    return {"numerator": ratio.numerator, "denominator": ratio.denominator, "value": ratio.value}
