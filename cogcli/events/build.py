"""Named constructors: the only place that decides speaker and payload keys of an event we write.

The frozen models in `payloads` are the same for `verify` and the generated schemas; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cogcli.events.envelope import Draft
from cogcli.events.types import EVENT_TYPES

PayloadDict = dict[str, Any]

IN_DOUBT: Final = "effect.in-doubt"
"""The rule that a person decides by about a call that may have happened."""

_FINISH: Final = {
    "done": ("step.completed", "ok"),
    "failed": ("step.failed", "error"),
    "skipped": ("step.skipped", "skipped"),
    "degraded": ("step.degraded", "skipped"),
    "vetoed": ("step.vetoed", "vetoed"),
}


def _draft(
    event_type: str,
    run_id: str,
    payload: PayloadDict,
    step_id: str | None = None,
    agent_id: str | None = None,
    caused_by: str | None = None,
    metrics: PayloadDict | None = None,
) -> Draft:
    phase = EVENT_TYPES[event_type].phase
    return Draft(event_type, phase, run_id, payload, step_id, agent_id, caused_by, (), metrics)


def run_started(
    run_id: str,
    *,
    task: str,
    skill: PayloadDict,
    inputs: PayloadDict,
    frame: PayloadDict,
    options: PayloadDict,
    seed: int,
    tags: dict[str, str],
    pins: PayloadDict,
    selection: PayloadDict | None = None,
    taken_over: PayloadDict | None = None,
    effects: PayloadDict | None = None,
    contracts: PayloadDict | None = None,
    policy: PayloadDict | None = None,
    agent: PayloadDict | None = None,
    typed: list[str] | None = None,
    intuition_mode: str = "",
    parent_run_id: str | None = None,
    step_id: str | None = None,
    using: str = "runner",
) -> Draft:
    """The first event of a run: everything it was started with."""
    payload = {
        "task": task,
        "seed": seed,
        "using": using,
        "skill": skill,
        "inputs": inputs,
        "frame": frame,
        "options": options,
        "tags": tags,
        "pins": pins,
        "selection": selection or {},
        "parent_run_id": parent_run_id,
    }
    if taken_over:
        payload["taken_over"] = taken_over
    if contracts:
        payload["contracts"] = contracts
    if policy:
        payload["policy"] = policy
    if effects:
        payload["effects"] = effects
    if agent:
        payload["agent"] = agent
    if typed:
        payload["typed"] = typed
    if intuition_mode:
        payload["intuition_mode"] = intuition_mode
    return _draft("run.started", run_id, payload, step_id, "system")


def plan_created(
    run_id: str, *, rationale: str, step_records: list[PayloadDict], steps: list[str],
    source: str = "planner.skill", made: PayloadDict | None = None,
) -> Draft:  # fmt: skip
    """The plan of the root run; `steps` are the labels of old readers, `kind:description`. `made` has the
    members that only a plan of an agent has."""
    payload = {
        "source": source,
        "rationale": rationale,
        "step_records": step_records,
        "steps": steps,
        **(made or {}),
    }
    return _draft("plan.created", run_id, payload, agent_id=source)


def step_started(run_id: str, step_id: str, *, speaker: str, payload: PayloadDict) -> Draft:
    """The write-ahead record of a call: on disk before the call leaves."""
    payload = {"step_id": step_id, "step_status": "running", **payload}
    return _draft("step.started", run_id, payload, step_id, speaker)


def step_answered(
    run_id: str, step_id: str, *, output: PayloadDict, attempts: list[PayloadDict], speaker: str
) -> Draft:
    """A result that is on disk before it is judged, or while it waits for its turn to write."""
    payload = {"step_id": step_id, "output": output, "attempts": attempts}
    return _draft("step.answered", run_id, payload, step_id, speaker)


def step_finished(
    run_id: str,
    step_id: str,
    *,
    ending: str,
    speaker: str,
    payload: PayloadDict,
    metrics: PayloadDict | None,
    caused_by: str | None = None,
) -> Draft:
    """The end of a step. `ending` is done, failed, skipped, degraded or vetoed."""
    event_type, result_status = _FINISH[ending]
    status = "skipped" if ending == "degraded" else ending
    payload = {"step_id": step_id, "step_status": status, "result_status": result_status, **payload}
    return _draft(event_type, run_id, payload, step_id, speaker, caused_by, metrics)


def call_retried(run_id: str, step_id: str, *, payload: PayloadDict, speaker: str) -> Draft:
    """The write-ahead record of each attempt after the first."""
    return _draft("call.retried", run_id, {"step_id": step_id, **payload}, step_id, speaker)


def gate_decided(run_id: str, step_id: str, *, payload: PayloadDict, speaker: str) -> Draft:
    """What a safety gate, trust level or confirmation decided."""
    return _draft("gate.decided", run_id, payload, step_id, speaker)


def run_terminated(
    run_id: str,
    *,
    status: str,
    status_reason: str | None,
    outputs: PayloadDict,
    error: PayloadDict | None,
    required_missing: list[str],
    metrics: PayloadDict | None,
    contradictions: list[str] | None = None,
    step_id: str | None = None,
) -> Draft:
    """The outcome of a run."""
    payload = {
        "status": status,
        "status_reason": status_reason,
        "outputs": outputs,
        "error": error,
        "required_missing": required_missing,
    }
    if contradictions:
        payload["contradictions"] = contradictions
    return _draft("run.terminated", run_id, payload, step_id, "system", metrics=metrics)


def run_paused(run_id: str, *, reason: str) -> Draft:
    """The run waits for a person; nothing else can run."""
    return _draft("run.paused", run_id, {"reason": reason}, agent_id="system")


def approval_requested(run_id: str, step_id: str, *, approval_id: str, payload: PayloadDict) -> Draft:
    """A person is asked about one exact action."""
    body = {"approval_id": approval_id, **payload}
    return _draft("approval.requested", run_id, body, step_id, "system")


def approval_answered(
    run_id: str, step_id: str, *, granted: bool, approval_id: str, by: str, payload: PayloadDict
) -> Draft:
    """A person's answer to a request."""
    kind = "approval.granted" if granted else "approval.rejected"
    body = {"approval_id": approval_id, **payload, "by": by}
    return _draft(kind, run_id, body, step_id, f"human:{by}")


