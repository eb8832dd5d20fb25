"""Rerun: a new episode that takes over earlier results and runs the rest again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli.app.rerun_effects import Again, again_of, parts_above
from cogcli.app.resume_adapters import require_whole
from cogcli.core.errors import SkillNotFoundError, UsageError
from cogcli.core.problems import suggestion
from cogcli.episode.effects import effects_of

if TYPE_CHECKING:
    from cogcli.app.logs import Warn
    from cogcli.app.run_skill import RunRequest
    from cogcli.app.settings import Settings
    from cogcli.core.calls import Answer, Attempt, BindingChain
    from cogcli.engine.plan import StepPlan
    from cogcli.engine.ports import CapabilityRunner
    from cogcli.episode.log_index import LogIndex
    from cogcli.mapping.apply import ReusedResult


class Reuse(NamedTuple):
    """Which steps of an earlier episode are taken over, and why each other step runs."""

    episode_id: str
    steps: Mapping[str, ReusedResult]
    why: dict[str, str]
    """Every step id in plan order, with what happens to it."""
    again: Again
    """What of the earlier run's effects would happen again."""

    def as_dict(self) -> dict[str, Any]:
        """What would be reused, called and asked, as it stands in the envelope."""
        questions = self.again.questions
        steps = []
        for step, why in self.why.items():
            asked = [question.as_dict() for question in questions if step in parts_above(question.step)]
            what = "asked" if asked else "reused" if why == "reused" or self.again.reuses(step) else "called"
            steps.append({"id": step, "what": what, "why": why, "effects": asked})
        return {"from": self.episode_id, "steps": steps, "effects": dict(self.again.said)}


class WholeInputs:
    """Live calls, none of which is handed a value that only a log's mask stands for."""

    def __init__(self, live: CapabilityRunner) -> None:
        self._live = live

    def chain(self, capability_id: str) -> BindingChain:
        return self._live.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        """The service's answer. Raises EnvironmentRefusal `resume.masked`."""
        require_whole(attempt)
        return self._live.attempt(attempt)

    def close(self, grace: float) -> None:
        self._live.close(grace)


def read_source_request(
    directory: Path, overrides: dict[str, Any], warn: Warn | None = None
) -> tuple[RunRequest, LogIndex]:
    """What an earlier run was asked, with what is asked otherwise now, and its recording."""
    from cogcli.app.logs import read_log_index
    from cogcli.app.run_skill import RunRequest

    events, recording = read_log_index(directory, warn)
    payload = events[0].payload
    options = payload["options"]
    request = RunRequest(
        skill_id=payload["skill"]["id"],
        inputs=payload["inputs"],
        frame={name: value for name, value in payload["frame"].items() if value},
        trace_id=None,
        trust_level=options["trust_level"],
        binds=options["binds"],
        fail_fast=options["fail_fast"],
        max_workers=options["max_workers"],
        timeout=options["timeout_seconds"],
        step_timeout=options["step_timeout_seconds"],
        conformance=options["required_conformance_profile"],
        seed=payload["seed"],
        tags=payload["tags"],
    )
    return request._replace(**overrides), recording


def reuse_of(recording: LogIndex, plan: StepPlan, from_step: str | None) -> Reuse:
    """The steps whose results are taken over: done then, and neither `from_step` nor downstream of it.

    Raises UsageError `step.unknown` for a step that the skill has not.
    """
    ids = [planned.step.id for planned in plan.steps]
    if from_step is not None and from_step not in ids:
        hint = suggestion(from_step, ids) or f"steps are {', '.join(ids[:20])}"
        raise UsageError("step.unknown", f"no step `{from_step}` in this skill", hint=hint)
    again = {from_step or ids[0]: "asked for"}
    for planned in plan.steps:
        needed = next((name for name in planned.depends_on if name in again), None)
        if needed is not None:
            again.setdefault(planned.step.id, f"needs {needed}")
    started = recording.started
    run_id = started.run_id if started else None
    why = {}
    for step_id in ids:
        closing = recording.closings.get((run_id, step_id))
        done = closing is not None and closing.event_type == "step.completed"
        why[step_id] = again.get(step_id) or ("reused" if done else "was not done")
    taken = {path: result for path, result in recording.results.items() if why.get(path) == "reused"}
    called = [step for step, reason in why.items() if reason != "reused"]
    return Reuse(started.episode_id if started else "", taken, why, again_of(effects_of(recording), called))


def prepare_reuse(
    settings: Settings,
    directory: Path,
    from_step: str | None,
    overrides: dict[str, Any],
    warn: Warn | None = None,
) -> Any:
    """The request, the loaded skill and the reuse of a rerun; every check of a run passed."""
    from cogcli.app.foreign_project import away
    from cogcli.app.recorded_permissions import require_own_level
    from cogcli.app.run_skill import load
    from cogcli.engine.plan import plan_skill

    request, recording = read_source_request(directory, overrides, warn)
    if recording.started and "trust_level" not in overrides:
        require_own_level(settings, directory, recording.started.payload["options"])
    try:
        loaded = load(settings, request)
    except SkillNotFoundError as error:
        raise away(error, directory, "rerun") from error
    catalog = loaded.catalog
    names = {alias: catalog.capabilities[id] for alias, id in catalog.aliases.items()}
    plan = plan_skill(loaded.skill, {**names, **catalog.capabilities}, catalog.skills)
    return request, loaded, reuse_of(recording, plan, from_step)
