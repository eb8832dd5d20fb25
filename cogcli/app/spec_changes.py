"""`validate --against`: what the present specs and packs mean for recorded runs
(docs/reference/command-line.md#against).

Whether a run may continue is judged as `resume` judges it, which steps a rerun repeats as `rerun` does, and decisions
as `policy diff --over` makes them. Nothing is called, and no episode is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import join
from typing import Final, Literal

from cogcli.app.ask_again import invoke_command, is_agent_run
from cogcli.app.policy_comparison import DecisionChange, EpisodeComparison, compare_with_current
from cogcli.app.policy_history import read_governed_log
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.declarations.run_start import RecordedStart, start_of
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.run.engine.plan import StepPlan, plan_skill
from cogcli.run.log_index import LogIndex
from cogcli.run.log_index_reading import read_log_index
from cogcli.run.replay import reach_present, read_pinned_catalog
from cogcli.run.rerun import plan_reuse
from cogcli.specs.catalog import Catalog
from cogcli.specs.skill import list_targets, targets_of

RunFate = Literal["finished", "continues", "may_continue", "restarts", "refused", "unknown"]
_PACK: Final = "pack:"
_TEXTS: Final = frozenset(("steps", "description", "version", "name", "metadata", "status"))
"""The members of a skill that are compared elsewhere, or are texts."""


class RunForecast(NamedTuple):
    """The effect of the current specs on one recorded run."""

    episode_id: str
    name: str
    """The skill or the agent."""
    fate: RunFate
    changed: tuple[str, ...] = ()
    """The pinned specs that differ now."""
    first_step: str = ""
    """The step from which a run that restarts must be repeated. Empty: the whole run."""
    why: str = ""
    next: str = ""
    """The command that does so."""
    decisions: int = 0
    """The number of recorded decisions that were made again."""
    changed_decisions: tuple[DecisionChange, ...] = ()
    """Those that are made otherwise now, or cannot be made again."""

    @property
    def is_affected(self) -> bool:
        """Whether the run cannot continue unchanged, or a decision would be different."""
        return self.fate not in ("finished", "continues") or bool(self.changed_decisions)

    @property
    def is_judged(self) -> bool:
        """Whether the run waits or has a recorded decision, so that there is something to compare."""
        return self.fate != "finished" or bool(self.decisions)

    def to_payload(self) -> Json:
        """Return the forecast as JSON."""
        payload: Json = {
            "episode_id": self.episode_id,
            "name": self.name,
            "fate": self.fate,
            "affected": self.is_affected,
            "changed": list(self.changed),
            "decisions": self.decisions,
            "changed_decisions": [each.to_payload() for each in self.changed_decisions],
        }
        texts = {"from": self.first_step, "why": self.why, "next": self.next}
        return payload | {name: text for name, text in texts.items() if text}


def forecast_run(settings: Settings, directory: Path) -> RunForecast:
    """Return the effect of the current specs on the run of an episode. An unreadable run is `unknown`."""
    try:
        return _forecast_readable(settings, directory)
    except UnusableEnvironment as error:
        return RunForecast(directory.name, "", "unknown", why=error.message)


def _forecast_readable(settings: Settings, directory: Path) -> RunForecast:
    _, log = read_log_index(directory)
    if log.started is None:
        raise UnusableEnvironment("episode.unreadable", "this log has no beginning")
    start = start_of(log.started)
    pinned = read_pinned_catalog(log.started, directory)
    is_over = log.root in log.ended.runs
    found = RunForecast(directory.name, start.skill.id, "finished" if is_over else "continues")
    try:
        present, changed = reach_present(open_registry(settings), log.started, lambda: pinned)
        found = _with_decisions(found, _compare_decisions(directory, present))
    except CogcliError as error:
        return found if is_over else found._replace(fate="refused", why=error.message)
    if is_over or not changed:
        return found
    waiting = _WaitingRun(directory.name, log, start, pinned, present, changed)
    return waiting.forecast(found)


def _compare_decisions(directory: Path, present: Catalog) -> EpisodeComparison | None:
    """Return the differences between the recorded decisions of a run and those of the current pack. None if the run had
    no pack.
    """
    governed = read_governed_log(directory)
    return compare_with_current(directory.name, governed, present) if governed else None


def _with_decisions(forecast: RunForecast, comparison: EpisodeComparison | None) -> RunForecast:
    if comparison is None:
        return forecast
    changed = (*comparison.changed, *comparison.undecided)
    return forecast._replace(decisions=comparison.decisions, changed_decisions=changed)


class _WaitingRun(NamedTuple):
    """A run that has not ended, and whose specs have changed."""

    episode_id: str
    log: LogIndex
    start: RecordedStart
    pinned: Catalog
    present: Catalog
    changed: list[str]

    def forecast(self, draft: RunForecast) -> RunForecast:
        """Return the forecast of a waiting run: the step from which it must be repeated, or that it may continue with
        the changes.
        """
        draft = draft._replace(changed=tuple(self.changed), why=self._name_changes())
        if is_agent_run(self.start):
            return self._forecast_agent(draft)
        skill = self.present.skills.get(self.start.skill.id)
        if skill is None:
            return draft._replace(fate="refused", why=f"no sound skill `{draft.name}`")
        plan = plan_skill(skill, self.present.by_name, self.present.skills)
        affected = self._find_affected_steps(plan, draft)
        begun = self._find_begun_steps(plan)
        repeated = begun if affected is None else [id for id in affected if id in begun]
        if not repeated:
            return self._may_continue(draft)
        first = "" if affected is None else self._find_first_step(plan, repeated)
        next = join(["cogcli", "rerun", self.episode_id, "--from", first]) if first else ""
        return draft._replace(fate="restarts", first_step=first, next=next)

    def _forecast_agent(self, draft: RunForecast) -> RunForecast:
        """Return the forecast of an agent's run, which has no steps to begin with: its request runs again."""
        packs_alone = all(key.startswith(_PACK) for key in self.changed)
        if packs_alone and not draft.changed_decisions:
            return self._may_continue(draft)
        return draft._replace(fate="restarts", next=invoke_command(self.start))

    def _may_continue(self, draft: RunForecast) -> RunForecast:
        next = join(["cogcli", "resume", self.episode_id, "--allow-changed-specs"])
        return draft._replace(fate="may_continue", next=next)

    def _name_changes(self) -> str:
        return ", ".join(f"`{key}`" for key in self.changed) + " changed"

    def _list_touched_specs(self) -> set[str]:
        """Return the ids of all changed specs but packs."""
        return {key.partition(":")[2] for key in self.changed if not key.startswith(_PACK)}

    def _find_used_specs(self, plan: StepPlan) -> dict[str, set[str]]:
        """Return the specs that each step uses, directly or indirectly."""
        used: dict[str, set[str]] = {}
        for planned in plan.steps:
            names = (target for _, target in targets_of(planned.step))
            used[planned.step.id] = set().union(*(self._list_used_specs(name) for name in names))
        return used

    def _find_affected_steps(self, plan: StepPlan, draft: RunForecast) -> list[str] | None:
        """Return the steps that the changes reach, in plan order. None if they reach the run as a whole."""
        touched = self._list_touched_specs() - {plan.skill.id}
        before = self.pinned.skills[plan.skill.id]
        known = {step.id: step.json for step in before.steps}
        decided = _find_decided_steps(draft)
        used = self._find_used_specs(plan)
        is_each_used = touched <= set().union(*used.values()) and known.keys() <= used.keys()
        if not is_each_used or _other_members(before) != _other_members(plan.skill):
            return None
        affected = decided | {id for id, specs in used.items() if specs & touched}
        steps = (planned.step for planned in plan.steps)
        return [s.id for s in steps if s.id in affected or known.get(s.id) != s.json]

    def _list_used_specs(self, target: str) -> set[str]:
        """Return the ids of all specs that a call of a target uses, in the pinned and in the
        present catalog.
        """
        return {
            name
            for catalog in (self.pinned, self.present)
            for name in _walk_specs(catalog, target, set())
        }

    def _find_begun_steps(self, plan: StepPlan) -> list[str]:
        """Return the steps that have begun, in plan order. A nested run begins before its step has an event."""
        keys = [*self.log.intents, *self.log.closings, *self.log.answers]
        begun = {StepPath(step or "").root_step for _, step in keys}
        return [planned.step.id for planned in plan.steps if planned.step.id in begun]

    def _find_first_step(self, plan: StepPlan, steps_to_repeat: Sequence[str]) -> str:
        """Return the step from which a rerun repeats all these steps, or an empty text.

        It is the first of them, or the last suitable one before it.
        """
        latest: list[str] = [planned.step.id for planned in reversed(plan.steps)]
        for first in (steps_to_repeat[0], *latest):
            why = plan_reuse(self.log, plan, {first: "asked for"}).why
            if all(why[step] != "reused" for step in steps_to_repeat):
                return first
        return ""


def _other_members(skill: Skill) -> Mapping[str, object]:
    """Return the members of a skill apart from its steps and texts."""
    return {name: value for name, value in skill.json.items() if name not in _TEXTS}


def _walk_specs(catalog: Catalog, target: str, visited: set[str]) -> Iterator[str]:
    """Yield the ids of the specs that a call uses: nested skills, capabilities, their gates, bindings and services."""
    if target in visited:
        return
    visited.add(target)
    if target.startswith(NESTED):
        id = target.removeprefix(NESTED)
        yield id
        skill = catalog.skills.get(id)
        for name in list_targets(skill) if skill else ():
            yield from _walk_specs(catalog, name, visited)
        return
    capability = catalog.capability(target)
    if capability is None:
        return
    yield capability.id
    for binding in catalog.bindings_of.get(capability.id, ()):
        yield from (binding, catalog.bindings[binding].service)
    for name in capability.asks:
        yield from _walk_specs(catalog, name, visited)


def _find_decided_steps(forecast: RunForecast) -> set[str]:
    """Return the steps of the root run with a decision that changes."""
    return {StepPath(each.event.step_id or "").root_step for each in forecast.changed_decisions}