def policy_decided(run_id: str, step_id: str, *, payload: PayloadDict, caused_by: str | None) -> Draft:
    """What the policy of a run says of a call."""
    return _draft("policy.decided", run_id, payload, step_id, "policy", caused_by)


def budget_exceeded(run_id: str, step_id: str, *, key: str, used: int, limit: int) -> Draft:
    """The budget that a call would pass."""
    return _draft("budget.exceeded", run_id, {"key": key, "used": used, "limit": limit}, step_id, "policy")


def service_started(run_id: str, step_id: str, *, service: str, protocol: str) -> Draft:
    """A call of this step started a server."""
    return _draft("service.started", run_id, {"service": service, "protocol": protocol}, step_id, "system")


def service_stopped(run_id: str, *, service: str, protocol: str, reason: str = "") -> Draft:
    """A server was stopped; `reason` is why, if that was before the end of the run."""
    payload = {"service": service, "protocol": protocol, **({"reason": reason} if reason else {})}
    return _draft("service.stopped", run_id, payload, agent_id="system")


def of_turn(
    event_type: str, run_id: str, payload: PayloadDict, *, phase: str = "", speaker: str = "agent",
    step_id: str | None = None,
) -> Draft:  # fmt: skip
    """An event of the cognitive loop; `phase` is that of a layer, where its type has none."""
    return _draft(event_type, run_id, payload, step_id, speaker)._replace(
        phase=phase or EVENT_TYPES[event_type].phase
    )


def doubt_decided(
    run_id: str,
    step_id: str,
    *,
    choice: str,
    speaker: str,
    capability: str,
    reason: str,
    caused_by: str | None,
    output: PayloadDict | None = None,
) -> Draft:
    """The decision about a call that may have happened: rerun, skip, fail, or done with its answer. It is final."""
    payload: PayloadDict = {
        "decision": "allow" if choice in ("rerun", "done") else "veto",
        "verdict": choice,
        "rule": IN_DOUBT,
        "capability": capability,
        "step_id": step_id,
        "reason": reason,
        "enforced": True,
    }
    if output is not None:
        payload["output"] = output
    return _draft("policy.decided", run_id, payload, step_id, speaker, caused_by)


def run_resumed(
    run_id: str,
    *,
    reason: str,
    checkpoint: PayloadDict,
    caused_by: str | None,
    changed_specs: Sequence[str] = (),
    timeout_seconds: float | None = None,
) -> Draft:
    """The run continues in the same log; specs that are not those it began with are named, and a limit of time that is
    new."""
    payload: PayloadDict = {"reason": reason, "checkpoint": checkpoint}
    if changed_specs:
        payload["changed_specs"] = list(changed_specs)
    if timeout_seconds is not None:
        payload["timeout_seconds"] = timeout_seconds
    return _draft("run.resumed", run_id, payload, None, "system", caused_by)


def run_aborting(run_id: str, *, reason: str, signal: str) -> Draft:
    """A signal was received; nothing new is dispatched."""
    return _draft("run.aborting", run_id, {"reason": reason, "signal": signal}, agent_id="system")


def run_recovered(
    run_id: str, *, reason: str, checkpoint: PayloadDict, dropped_bytes: int, caused_by: str
) -> Draft:
    """What a crash left uncommitted was cut off: how many bytes, after which event."""
    payload = {"reason": reason, "checkpoint": checkpoint, "dropped_bytes": dropped_bytes}
    return _draft("run.recovered", run_id, payload, agent_id="system", caused_by=caused_by)


def state_projection(
    run_id: str,
    *,
    status: str,
    outcomes: PayloadDict,
    links: dict[str, str],
    sha256: str,
    size_bytes: int,
    snapshot: bool = False,
) -> Draft:
    """The evidence that `state.json` is about to be written with this outcome and these links, with its hash and size.
    `snapshot`: of a run that is alive."""
    state = {"sha256": sha256, "size_bytes": size_bytes}
    payload: PayloadDict = {"status": status, "outcomes": outcomes, "links": links, "state": state}
    if snapshot:
        payload["snapshot"] = True
    return _draft("run.state_projection", run_id, payload, agent_id="system")
