"""A bench: runs one call, or one small skill, through the whole engine, its episode in a temporary directory.

Selection, templates, invokers, retries, fallbacks and journal are those of a real run. Nothing of the user's project,
environment or registry is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from cogcli.bindings.breaker import Circuits
from cogcli.core.calls import Answer, Attempt
from cogcli.core.errors import CogcliError, RuntimeErrorBase
from cogcli.core.scratch import scratch_folder
from cogcli.core.system import SystemClock, SystemIds
from cogcli.engine.ports import CallPolicy
from cogcli.engine.run import Finished
from cogcli.events.envelope import Event
from cogcli.governance.approvals import Answered, Approvals
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange import Answering, Seen
from cogcli.protocols.invoker_rule import InvokerRule, RuleBroken, RuleSkipped
from cogcli.runs.launch import launch
from cogcli.runs.prepare import PreparedRun, RunEnvironment, RunRequest, one_step_skill
from cogcli.specs.binding import Binding, binding_from
from cogcli.specs.capability import Capability, capability_from
from cogcli.specs.catalog import Catalog
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.service import Service, service_from
from cogcli.specs.skill import skill_from
from cogcli.verification.check_result import FAILED, PASSED, SKIPPED, CheckResult
from cogcli.verification.loopback_server import Loopback

EFFECTS: Final[dict[str, dict[str, Any]]] = {
    "none": {"side_effects": False},
    "idempotent": {"side_effects": True, "idempotent": True},
    "effect": {"side_effects": True},
    "unknown": {},
}
CAPABILITY: Final = "verify.call"
GATE: Final = "verify.gate"
SKILL: Final = "verify.skill"
INNER: Final = "verify.inner"
STEP: Final = "call"


class HarnessCall(NamedTuple):
    """One call of one capability. `url` is the service's address; members of `binding`, `service`, `capability` and
    `step` are added to those that every call has."""

    url: str = ""
    protocol: str = "openapi"
    operation: str = "op"
    request: Mapping[str, Any] = {"a": "input.a"}
    response: Mapping[str, Any] = {"r": "response"}
    metadata: Mapping[str, Any] = {}
    service: Mapping[str, Any] = {}
    service_metadata: Mapping[str, Any] = {}
    network: str = "private"
    trusted: bool = True
    """Whether the service's layer is trusted."""
    effect: str = "none"
    input: Mapping[str, Any] = {"a": 1}
    capability: Mapping[str, Any] = {}
    config: Mapping[str, Any] = {}
    environ: Mapping[str, str] = {}
    second: str = ""
    """The address of the fallback's service, which answers `{ok}`."""
    gate: str = ""
    """The address of a gate's service, which answers `{allowed}`."""
    root: str = ""
    """The directory of the layer, which holds the file of `spec_ref`."""
    options: Mapping[str, Any] = {}
    step: Mapping[str, Any] = {}
    """Members that replace those of the one step."""
    nested: Mapping[str, Any] | None = None
    """Config of the step that nests a skill with the call, where the call is nested."""
    outputs: Mapping[str, Any] | None = None
    """The skill's declared outputs instead of the capability's."""
    without: tuple[str, ...] = ()
    """Kinds of specs to leave out: `bindings`, `services`."""
    rule: bool = True
    """Whether `--bind` names the binding."""
    approved: Answered | None = None
    """The recorded approval of this call."""
    policy: Callable[[], CallPolicy] | None = None
    """Makes what decides about the call beside its safety level."""
    broken: bool = False
    """Whether the runner raises an unexpected exception."""


class Ran(NamedTuple):
    """The result of a call. `deadlines`: the seconds of each attempt; `files`: the episode's files by name."""

    finished: Finished
    events: list[Event]
    attempts: list[Attempt]
    deadlines: list[float]
    files: dict[str, bytes]
    seconds: float

    @property
    def error(self) -> RuntimeErrorBase | None:
        """The error of the run; of a failed step its cause."""
        error = self.finished.outcome.error
        cause = error.__cause__ if error is not None else None
        return (
            cause
            if isinstance(cause, RuntimeErrorBase) and error and cause.code == error.code
            else error
        )

    @property
    def outputs(self) -> dict[str, Any]:
        """The outputs of the run."""
        return self.finished.outcome.outputs or {}

    def of_type(self, event_type: str) -> list[Event]:
        """The events of one type."""
        return [event for event in self.events if event.event_type == event_type]


