"""A small run written by hand through the journal, as the engine writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cogcli.base.redact import Redactor
from cogcli.base.system import Clock, FakeClock, FakeIds
from cogcli.declarations.envelope import Draft, Event, draft_of
from cogcli.declarations.events import ENDINGS, PlanCreated, RunStarted, RunTerminated, StepStarted
from cogcli.episode.journal import Journal
from cogcli.episode.reopen import ReopenedEpisode
from cogcli.episode.seal import seal
from cogcli.episode.store import Store

RUN = "run_00000000000000aa"
CHILD = "run_00000000000000bb"
SPECS = b'{"skills":{}}'


def new_journal(
    runs_dir: Path,
    *,
    seed: int = 0,
    secrets: tuple[str, ...] = (),
    durability: str = "process",
    owner: bytes | None = None,
) -> Journal:
    """An empty episode; time and ids count up."""
    ids = FakeIds(seed)
    return Store(runs_dir, owner=owner).create(
        f"ep_{ids.ulid()}",
        trace_id=ids.trace_id(),
        clock=FakeClock(1_700_000_000),
        ids=ids,
        redactor=Redactor(secrets),
        durability=durability,
    )


START: dict[str, Any] = {
    "task": "Draft release notes",
    "skill": {"id": "notes.draft", "version": "1.0.0"},
    "inputs": {"file": "CHANGELOG.md"},
    "frame": {"goal": "Draft release notes"},
    "options": {"step_timeout_seconds": 60.0, "timeout_seconds": None},
    "seed": 7,
    "using": "runner",
    "tags": {"team": "platform"},
    "selection": {},
    "parent_run_id": None,
    "pins": {"specs": {}, "policy": None, "cogcli": "0.1.0", "python": "3.11"},
}


def started(journal: Journal, **changes: Any) -> Event:
    """The first event."""
    return journal.append(draft_of(RunStarted(**{**START, **changes}), RUN))


def planned(
    journal: Journal, *steps: tuple[str, str, str], capabilities: dict[str, str] | None = None
) -> Event:
    """The plan: (id, kind, description) each, in a chain; `capabilities` by step id."""
    records, before = [], []
    for step_id, kind, description in steps:
        records.append(
            {
                "id": step_id,
                "kind": kind,
                "description": description,
                "status": "pending",
                "depends_on": list(before),
                "inputs": {},
                **({"capability": capabilities[step_id]} if capabilities else {}),
            }
        )
        before = [step_id]
    labels = [f"{record['kind']}:{record['description']}" for record in records]
    plan = PlanCreated(
        source="planner.skill", rationale="in order", step_records=records, steps=labels
    )
    return journal.append(draft_of(plan, RUN, speaker="planner.skill"))


def began(journal: Journal, step_id: str, *, run_id: str = RUN, **payload: Any) -> Event:
    """The intent of a call."""
    body = {
        "uses": "text.file.read",
        "capability": "text.file.read",
        "binding": "read_local",
        "service": "files",
        "input": {"file": "CHANGELOG.md"},
        "reads": ["inputs.file"],
        "attempt": 1,
        "idempotency_key": f"{run_id}:{step_id}",
        "side_effects": "none",
        "decision": {"verdict": "allow", "policy": "builtin.default"},
        **payload,
    }
    intent = StepStarted(step_id=step_id, **body)
    return journal.append(draft_of(intent, run_id, step_id=step_id, speaker="read_local"))


def ended(
    journal: Journal,
    step_id: str,
    intent: Event | None,
    *,
    ending: str = "done",
    run_id: str = RUN,
    **payload: Any,
) -> Event:
    """The end of a step, called if there was an intent."""
    body: dict[str, Any] = {"uses": "text.file.read", "writes": [], "reads": [], "latency_ms": None}
    if intent is not None:
        body |= {
            "capability": "text.file.read",
            "action_id": f"act_{intent.id[3:]}",
            "tool": "pythoncall:files",
            "kind": "detect",
            "input_excerpt": '{"file":"CHANGELOG.md"}',
            "attempts": [{"binding_id": "read_local", "service_id": "files", "status": "success"}],
            "latency_ms": 12,
            "usage": {"llm_calls": 0, "tool_calls": 1, "tokens_in": 0, "tokens_out": 0},
            "result_artifacts": [],
        }
    metrics = None
    if intent is not None:
        metrics = {
            "started_at": intent.timestamp,
            "completed_at": intent.timestamp,
            "duration_ms": 12,
        }
    return journal.append(
        draft_of(
            ENDINGS[ending](step_id=step_id, **{**body, **payload}),
            run_id,
            step_id=step_id,
            speaker="read_local" if intent else "system",
            metrics=metrics,
            caused_by=intent.id if intent else None,
        )
    )


def terminated(journal: Journal, status: str = "ok", **changes: Any) -> Event:
    """The outcome."""
    given: dict[str, Any] = {
        "status_reason": None,
        "outputs": {"notes": "three features"},
        "error": None,
        "required_missing": [],
    }
    metrics = {"started_at": "2023-11-14T22:13:20.001000Z", "completed_at": None, "duration_ms": 4}
    metrics = changes.pop("metrics", metrics)
    payload = RunTerminated(status=status, **{**given, **changes})  # type: ignore[arg-type]
    return journal.append(draft_of(payload, RUN, metrics=metrics), durable=True)


def written(target: str, value: Any, strategy: str = "overwrite") -> dict[str, Any]:
    """One write of a finish event."""
    return {"target": target, "strategy": strategy, "value": value}


def write_run(journal: Journal) -> None:
    """A whole run of three steps, up to its terminate event."""
    started(journal)
    planned(
        journal,
        ("read", "detect", "Read changelog"),
        ("sort", "analyze", "Sort changes"),
        ("write", "act", "Write notes"),
    )
    intent = began(journal, "read")
    ended(
        journal,
        "read",
        intent,
        output={"entries": 15},
        writes=[
            written("vars.entries", 15),
            written(
                "working.hypotheses", [{"statement": "It is a minor release", "confidence": 1.7}]
            ),
            written("working.messages", [{"role": "note", "content": "3 breaking changes found"}]),
        ],
    )
    ended(journal, "sort", None, ending="skipped", reason="condition")
    intent = began(journal, "write")
    ended(
        journal,
        "write",
        intent,
        output={"notes": "three features"},
        writes=[
            written("working.artifacts.notes", {"text": "three features"}),
            written("outputs.notes", "three features"),
        ],
        result_artifacts=["notes"],
    )
    terminated(journal)


def one_step_done(runs_dir: Path) -> Journal:
    """A run of two steps, of which the first has ended."""
    journal = new_journal(runs_dir)
    started(journal)
    planned(journal, ("read", "detect", "Read"), ("write", "act", "Write"))
    ended(journal, "read", began(journal, "read"))
    return journal


def reopened(
    directory: Path, *, clock: Clock | None = None, seed: int = 90_000, mend: bool = False
) -> ReopenedEpisode:
    """An episode opened again, later and with other ids."""
    return Store(directory.parent).reopen(
        directory,
        clock=clock or FakeClock(1_700_000_100),
        ids=FakeIds(seed),
        redactor=Redactor(),
        mend=mend,
    )


def sealed_episode(runs_dir: Path, **options: Any) -> Path:
    """The directory of a sealed episode."""
    journal = new_journal(runs_dir, **options)
    write_run(journal)
    seal(journal)
    journal.close()
    return journal.directory


def raw_event(
    run_id: str, event_type: str, phase: str, payload: dict[str, Any], **rest: Any
) -> Draft:
    """Any event at all."""
    return Draft(event_type, phase, run_id, payload, **rest)
