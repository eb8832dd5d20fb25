"""Probes before a rerun: whether the calls in doubt of the earlier run happened (ADR 11).

A probe is called by a run of one step, so it is governed; the episode of that run is removed. Its answer is recorded
in the first event of the rerun, with the probe as the decider.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any, Final

from cogcli.app.rerun_effects import find_repeats
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
    """A copy of `reuse` with the answers of probes for effects in doubt that no choice was made for."""
    effects = reuse.effects

    def later_repeat(effect: Effect) -> str | None:
        return find_repeats(settings.runs_dir, effect.origin["episode"]).get(effect.origin["event"])

    for question in effects.questions:
        for effect in question.effects:
            capability = loaded.catalog.capability(effect.capability)
            if capability is None or not capability.probe or effect.state != IN_DOUBT or effect.input is None:
                continue
            found = _ask_probe(settings, loaded, request, capability, effect)
            if found is None:
                continue
            later = later_repeat(effect) if is_promise(found) else None
            if later:
                effects = effects._replace(repeated_in={**effects.repeated_in, effect.step: later})
            else:
                effects = effects.with_probe_answer(effect, found)
    return reuse._replace(effects=effects)


def _ask_probe(
    settings: Settings, loaded: CheckedSkill, request: RunRequest, capability: Capability, effect: Effect
) -> DoubtResolution | None:
    """The resolution that the probe gives; None unless its run ended with `ok` and a usable answer."""
    from cogcli.app import run_skill
    from cogcli.app.settings import Settings as RunSettings

    given = {"idempotency_key": effect.idempotency_key, "input": effect.input}
    raw = _probe_skill(capability.probe, given, loaded)
    specs = {key: spec for key, spec in loaded.catalog.raw.items() if not key.startswith("skill:")}
    alone = loaded.catalog._replace(
        skills={_SKILL: skill_from(raw, capability.file)}, raw={**specs, f"skill:{_SKILL}": raw}
    )
    with tempfile.TemporaryDirectory(prefix="cogcli-probe-") as runs_dir:
        own = RunSettings({"runs_dir": runs_dir}, settings.environ, base=settings.base)
        result = run_skill.run(
            own,
            loaded._replace(skill=alone.skills[_SKILL], catalog=alone, inputs={}, frame={}),
            request._replace(skill_id=_SKILL, inputs={}, frame={}, durability="none", tags={}),
        )
    if result.status != "ok":
        return None
    return resolution_of(capability, capability.probe, result.outputs or {})


def _probe_skill(probe: str, given: dict[str, Any], loaded: CheckedSkill) -> dict[str, Any]:
    """The specification of a skill whose only step calls the probe with these inputs."""
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
