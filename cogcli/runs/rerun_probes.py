"""Probes before a rerun: whether the calls in doubt of the earlier run happened (ADR 11).

A probe is called by a run of one step, so it is governed; the episode of that run is removed. Its answer is recorded
in the first event of the rerun, with the probe as the decider.
"""

from __future__ import annotations

import tempfile
from typing import Any, Final

from cogcli.engine.doubt import DoubtResolution
from cogcli.engine.probe import is_promise, resolution_of
from cogcli.runs.effects import IN_DOUBT, Effect
from cogcli.runs.environment import RunEnvironment
from cogcli.runs.launch import launch
from cogcli.runs.prepare import PreparedRun
from cogcli.runs.rerun import Reuse
from cogcli.runs.rerun_effects import find_repeats
from cogcli.specs.capability import Capability
from cogcli.specs.skill import skill_from

_SKILL: Final = "cogcli.probe"


def probe_effects(environment: RunEnvironment, prepared: PreparedRun, reuse: Reuse) -> Reuse:
    """A copy of `reuse` with the answers of probes for effects in doubt that no choice was made for."""
    effects = reuse.effects

    def later_repeat(effect: Effect) -> str | None:
        return find_repeats(environment.runs_dir, effect.origin["episode"]).get(effect.origin["event"])

    for question in effects.questions:
        for effect in question.effects:
            capability = prepared.catalog.capability(effect.capability)
            if capability is None or not capability.probe or effect.state != IN_DOUBT or effect.input is None:
                continue
            found = _ask_probe(environment, prepared, capability, effect)
            if found is None:
                continue
            later = later_repeat(effect) if is_promise(found) else None
            if later:
                effects = effects._replace(repeated_in={**effects.repeated_in, effect.step: later})
            else:
                effects = effects.with_probe_answer(effect, found)
    return reuse._replace(effects=effects)


def _ask_probe(
    environment: RunEnvironment, prepared: PreparedRun, capability: Capability, effect: Effect
) -> DoubtResolution | None:
    """The resolution that the probe gives; None unless its run ended with `ok` and a usable answer."""
    given = {"idempotency_key": effect.idempotency_key, "input": effect.input}
    raw = _probe_skill(capability.probe, given, prepared)
    specs = {key: spec for key, spec in prepared.catalog.raw.items() if not key.startswith("skill:")}
    alone = prepared.catalog._replace(
        skills={_SKILL: skill_from(raw, capability.file)}, raw={**specs, f"skill:{_SKILL}": raw}
    )
    with tempfile.TemporaryDirectory(prefix="cogcli-probe-") as runs_dir:
        result = launch(
            environment._replace(runs_dir=runs_dir),
            prepared._replace(
                request=prepared.request._replace(skill_id=_SKILL, durability="none", tags={}),
                skill=alone.skills[_SKILL],
                catalog=alone,
                inputs={},
                frame={},
            ),
        )
    if result.status != "ok":
        return None
    return resolution_of(capability, capability.probe, result.outputs or {})


def _probe_skill(probe: str, given: dict[str, Any], prepared: PreparedRun) -> dict[str, Any]:
    """The specification of a skill whose only step calls the probe with these inputs."""
    declared = prepared.catalog.capability(probe)
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
