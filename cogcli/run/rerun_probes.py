"""Probes before a rerun, which determine whether the earlier run's calls in doubt happened (ADR 11).

A one-step run calls the probe, so that the call is governed. The episode of this run is removed. The first event of the
rerun records the answer, with the probe as the decider.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.scratch import scratch_folder
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.value_types import Json
from cogcli.run.effects import IN_DOUBT, Effect
from cogcli.run.engine.doubt import DoubtResolution
from cogcli.run.engine.probe import is_promise, parse_probe_reply
from cogcli.run.launch import launch
from cogcli.run.prepare import PreparedRun, RunEnvironment, one_step_skill, prepare_one_step
from cogcli.run.rerun import ReusedSteps
from cogcli.run.rerun_effects import find_repeats

_HEAD: Final = {
    "id": "cogcli.probe",
    "name": "Probe",
    "description": "Asks whether a call happened.",
}


def probe_effects(
    environment: RunEnvironment, prepared: PreparedRun, reuse: ReusedSteps
) -> ReusedSteps:
    """Call the probes of effects in doubt that have no choice, and return a copy of `reuse` with the answers."""
    effects = reuse.effects

    for question in effects.questions:
        for effect in question.effects:
            capability = prepared.catalog.capability(effect.capability)
            if (
                capability is None
                or not capability.probe
                or effect.state != IN_DOUBT
                or effect.input is None
            ):
                continue
            found = _ask_probe(environment, prepared, capability, effect)
            if found is None:
                continue
            origin = effect.origin
            repeats = (
                find_repeats(environment.runs_dir, origin["episode"]) if is_promise(found) else {}
            )
            if later := repeats.get(origin["event"]):
                effects = effects._replace(repeated_in={**effects.repeated_in, effect.step: later})
            else:
                effects = effects.with_probe_answer(effect, found)
    return reuse._replace(effects=effects)


def _ask_probe(
    environment: RunEnvironment, prepared: PreparedRun, capability: Capability, effect: Effect
) -> DoubtResolution | None:
    """Return the resolution from the probe, or None if its run did not end with `ok` or its reply decides nothing."""
    probe = prepared.catalog.capability(capability.probe)
    names = [name for name in ("happened", "output") if probe and name in probe.outputs]
    values = {"idempotency_key": effect.idempotency_key, "input": effect.input}
    outputs: Json = {name: {"type": "any"} for name in names}
    skill = one_step_skill(_HEAD, capability.probe, values, outputs, names, {"id": "probe"})
    request = prepared.request.with_options(frame={}, goal=None, durability="none", tags={})
    run = prepare_one_step(prepared.catalog, skill, request, prepared.selection, capability.file)
    with scratch_folder("probe") as runs_dir:
        result = launch(environment._replace(runs_dir=runs_dir), run)
    if result.status != "ok":
        return None
    return parse_probe_reply(capability, capability.probe, result.outputs or {})
