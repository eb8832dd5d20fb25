"""Events folded into the state of a trace, ours or anyone's; what the state says of failures, retries and time."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections import Counter
from typing import Any

from cogcli.official.values import first_text, is_number, list_of
from cogcli.sdk import Refused

VERSION = "1"
_MAX_EVENTS = 100_000
_MAX_LISTED = 1_000
_MAX_TEXT = 500
_FAILING = frozenset("failed error vetoed timeout timed_out aborted rejected denied".split())
_ENDED = frozenset("done ok success succeeded completed skipped degraded".split()) | _FAILING
_REFUSING = frozenset("veto deny denied block blocked refuse rejected".split())
_BETWEEN = (
    "started",
    "start",
    "retried",
    "retry",
    "decided",
    "answered",
    "requested",
    "granted",
    "created",
)
_ENDINGS = {("failed", "error"): "failed", ("completed", "end", "finished"): "done"}
_VIEWS = (
    "decision_graph",
    "assumptions",
    "alternative_paths",
    "confidence",
    "risk_candidates",
    "summary",
)
_LIMITS = ("failed", "retries", "error_rate", "elapsed_ms", "step_ms", "open", "events")


def analyze_trace(
    goal: str,
    events: list[object],
    context: dict[str, object] | None = None,
    trace_state: dict[str, object] | None = None,
    trace_session_id: str | None = None,
    state_mode: str | None = None,
    mode: str | None = None,
    output_views: list[str] | None = None,
    thresholds: dict[str, object] | None = None,
) -> dict[str, object]:
    """Return the state after these events, and what it holds: counts, steps, decisions, what events state.

    Folding events in parts gives the same state as at once. `state_mode` is merge (go on from `trace_state`) or
    replace; `mode` is full, or summary without the views; `output_views` names the views wanted. Steps and decisions
    are nodes of `decision_graph`; `confidence` is the mean of those that events state, absent without any;
    `risk_candidates` are failures, refusals, retries, steps without an end and breached thresholds.
    Refused: an unknown mode or view, a state of another version (`unsupported`), too many events (`too-large`).
    """
    _require_known("state_mode", state_mode or "merge", ("merge", "replace"))
    _require_known("mode", mode or "full", ("full", "summary"))
    for view in output_views or ():
        _require_known("output_views", view, _VIEWS)
    if len(events) > _MAX_EVENTS:
        raise Refused(
            "too-large", f"{len(events)} events; at most {_MAX_EVENTS} are folded at once"
        )
    earlier = trace_state if trace_state and state_mode != "replace" else None
    if earlier is not None and (earlier.get("version") != VERSION or not _is_state(earlier)):
        raise Refused(
            "unsupported", f"trace_state is none of version {VERSION}", "start with an empty one"
        )
    state: dict[str, Any] = copy.deepcopy(_EMPTY if earlier is None else earlier)
    session = trace_session_id or state["session_id"] or _session(goal, events)
    state["session_id"] = session
    for event in events:
        _fold(state, event)
    views: dict[str, object] = {
        "decision_graph": _graph(state),
        "assumptions": state["assumptions"],
        "alternative_paths": state["alternatives"],
        "risk_candidates": _risks(state, _limits(thresholds)),
        "summary": _summary(goal, state),
    }
    if state["confidences"]:
        views["confidence"] = round(math.fsum(state["confidences"]) / len(state["confidences"]), 4)
    wanted = output_views or (_VIEWS if mode != "summary" else ("summary",))
    return {
        "trace_session_id": session,
        "updated_trace_state": state,
        "state_checksum": checksum(state),
        "trace_version": VERSION,
        "events_errors": state["events_errors"],
        "method": "rules:fold",
        **{name: views[name] for name in wanted if name in views},
    }


def _require_known(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise Refused(
            "unsupported", f"{name}: {value!r:.40} is not known; known are {', '.join(known)}"
        )


def checksum(state: object) -> str:
    """SHA-256 of the state as canonical JSON."""
    text = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _session(goal: str, events: list[object]) -> str:
    """Return the id that the events share, else one of their content."""
    for name in ("trace_session_id", "session_id", "trace_id", "run_id"):
        found = next(
            (e[name] for e in events if isinstance(e, dict) and isinstance(e.get(name), str)), None
        )
        if found:
            return str(found)
    return "trace-" + checksum([goal, events[:1]])[7:19]


def _is_state(earlier: dict[str, Any]) -> bool:
    steps: Any = earlier.get("steps")
    parts = all(
        isinstance(earlier.get(name), type(v)) for name, v in _EMPTY.items() if v is not None
    )
    return parts and all(
        isinstance(s, dict) and _NEW_STEP.keys() <= s.keys() for s in steps.values()
    )


_NEW_STEP: dict[str, Any] = {
    "uses": "",
    "status": "pending",
    "starts": 0,
    "failed": 0,
    "retries": 0,
    "ms": 0,
}
_EMPTY: dict[str, Any] = {
    "version": VERSION,
    "session_id": "",
    "events": 0,
    "by_type": {},
    "steps": {},
    "decisions": [],
    "assumptions": [],
    "alternatives": [],
    "confidences": [],
    "events_errors": [],
    "first_at": None,
    "last_at": None,
}


def _fold(state: dict[str, Any], event: object) -> None:
    index = state["events"]
    state["events"] += 1
    if not isinstance(event, dict):
        _add(state["events_errors"], {"index": index, "found": type(event).__name__})
        return
    payload = event.get("payload", event.get("data"))
    data: dict[str, Any] = payload if isinstance(payload, dict) else {}
    both: dict[str, Any] = {**event, **data}
    named = both if "event_type" not in event else event
    kind = first_text(named, "event_type", "type", "event", "kind", "name") or "unknown"
    state["by_type"][kind] = state["by_type"].get(kind, 0) + 1
    at = first_text(event, "timestamp", "time", "ts")
    if at:
        state["first_at"] = min(state["first_at"] or at, at)
        state["last_at"] = max(state["last_at"] or at, at)
    for planned in list_of(both, "step_records"):
        if isinstance(planned, dict) and first_text(planned, "id"):
            step = _step(state, str(planned["id"]))
            step["uses"] = planned.get("capability", planned.get("uses")) or step["uses"]
            step["depends_on"] = [str(one) for one in list_of(planned, "depends_on")]
    name = first_text(both, "step_id", "step", "node_id", "node")
    if name:
        _fold_step(_step(state, name), kind, both, event)
    _fold_statements(state, kind, both, name, index)


def _fold_step(
    step: dict[str, Any], kind: str, both: dict[str, Any], event: dict[str, Any]
) -> None:
    status = first_text(both, "step_status", "status")
    step["uses"] = first_text(both, "uses", "capability", "capability_id") or step["uses"]
    step["retries"] += kind.endswith(("retried", "retry"))
    if kind.endswith(("started", "start")):
        step["starts"] += 1
        step["status"] = "running"
    ended = status if status in _ENDED and not kind.endswith(_BETWEEN) else ""
    ended = ended or next((end for endings, end in _ENDINGS.items() if kind.endswith(endings)), "")
    if ended:
        step["status"] = ended
        step["failed"] += ended in _FAILING
    metrics = event.get("metrics")
    given = {**metrics, **both} if isinstance(metrics, dict) else both
    latency = given.get("latency_ms", given.get("duration_ms"))
    if ended and is_number(latency):
        step["ms"] = round(step["ms"] + latency, 6)
    step["depends_on"] = [str(one) for one in list_of(both, "depends_on")] or step["depends_on"]


def _fold_statements(
    state: dict[str, Any], kind: str, both: dict[str, Any], step: str, index: int
) -> None:
    """Return what the event itself states: decisions, assumptions, alternatives, a confidence."""
    place = {"event": index, **({"step": step} if step else {})}
    decision = first_text(both, "decision", "verdict")
    if decision and kind.endswith(("decided", "decision", "verified")):
        shown = {"decision": decision, "by": first_text(both, "gate", "rule", "policy", "agent_id")}
        _add(
            state["decisions"], {**place, **shown, "reason": first_text(both, "reason")[:_MAX_TEXT]}
        )
    said = [both.get("text", both.get("message"))] if "assum" in kind else []
    for one in list_of(both, "assumptions") or said:
        if one:
            _add(state["assumptions"], {**place, "statement": one})
    options = list_of(both, "alternatives") or list_of(both, "candidates")
    attempts = [one for one in list_of(both, "attempts") if isinstance(one, dict)]
    if options or len(attempts) > 1:
        _add(state["alternatives"], {**place, "paths": (options or attempts)[:20]})
    confidence = both.get("confidence")
    if is_number(confidence) and 0 <= confidence <= 1:
        _add(state["confidences"], confidence)


def _step(state: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = state["steps"].setdefault(name, {**_NEW_STEP, "depends_on": []})
    return found


def _add(entries: list[Any], entry: object) -> None:
    if len(entries) < _MAX_LISTED:
        entries.append(entry)


def _graph(state: dict[str, Any]) -> dict[str, object]:
    steps, decisions = (
        state["steps"],
        {f"decision-{n}": one for n, one in enumerate(state["decisions"], 1)},
    )
    nodes = [
        {"id": name, "kind": "step", "uses": s["uses"], "status": s["status"]}
        for name, s in steps.items()
    ]
    edges = [{"from": one, "to": name} for name, s in steps.items() for one in s["depends_on"]]
    for name, made in decisions.items():
        nodes.append({"id": name, "kind": "decision", "by": made["by"], "status": made["decision"]})
        edges += [{"from": made["step"], "to": name}] if "step" in made else []
    return {"nodes": nodes, "edges": edges}


def _risks(state: dict[str, Any], limits: dict[str, float]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for name, step in state["steps"].items():
        flags = (
            ("failed", "high", step["failed"], step["status"]),
            ("retried", "low", step["retries"], f"{step['retries']} retries"),
            ("open", "medium", step["status"] == "running", "no end"),
        )
        found += [
            {"kind": kind, "step": name, "severity": severity, "text": f"{name}: {text}"}
            for kind, severity, holds, text in flags
            if holds
        ]
    for decision in state["decisions"]:
        if decision["decision"].lower() in _REFUSING:
            text = f"{decision['by'] or 'decision'}: {decision['decision']}"
            place = {"step": decision["step"]} if "step" in decision else {}
            found.append({"kind": "refused", "severity": "medium", "text": text, **place})
    return found + [
        {"kind": "threshold", "severity": "high", "text": text}
        for text in _breaches(_metrics(state), limits)
    ]


def _summary(goal: str, state: dict[str, Any]) -> str:
    counts = Counter(step["status"] for step in state["steps"].values())
    steps = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    times = f" from {state['first_at']} to {state['last_at']}" if state["first_at"] else ""
    retries = sum(step["retries"] for step in state["steps"].values())
    said = f"{state['events']} events{times}; {len(state['steps'])} steps ({steps or 'none'}); {retries} retries; "
    return f"{' '.join(goal.split())[:200]}: {said}{len(state['decisions'])} decisions."


def monitor_trace(
    trace: dict[str, object], thresholds: dict[str, object] | None = None
) -> dict[str, object]:
    """Return metrics of a trace and what is wrong with it: alert if a threshold is breached, warning if steps
    failed, were retried or have no end, else ok.

    The trace is the state that `analyze_trace` gives, or one with `steps` (a list or an object) or `metrics`, as an
    episode's has. Thresholds are `max_` and a metric: failed, retries, error_rate, elapsed_ms, step_ms, open, events.
    Refused: a trace without either (`no-evidence`), an unknown threshold (`bad-data`).
    """
    metrics = _metrics(trace)
    if not metrics:
        raise Refused("no-evidence", "the trace has neither steps nor metrics")
    alerts = _breaches(metrics, _limits(thresholds))
    flags = [name for name in ("failed", "retries", "open") if metrics.get(name)]
    status = "alert" if alerts else "warning" if flags else "ok"
    answer: dict[str, object] = {"status": status, "risk_flags": flags, "alerts": alerts}
    return answer | {"metrics": metrics, "method": "rules:thresholds"}


def _metrics(trace: dict[str, Any]) -> dict[str, float]:
    listed = trace.get("steps")
    entries = list(listed.values()) if isinstance(listed, dict) else list_of(trace, "steps")
    steps = [step for step in entries if isinstance(step, dict)]
    given = trace.get("metrics")
    found = {k: v for k, v in given.items() if is_number(v)} if isinstance(given, dict) else {}
    if not steps:
        return found
    failed = sum(1 for step in steps if step.get("failed") or step.get("status") in _FAILING)
    times = [
        ms for ms in (step.get("ms", step.get("latency_ms")) for step in steps) if is_number(ms)
    ]
    measured = {
        "steps": len(steps),
        "failed": failed,
        "retries": sum(step["retries"] for step in steps if is_number(step.get("retries"))),
        "open": sum(1 for step in steps if step.get("status") == "running"),
        "error_rate": round(failed / len(steps), 4),
        **({"elapsed_ms": round(math.fsum(times), 6), "step_ms": max(times)} if times else {}),
        **({"events": trace["events"]} if is_number(trace.get("events")) else {}),
    }
    return measured | found


def _limits(thresholds: dict[str, object] | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for key, value in (thresholds or {}).items():
        name = key.removeprefix("max_")
        if name not in _LIMITS or not key.startswith("max_") or not is_number(value):
            known = ", ".join(f"max_{name}" for name in _LIMITS)
            raise Refused(
                "bad-data", f"threshold {key!r:.40}: expected a number under one of {known}"
            )
        found[name] = value
    return found


def _breaches(metrics: dict[str, float], limits: dict[str, float]) -> list[str]:
    over = [name for name, limit in limits.items() if metrics.get(name, 0) > limit]
    return [f"{name} is {metrics[name]}, over {limits[name]}" for name in over]
