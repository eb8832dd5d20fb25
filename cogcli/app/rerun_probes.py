"""Asking, before a rerun begins, whether calls of the earlier run happened that nobody knows the end of (ADR 11).

The probe is called through the governed call: a run of one step, whose episode is thrown away. What it answers stands
in the first event of the rerun, with the probe as the one who said so.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any, Final

from cogcli.app.rerun_effects import again_since
from cogcli.engine.probe import is_promise, resolution_of
from cogcli.episode.effects import IN_DOUBT
from cogcli.specs.skill import skill_from

if TYPE_CHECKING:
    from cogcli.app.rerun import Reuse
    from cogcli.app.run_skill import CheckedSkill, RunRequest
    from cogcli.app.settings import Settings
    from cogcli.engine.doubt import DoubtResolution
    from cogcli.episode.effects import Effect
    from cogcli.specs.capability import Capability

_SKILL: Final = "cogcli.probe"


def probe_effects(settings: Settings, loaded: CheckedSkill, request: RunRequest, reuse: Reuse) -> Reuse:
    """The same with what probes know about the effects that are still asked about."""
    again = reuse.again

    def since_of(effect: Effect) -> str | None:
        return again_since(settings.runs_dir, effect.origin["episode"]).get(effect.origin["event"])

    for question in again.questions:
        for effect in question.effects:
            capability = loaded.catalog.capability(effect.capability)
            if capability is None or not capability.probe or effect.state != IN_DOUBT or effect.input is None:
                continue
            found = _ask_probe(settings, loaded, request, capability, effect)
            if found is None:
                continue
            since = since_of(effect) if is_promise(found) else None
            if since:
                again = again._replace(since={**again.since, effect.step: since})
            else:
                again = again.known_from(effect, found)
    return reuse._replace(again=again)


def _ask_probe(
    settings: Settings, loaded: CheckedSkill, request: RunRequest, capability: Capability, effect: Effect
) -> DoubtResolution | None:
    """What the probe says. However its run ends otherwise, it gives no answer."""
    from cogcli.app import run_skill
    from cogcli.app.settings import Settings as Fresh

    given = {"idempotency_key": effect.idempotency_key, "input": effect.input}
    raw = _skill(capability.probe, given, loaded)
    specs = {key: spec for key, spec in loaded.catalog.raw.items() if not key.startswith("skill:")}
    alone = loaded.catalog._replace(
        skills={_SKILL: skill_from(raw, capability.file)}, raw={**specs, f"skill:{_SKILL}": raw}
    )
    with tempfile.TemporaryDirectory(prefix="cogcli-probe-") as runs_dir:
        own = Fresh({"runs_dir": runs_dir}, settings.environ, base=settings.base)
        result = run_skill.run(
            own,
            loaded._replace(skill=alone.skills[_SKILL], catalog=alone, inputs={}, frame={}),
            request._replace(skill_id=_SKILL, inputs={}, frame={}, durability="none", tags={}),
        )
    if result.status != "ok":
        return None
    return resolution_of(capability, capability.probe, result.outputs or {})


def _skill(probe: str, given: dict[str, Any], loaded: CheckedSkill) -> dict[str, Any]:
    """A skill that asks the probe, and nothing else."""
    declared = loaded.catalog.capability(probe)
    names = [name for name in ("happened", "output") if declared and name in declared.outputs]
    step = {
        "id": "probe",
        "uses": probe,
        "input": {name: {"$literal": value} for name, value in given.items()},
        "output": {name: f"outputs.{name}" for name in names},
    }
    return {
        "id": _SKILL,
        "version": "1.0.0",
        "name": "Probe",
        "description": f"Asks {probe} whether a call happened.",
        "inputs": {},
        "outputs": {name: {"type": "any"} for name in names},
        "steps": [step],
    }
