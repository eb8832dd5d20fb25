"""Asking whether a call happened: the probe that its capability names (ADR 11).

1. A probe is a governed call like any other, with events of its own under `step@probe0`, `step@probe1`, ...
2. `happened: true` stands for the call, with `output` as its answer, if the contract takes it. `happened: false` is a
   promise: the service has closed this key, the first call can no longer take effect; so it may be made again, under
   another key.
3. Anything else is no answer: null, an error, a timeout, a veto, an answer that breaks the contract. A person is asked.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.jsonvalue import deep_copy
from cogcli.base.step_path import StepPath
from cogcli.declarations.capability_spec import Capability
from cogcli.run.engine.call import consult
from cogcli.run.engine.context import Run
from cogcli.run.engine.doubt import DoubtResolution
from cogcli.run.engine.outcome import Degraded
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.run.engine.tasks import Effects
from cogcli.specs.fields import fit_values

_SPEAKER: Final = "policy:"


def ask_probe(
    run: Run, path: str, capability: Capability, values: dict[str, Any], key: str, number: int
) -> Effects:
    """The DoubtResolution that the probe of a capability gives for one call, or None without an answer. `path`: the
    step that called; `key`: the idempotency key of that call; `number`: of earlier probes of it."""
    probe = run.engine.capabilities.get(capability.probe)
    if probe is None:
        return None
    inner = StepRecord(run, StepPath(path).probe(number), capability.probe, probe, "verify")
    try:
        reply = yield from consult(inner, probe, {"idempotency_key": key, "input": values})
    except (RuntimeErrorBase, Degraded):
        return None
    return resolution_of(capability, probe.id, reply)


def is_promise(resolution: DoubtResolution) -> bool:
    """Whether the resolution is a service's promise that the call takes no effect any more: its key is closed."""
    return resolution.choice == "rerun" and resolution.by.startswith(_SPEAKER)


def resolution_of(
    capability: Capability, probe_id: str, reply: dict[str, Any]
) -> DoubtResolution | None:
    """The DoubtResolution in a probe's reply; None where it has none, or its output breaks the contract."""
    by = f"{_SPEAKER}{probe_id}"
    if reply.get("happened") is False:
        return DoubtResolution(
            "rerun", by, "the service has closed this key: the first call takes no effect"
        )
    if reply.get("happened") is not True:
        return None
    output = reply.get("output")
    kept, violations = fit_values(
        capability.outputs, deep_copy(output) if isinstance(output, dict) else {}
    )
    return (
        None
        if violations
        else DoubtResolution("done", by, "the service says that it happened", kept)
    )
