"""Folds events of any tool into the state of a trace, and reports failures, retries and times."""

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
    """Return the state after these events, and views of it: counts, steps, decisions, statements.

    Folding events in parts gives the same state as at once. `state_mode` is merge (continue from
    `trace_state`) or replace; `mode` is full, or summary without the views; `output_views` selects
    views. Steps and decisions are nodes of `decision_graph`; `confidence` is the mean of the stated
    ones, absent without any; `risk_candidates` are failures, refusals, retries, steps without an
    end and breached thresholds. Raise Refused `unsupported` for an unknown mode or view or a state
    of another version, `too-large` for too many events.
    """
    _require_choice("state_mode", state_mode or "merge", ("merge", "replace"))
    _require_choice("mode", mode or "full", ("full", "summary"))
    for view in output_views or ():
        _require_choice("output_views", view, _VIEWS)
    if len(events) > _MAX_EVENTS:
        raise Refused(
            "too-large", f"{len(events)} events; at most {_MAX_EVENTS} are folded at once"
        )
    earlier = trace_state if trace_state and state_mode != "replace" else None
    if earlier is not None and (earlier.get("version") != VERSION or not _is_valid_state(earlier)):
        raise Refused(
            "unsupported", f"trace_state is none of version {VERSION}", "start with an empty one"
        )
    state: dict[str, Any] = copy.deepcopy(_EMPTY if earlier is None else earlier)
    session = trace_session_id or state["session_id"] or _session_id(goal, events)
    state["session_id"] = session
    for event in events:
        _apply_event(state, event)
    views: dict[str, object] = {
        "decision_graph": _decision_graph(state),
        "assumptions": state["assumptions"],
        "alternative_paths": state["alternatives"],
        "risk_candidates": _find_risks(state, _parse_thresholds(thresholds)),
        "summary": _summary_text(goal, state),
    }
    if state["confidences"]:
        views["confidence"] = round(math.fsum(state["confidences"]) / len(state["confidences"]), 4)
    selected_views = output_views or (_VIEWS if mode != "summary" else ("summary",))
    return {
        "trace_session_id": session,
        "updated_trace_state": state,
        "state_checksum": checksum(state),
        "trace_version": VERSION,
        "events_errors": state["events_errors"],
        "method": "rules:fold",
        **{name: views[name] for name in selected_views if name in views},
    }


