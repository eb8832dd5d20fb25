"""Probes: a capability that reports whether a call of another capability happened (ADR 11).

1. A probe is a governed call with its own events under `step@probe0`, `step@probe1`, ...
2. `happened: true` replaces the call, with `output` as its answer, if the contract accepts that output. `happened:
   false` is a promise: the service has closed this key, so the first call can no longer take effect. The call may then
   be repeated under another key.
3. Any other reply decides nothing: null, an error, a timeout, a veto, or an output that breaks the contract. A person
   decides then.
"""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.jsonvalue import deep_copy
from cogcli.base.step_path import StepPath
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.run.engine.call import consult
from cogcli.run.engine.context import Run
from cogcli.run.engine.doubt import DoubtResolution
from cogcli.run.engine.effects import Effects
from cogcli.run.engine.outcome import CallSkipped
from cogcli.run.engine.step_recorder import StepRecord
from cogcli.specs.fields import fit_values

_SPEAKER: Final = "policy:"


def ask_probe(
    run: Run, path: str, capability: Capability, values: dict[str, Any], key: str, number: int
) -> Effects:
    """Call the probe of a capability and return its DoubtResolution about one call, or None if its reply decides
    nothing.

    `path` is the step that made the call, `key` the idempotency key of the call, and `number` the count of its
    earlier probes.
    """
    probe = run.engine.capabilities.get(capability.probe)
    if probe is None:
        return None
    inner = StepRecord(run, StepPath(path).probe(number), capability.probe, probe, "verify")
    try:
        reply = yield from consult(inner, probe, {"idempotency_key": key, "input": values})
    except (RuntimeErrorBase, CallSkipped):
        return None
    return parse_probe_reply(capability, probe.id, reply)


def is_promise(resolution: DoubtResolution) -> bool:
    """Return whether the resolution is a service's promise that the call can no longer take effect, because the service
    refuses its idempotency key from now on.
    """
    return resolution.choice == "rerun" and resolution.by.startswith(_SPEAKER)


class _ProbeReply(Record):
    """The output of a probe. Members of other types say nothing."""

    happened: bool | None = None
    output: Json | None = None


def parse_probe_reply(
    capability: Capability, probe_id: str, reply: dict[str, Any]
) -> DoubtResolution | None:
    """Return the DoubtResolution in a probe's reply, or None if the reply decides nothing or its output breaks
    the contract.
    """
    by, found = f"{_SPEAKER}{probe_id}", read_record(_ProbeReply, reply)
    if found.happened is False:
        return DoubtResolution(
            "rerun", by, "the service has closed this key: the first call takes no effect"
        )
    if found.happened is not True:
        return None
    kept, violations = fit_values(capability.outputs, deep_copy(found.output or {}))
    return (
        None
        if violations
        else DoubtResolution("done", by, "the service says that it happened", kept)
    )