class Bench:
    """Runs calls, each as an episode of its own; removes all files at the end."""

    def __init__(self) -> None:
        self._scratch = scratch_folder("bench")
        self.directory = ""
        self._clock = SystemClock()
        self._ids = SystemIds()

    def __enter__(self) -> Bench:
        self.directory = self._scratch.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._scratch.__exit__(*error)

    def run(self, wire: HarnessCall) -> Ran:
        """Run the call to its end."""
        catalog = catalog_of(wire)
        request = RunRequest(SKILL, {}, {"goal": "verify"}, None, durability="none", **wire.options)
        binds = {CAPABILITY: "first"} if wire.rule else {}
        selection = SelectionOptions(binds, None, wire.environ)
        prepared = PreparedRun(
            request, catalog.skills[SKILL], catalog, {}, request.frame, selection, []
        )
        prepared = prepared._replace(policy=wire.policy() if wire.policy else None)
        attempts: list[Attempt] = []
        deadlines: list[float] = []

        def note(attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
            attempts.append(attempt)
            deadlines.append(attempt.deadline - time.monotonic())
            if wire.broken:
                raise KeyError("a bug in the runner")
            return send(attempt)

        events: list[Event] = []
        begun = time.monotonic()
        result = launch(
            self._environment(wire),
            prepared,
            listener=events.append,
            approvals=Approvals((wire.approved,) if wire.approved else ()),
            intercept=note,
        )
        seconds = time.monotonic() - begun
        return Ran(result.finished, events, attempts, deadlines, _files(result.directory), seconds)

    def call(
        self, answering: Answering | None, path: str = "", **members: Any
    ) -> tuple[Ran, list[Seen]]:
        """The result of a call to a server at `path`, to none for None, and the requests that it got."""
        if answering is None:
            return self.run(HarnessCall(**members)), []
        with Loopback(answering) as server:
            return self.run(HarnessCall(url=f"{server.url}{path}", **members)), server.seen

    def serve(self, answering: Answering) -> Loopback:
        """A server, running inside `with`."""
        return Loopback(answering)

    def _environment(self, wire: HarnessCall) -> RunEnvironment:
        return RunEnvironment(
            runs_dir=os.path.join(self.directory, "episodes"),
            state_dir=os.path.join(self.directory, "state"),
            environ=wire.environ,
            clock=self._clock,
            ids=self._ids,
            open_registry=lambda: Registry([], protocols=PROTOCOLS, base=self.directory),
            circuits=Circuits(),  # of its own: the faults of one rule must not keep another's service from being called
        )


def catalog_of(wire: HarnessCall) -> Catalog:
    """The specs of one call, as loaded from a trusted layer."""
    first = {name: getattr(wire, name) for name in ("protocol", "operation", "request", "response")}
    metadata = {**wire.metadata, **({"fallback_binding_id": "second"} if wire.second else {})}
    bindings = [_binding("first", **first, metadata=metadata)]
    services = [_service(wire)]
    capabilities = [_capability(wire)]
    if wire.second:
        bindings.append(_binding("second", request={"a": "input.a"}, response={"r": "response.ok"}))
        services.append(_plain_service("second", wire.second))
    if wire.gate:
        bindings.append(
            _binding("gate", GATE, request={}, response={"allowed": "response.allowed"})
        )
        services.append(_plain_service("gate", wire.gate))
        outputs = {"allowed": {"type": "any"}, "reason": {"type": "string"}}
        capabilities.append(
            capability_from({**_BARE, "id": GATE, "inputs": {}, "outputs": outputs})
        )
    skills = _skills(wire, tuple(capabilities[0].outputs))
    bound = () if "bindings" in wire.without else bindings
    return Catalog(
        skills={skill["id"]: skill_from(skill) for skill in skills},
        capabilities={capability.id: capability for capability in capabilities},
        bindings={binding.id: binding for binding in bound},
        bindings_of={
            capability.id: tuple(b.id for b in bound if b.capability == capability.id)
            for capability in capabilities
        },
        services={}
        if "services" in wire.without
        else {service.id: service for service in services},
        partial=True,
    )


def _binding(id: str, capability: str = CAPABILITY, **members: Any) -> Binding:
    common = {
        "id": id,
        "capability": capability,
        "service": id,
        "protocol": "openapi",
        "operation": "op",
    }
    return binding_from({**common, **members}, layer="verify", trusted=True)


def _plain_service(id: str, url: str) -> Service:
    raw = {"id": id, "kind": "openapi", "base_url": url, "network": "private"}
    return service_from(raw, layer="verify", trusted=True)


_BARE: Final = {"version": "1.0.0", "description": "Verified.", "properties": EFFECTS["none"]}


def _capability(wire: HarnessCall) -> Capability:
    raw = {
        **_BARE,
        "id": CAPABILITY,
        "inputs": {name: {"type": "any"} for name in (*wire.input, "a")},
        "outputs": {name: {"type": "any"} for name in wire.response},
        "properties": EFFECTS[wire.effect],
        **({"safety": {"mandatory_pre_gates": [GATE]}} if wire.gate else {}),
        **wire.capability,
    }
    return capability_from(raw)


def _service(wire: HarnessCall) -> Service:
    row = PROTOCOLS.get(wire.protocol)
    key = next(iter(row.address_keys), "") if row else ""
    raw = {
        "id": "first",
        "kind": wire.protocol,
        "network": wire.network,
        "metadata": wire.service_metadata,
        **({key: wire.url} if key and wire.url else {}),
        **wire.service,
    }
    return service_from(raw, layer="verify", root=wire.root, trusted=wire.trusted)


def _skills(wire: HarnessCall, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The skill that runs, and the nested one."""
    if wire.nested is None:
        return [_one_step(wire, names)]
    inner = {**_one_step(wire._replace(config=wire.nested), names), "id": INNER}
    outer = {"uses": f"skill:{INNER}", "input": {}}
    return [_one_step(wire._replace(step={**outer, **wire.step}), names), inner]


def _one_step(wire: HarnessCall, names: tuple[str, ...]) -> dict[str, Any]:
    outputs = {name: {"type": "any"} for name in names} if wire.outputs is None else wire.outputs
    members = {"config": dict(wire.config), **wire.step}
    head = {"id": SKILL, "name": "Verify", "description": "One call."}
    return one_step_skill(head, CAPABILITY, wire.input, outputs, names, members)


def _files(directory: str) -> dict[str, bytes]:
    """Every file of an episode."""
    return {
        str(p.relative_to(directory)): p.read_bytes()
        for p in Path(directory).rglob("*")
        if p.is_file()
    }


def check_rule(id: str, rule: InvokerRule, bench: Bench) -> CheckResult:
    """The result of checking one rule."""
    begun = time.monotonic()
    base = CheckResult(id, PASSED, subject=rule.rule)
    try:
        rule.check(bench)
    except RuleBroken as wrong:
        base = base._replace(status=FAILED, reason=str(wrong), code="verify.failed")
    except RuleSkipped as absent:
        base = base._replace(status=SKIPPED, reason=str(absent))
    except CogcliError as error:
        base = base._replace(
            status=FAILED, reason=f"{error.code}: {error.message}", code=error.code
        )
    except Exception as bug:  # one rule that cannot even be asked must not hide the others
        base = base._replace(status=FAILED, reason=f"{type(bug).__name__}: {bug}", code="internal")
    return base._replace(ms=round((time.monotonic() - begun) * 1000))