def _require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise Refused if a value is not one of `choices`."""
    if value not in choices:
        raise Refused(
            "unsupported", f"{name}: {value!r:.40} is not known; known are {', '.join(choices)}"
        )


def checksum(state: object) -> str:
    """Return the SHA-256 of the state as canonical JSON."""
    text = json.dumps(state, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _session_id(goal: str, events: list[object]) -> str:
    """Return the session id in the events, else one derived from goal and first event."""
    for name in ("trace_session_id", "session_id", "trace_id", "run_id"):
        found = next(
            (e[name] for e in events if isinstance(e, dict) and isinstance(e.get(name), str)), None
        )
        if found:
            return str(found)
    return "trace-" + checksum([goal, events[:1]])[7:19]


def _is_valid_state(earlier: dict[str, Any]) -> bool:
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


def _apply_event(state: dict[str, Any], event: object) -> None:
    """Change the state by one event."""
    index = state["events"]
    state["events"] += 1
    if not isinstance(event, dict):
        _add_entry(state["events_errors"], {"index": index, "found": type(event).__name__})
        return
    payload = event.get("payload", event.get("data"))
    data: dict[str, Any] = payload if isinstance(payload, dict) else {}
    members: dict[str, Any] = {**event, **data}
    source_of_kind = members if "event_type" not in event else event
    kind = first_text(source_of_kind, "event_type", "type", "event", "kind", "name") or "unknown"
    state["by_type"][kind] = state["by_type"].get(kind, 0) + 1
    time = first_text(event, "timestamp", "time", "ts")
    if time:
        state["first_at"] = min(state["first_at"] or time, time)
        state["last_at"] = max(state["last_at"] or time, time)
    for record in list_of(members, "step_records"):
        if isinstance(record, dict) and first_text(record, "id"):
            step = _step_state(state, str(record["id"]))
            step["uses"] = record.get("capability", record.get("uses")) or step["uses"]
            step["depends_on"] = [str(one) for one in list_of(record, "depends_on")]
    name = first_text(members, "step_id", "step", "node_id", "node")
    if name:
        _apply_to_step(_step_state(state, name), kind, members, event)
    _add_statements(state, kind, members, name, index)


def _apply_to_step(
    step: dict[str, Any], kind: str, members: dict[str, Any], event: dict[str, Any]
) -> None:
    """Change the state of a step by one event about it."""
    status = first_text(members, "step_status", "status")
    step["uses"] = first_text(members, "uses", "capability", "capability_id") or step["uses"]
    step["retries"] += kind.endswith(("retried", "retry"))
    if kind.endswith(("started", "start")):
        step["starts"] += 1
        step["status"] = "running"
    ending = status if status in _ENDED and not kind.endswith(_BETWEEN) else ""
    ending = ending or next(
        (end for endings, end in _ENDINGS.items() if kind.endswith(endings)), ""
    )
    if ending:
        step["status"] = ending
        step["failed"] += ending in _FAILING
    metrics = event.get("metrics")
    figures = {**metrics, **members} if isinstance(metrics, dict) else members
    latency = figures.get("latency_ms", figures.get("duration_ms"))
    if ending and is_number(latency):
        step["ms"] = round(step["ms"] + latency, 6)
    step["depends_on"] = [str(one) for one in list_of(members, "depends_on")] or step["depends_on"]


def _add_statements(
    state: dict[str, Any], kind: str, members: dict[str, Any], step: str, index: int
) -> None:
    """Add the decisions, assumptions, alternatives and confidence that an event states."""
    place = {"event": index, **({"step": step} if step else {})}
    decision = first_text(members, "decision", "verdict")
    if decision and kind.endswith(("decided", "decision", "verified")):
        decided = {
            "decision": decision,
            "by": first_text(members, "gate", "rule", "policy", "agent_id"),
        }
        _add_entry(
            state["decisions"],
            {**place, **decided, "reason": first_text(members, "reason")[:_MAX_TEXT]},
        )
    assumption = [members.get("text", members.get("message"))] if "assum" in kind else []
    for one in list_of(members, "assumptions") or assumption:
        if one:
            _add_entry(state["assumptions"], {**place, "statement": one})
    options = list_of(members, "alternatives") or list_of(members, "candidates")
    attempts = [one for one in list_of(members, "attempts") if isinstance(one, dict)]
    if options or len(attempts) > 1:
        _add_entry(state["alternatives"], {**place, "paths": (options or attempts)[:20]})
    confidence = members.get("confidence")
    if is_number(confidence) and 0 <= confidence <= 1:
        _add_entry(state["confidences"], confidence)


def _step_state(state: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = state["steps"].setdefault(name, {**_NEW_STEP, "depends_on": []})
    return found


def _add_entry(entries: list[Any], entry: object) -> None:
    if len(entries) < _MAX_LISTED:
        entries.append(entry)


def _decision_graph(state: dict[str, Any]) -> dict[str, object]:
    steps, decisions = (
        state["steps"],
        {f"decision-{n}": one for n, one in enumerate(state["decisions"], 1)},
    )
    nodes = [
        {"id": name, "kind": "step", "uses": s["uses"], "status": s["status"]}
        for name, s in steps.items()
    ]
    edges = [{"from": one, "to": name} for name, s in steps.items() for one in s["depends_on"]]
    for name, decision in decisions.items():
        nodes.append(
            {"id": name, "kind": "decision", "by": decision["by"], "status": decision["decision"]}
        )
        edges += [{"from": decision["step"], "to": name}] if "step" in decision else []
    return {"nodes": nodes, "edges": edges}


def _find_risks(state: dict[str, Any], limits: dict[str, float]) -> list[dict[str, object]]:
    risks: list[dict[str, object]] = []
    for name, step in state["steps"].items():
        flags = (
            ("failed", "high", step["failed"], step["status"]),
            ("retried", "low", step["retries"], f"{step['retries']} retries"),
            ("open", "medium", step["status"] == "running", "no end"),
        )
        risks += [
            {"kind": kind, "step": name, "severity": severity, "text": f"{name}: {text}"}
            for kind, severity, applies, text in flags
            if applies
        ]
    for decision in state["decisions"]:
        if decision["decision"].lower() in _REFUSING:
            text = f"{decision['by'] or 'decision'}: {decision['decision']}"
            place = {"step": decision["step"]} if "step" in decision else {}
            risks.append({"kind": "refused", "severity": "medium", "text": text, **place})
    return risks + [
        {"kind": "threshold", "severity": "high", "text": text}
        for text in _find_breaches(_compute_metrics(state), limits)
    ]


def _summary_text(goal: str, state: dict[str, Any]) -> str:
    counts = Counter(step["status"] for step in state["steps"].values())
    steps = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    times = f" from {state['first_at']} to {state['last_at']}" if state["first_at"] else ""
    retries = sum(step["retries"] for step in state["steps"].values())
    step_text = f"{len(state['steps'])} steps ({steps or 'none'}); {retries} retries"
    counts_text = f"{state['events']} events{times}; {step_text}; "
    return f"{' '.join(goal.split())[:200]}: {counts_text}{len(state['decisions'])} decisions."


def monitor_trace(
    trace: dict[str, object], thresholds: dict[str, object] | None = None
) -> dict[str, object]:
    """Return metrics of a trace and its status: alert, warning or ok.

    Alert means a breached threshold, warning means failed, retried or open steps. The trace is the
    state that `analyze_trace` gives, or an object with `steps` (a list or an object) or `metrics`,
    as an episode has. Thresholds are `max_` and a metric: failed, retries, error_rate, elapsed_ms,
    step_ms, open, events. Raise Refused `no-evidence` for a trace without either, `bad-data` for an
    unknown threshold.
    """
    metrics = _compute_metrics(trace)
    if not metrics:
        raise Refused("no-evidence", "the trace has neither steps nor metrics")
    alerts = _find_breaches(metrics, _parse_thresholds(thresholds))
    flags = [name for name in ("failed", "retries", "open") if metrics.get(name)]
    status = "alert" if alerts else "warning" if flags else "ok"
    answer: dict[str, object] = {"status": status, "risk_flags": flags, "alerts": alerts}
    return answer | {"metrics": metrics, "method": "rules:thresholds"}


def _compute_metrics(trace: dict[str, Any]) -> dict[str, float]:
    steps_member = trace.get("steps")
    entries = (
        list(steps_member.values()) if isinstance(steps_member, dict) else list_of(trace, "steps")
    )
    steps = [step for step in entries if isinstance(step, dict)]
    metrics_member = trace.get("metrics")
    stated = (
        {k: v for k, v in metrics_member.items() if is_number(v)}
        if isinstance(metrics_member, dict)
        else {}
    )
    if not steps:
        return stated
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
    return measured | stated


def _parse_thresholds(thresholds: dict[str, object] | None) -> dict[str, float]:
    limits: dict[str, float] = {}
    for key, value in (thresholds or {}).items():
        name = key.removeprefix("max_")
        if name not in _LIMITS or not key.startswith("max_") or not is_number(value):
            supported = ", ".join(f"max_{name}" for name in _LIMITS)
            raise Refused(
                "bad-data", f"threshold {key!r:.40}: expected a number under one of {supported}"
            )
        limits[name] = value
    return limits


def _find_breaches(metrics: dict[str, float], limits: dict[str, float]) -> list[str]:
    exceeded = [name for name, limit in limits.items() if metrics.get(name, 0) > limit]
    return [f"{name} is {metrics[name]}, over {limits[name]}" for name in exceeded]
