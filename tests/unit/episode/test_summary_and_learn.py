"""Summary and reflection follow from the log, each figure by one formula."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sample_episode as sample
from fakes.logged import event

from cogcli.base.canonical import digest
from cogcli.declarations.checked import adapter_of
from cogcli.declarations.documents import Proposal
from cogcli.declarations.envelope import draft_of
from cogcli.declarations.events import CallRetried
from cogcli.declarations.governance_events import GateDecided
from cogcli.episode import learn
from cogcli.episode.log_fold import LogFold
from cogcli.episode.seal import seal


def eventful(runs_dir: Path) -> Path:
    """A run with a fallback, a retry that helped, a slow step, a warning, a veto and an output never made."""
    journal = sample.new_journal(runs_dir)
    sample.started(journal, options={"step_timeout_seconds": 1.0, "timeout_seconds": 0.004})
    names = ("fall", "again", "slow", "stop", "never")
    capabilities = {**dict.fromkeys(names, "text.file.read"), "stop": "mail.send"}
    sample.planned(journal, *((name, "act", name) for name in names), capabilities=capabilities)
    intent = sample.began(journal, "fall")
    journal.append(retry("fall", "fallback"))
    attempts = [
        {
            "binding_id": "first",
            "service_id": "a",
            "status": "failed",
            "code": "call.timeout",
            "message": "late",
        },
        {"binding_id": "second", "service_id": "b", "status": "success"},
    ]
    sample.ended(journal, "fall", intent, output={}, attempts=attempts)
    intent = sample.began(journal, "again")
    journal.append(retry("again", "retry"))
    sample.ended(journal, "again", intent, output={})
    sample.ended(journal, "slow", sample.began(journal, "slow"), output={}, latency_ms=900)
    payload = {
        "decision": "audit",
        "verdict": "warn",
        "gate": "g",
        "on_fail": "warn",
        "reason": "",
        "enforced": False,
    }
    journal.append(
        draft_of(GateDecided(**payload), sample.RUN, step_id="stop@pre0", speaker="policy:g")
    )
    error = {"code": "safety.gate", "message": "no", "retryable": False}
    sample.ended(
        journal, "stop", None, ending="vetoed", reason="safety.gate", uses="mail.send", error=error
    )
    sample.ended(
        journal, "never", None, ending="skipped", reason="dependency", uses="text.file.read"
    )
    sample.terminated(
        journal,
        "vetoed",
        status_reason="safety.gate",
        error=error,
        outputs={},
        required_missing=["notes"],
    )
    seal(journal)
    journal.close()
    return journal.directory


def retry(step: str, reason: str) -> Any:
    payload = CallRetried(
        step_id=step, attempt=2, binding="second", service="b", reason=reason, wait_ms=0
    )
    return draft_of(payload, sample.RUN, step_id=step, speaker="second")


def read(directory: Path, name: str) -> Any:
    return json.loads((directory / name).read_bytes())


def test_counts_and_metrics_follow_their_formulas(tmp_path: Path) -> None:
    summary = read(eventful(tmp_path), "summary.json")
    assert summary["counts"] == {
        "steps": {"pending": 0, "running": 0, "done": 3, "skipped": 1, "failed": 0, "vetoed": 1},
        "calls": 3,
        "retries": 1,
        "fallbacks": 1,
        "vetoes": 1,
        "approvals": 0,
    }
    metrics = summary["metrics"]
    assert metrics["success"] is False
    assert metrics["plan_adherence"] == 3 / 5
    assert metrics["tool_coverage"] == 1 / 2
    assert (metrics["veto_count"], metrics["would_veto_count"]) == (1, 1)
    assert (metrics["retry_count"], metrics["fallback_count"]) == (1, 1)
    assert metrics["first_action_ms"] == 2
    assert metrics["time_to_veto_ms"] == 11
    assert metrics["step_latency_ms"] == {"fall": 12, "again": 12, "slow": 900}
    assert metrics["tool_calls"] == 3
    assert summary["budgets"] == {"wall_clock_ms": {"limit": 4, "used": 4}}
    assert (summary["status"], summary["status_reason"]) == ("vetoed", "safety.gate")


def test_ratios_are_null_where_there_is_nothing_to_divide_by(tmp_path: Path) -> None:
    journal = sample.new_journal(tmp_path)
    sample.started(journal)
    sample.terminated(journal)
    seal(journal)
    journal.close()
    metrics = read(journal.directory, "summary.json")["metrics"]
    assert (metrics["plan_adherence"], metrics["tool_coverage"]) == (None, None)
    assert (metrics["first_action_ms"], metrics["time_to_veto_ms"]) == (None, None)


def test_the_reflection_is_one_chained_line_about_the_terminate_event(tmp_path: Path) -> None:
    directory = eventful(tmp_path)
    [line] = (directory / "learn.jsonl").read_bytes().splitlines()
    entry = json.loads(line)
    ended = next(
        json.loads(line)
        for line in (directory / "events.jsonl").read_bytes().splitlines()
        if b"run.terminated" in line
    )
    assert entry["id"] == f"lr_{ended['id'][3:]}"
    assert (entry["timestamp"], entry["caused_by"]) == (ended["timestamp"], ended["id"])
    assert entry["prev"] == digest(f"cogcli/learn/1:{ended['episode_id']}".encode())
    assert entry["basis"]["success"] is False
    assert entry["basis"]["reasons"] == ["safety.gate", "no"]


def test_proposals_are_drawn_from_what_happened_with_their_evidence(tmp_path: Path) -> None:
    directory = eventful(tmp_path)
    entry = json.loads((directory / "learn.jsonl").read_bytes())
    assert [(proposal["kind"], proposal["about"]) for proposal in entry["proposals"]] == [
        ("binding-fallback", "first"),
        ("step-timeout", "slow"),
        ("second-try", "again"),
        ("budget-spent", "wall_clock_ms"),
        ("output-missing", "notes"),
    ]
    known = {
        json.loads(line)["id"] for line in (directory / "events.jsonl").read_bytes().splitlines()
    }
    for proposal in entry["proposals"]:
        assert proposal["evidence_ids"]
        assert known.issuperset(proposal["evidence_ids"])


def test_an_uneventful_run_proposes_nothing(tmp_path: Path) -> None:
    entry = json.loads((sample.sealed_episode(tmp_path) / "learn.jsonl").read_bytes())
    assert entry["proposals"] == []
    assert entry["basis"]["success"] is True


def pressed(*values: float) -> list[dict[str, Any]]:
    """The proposals of a run whose turns had this loop pressure."""
    fold = LogFold()
    for number, value in enumerate(values):
        state = {"turn": number + 1, "loop_pressure": value, "gate_pressure": 0.1}
        fold.counters.apply(
            event(0, "functional_state.captured", "insight", state, id=f"ev_{number}"), is_root=True
        )
    return [proposal for rule in learn._RULES[-1:] for proposal in rule(fold)]


def test_three_turns_in_a_row_under_high_pressure_are_a_proposal() -> None:
    assert pressed(0.8, 0.8) == pressed(0.9, 0.9, 0.79, 1.0, 0.8) == pressed() == []
    (proposal,) = pressed(0.1, 0.8, 0.9, 1.0, 0.2, 0.9)
    assert (proposal["kind"], proposal["about"], proposal["count"]) == (
        "high-pressure",
        "loop_pressure",
        3,
    )
    assert proposal["evidence_ids"] == ["ev_1", "ev_2", "ev_3"]
    assert adapter_of(Proposal).validate_python(proposal)
