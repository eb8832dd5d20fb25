"""Runs a scenario as a governed call: a run of one step through one binding, with its own episode.

1. With a mock server the run reaches that server only: its address replaces the service's, `${NAME}` and `auth_ref`
   resolve to `test-NAME`, trust is privileged and this one capability is confirmed.
2. Live, the service's address, the user's options and the real secrets are used.
3. The binding has no fallback: it alone is tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import uuid4

from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.app.settings.runs_dir import SIGNING_KEY
from cogcli.core.calls import Answer, Attempt, BindingChain
from cogcli.core.errors import RuntimeErrorBase
from cogcli.engine.ports import CapabilityRunner
from cogcli.protocols import PROTOCOLS
from cogcli.runs.launch import launch
from cogcli.runs.prepare import PreparedRun, RunRequest
from cogcli.runs.results import RunResult
from cogcli.specs.binding import Binding
from cogcli.specs.capability import Capability
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import variables_of
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.service import Service
from cogcli.specs.skill import skill_from
from cogcli.verification.curl import variable_of
from cogcli.verification.scenario import Scenario

SKILL: Final = "verify.scenario"
STEP: Final = "call"


class Stage(NamedTuple):
    """The specs and the environment, secrets included, of a scenario's run."""

    catalog: Catalog
    capability: Capability
    binding: Binding
    service: Service
    environ: Mapping[str, str]


class RecordingRunner:
    """A live runner that keeps, in `records`, what each attempt at one capability sent and received, unmasked."""

    def __init__(self, runner: CapabilityRunner, capability_id: str) -> None:
        self._runner = runner
        self._capability_id = capability_id
        self.records: list[Mapping[str, Any]] = []

    def chain(self, capability_id: str) -> BindingChain:
        return self._runner.chain(capability_id)

    def attempt(self, attempt: Attempt) -> Answer:
        ours = attempt.capability_id == self._capability_id
        try:
            answer = self._runner.attempt(attempt)
        except RuntimeErrorBase as error:
            if ours:
                self.records.append(error.record or {})
            raise
        if ours:
            self.records.append(answer.record or {})
        return answer

    def close(self, grace: float) -> None:
        self._runner.close(grace)


def mock_service(
    catalog: Catalog, capability: Capability, binding: Binding, address: str, environ: Mapping[str, str]
) -> Stage:
    """A stage whose service is at `address` (an origin; the base path stays that of the service)."""
    from urllib.parse import urlsplit

    service = catalog.services[binding.service]
    keys = PROTOCOLS[service.kind].address_keys
    key = next((k for k in keys if k in service.settings), keys[0])
    settings = {**service.settings, key: address + base_path(urlsplit(service.settings.get(key) or "").path)}
    if "auth_ref" in settings:
        settings["auth_ref"] = variable_of(settings["auth_ref"])
    service = service._replace(settings=settings, network="private", trusted=True)
    binding = binding._replace(trusted=True)
    tests = {name: f"test-{name}" for name in variables_of(binding, service)}
    return _stage(catalog, capability, binding, service, {**environ, **tests}, local=True)


def live(catalog: Catalog, capability: Capability, binding: Binding, environ: Mapping[str, str]) -> Stage:
    """A stage with the real service."""
    return _stage(catalog, capability, binding, catalog.services[binding.service], environ, local=False)


def base_path(path: str) -> str:
    """The path of a base URL without the slash at its end."""
    return path.rstrip("/")


def run(
    settings: Settings, stage: Stage, scenario: Scenario, runs_dir: str, *, live: bool
) -> tuple[RunResult, RecordingRunner]:
    """Run the step: its result, and the runner with the records. Raises EnvironmentRefusal where the episode cannot be
    written."""
    environ = {name: value for name, value in stage.environ.items() if name != SIGNING_KEY}
    own = Settings({"runs_dir": runs_dir}, environ, base=settings.base)
    binds = {stage.capability.id: stage.binding.id}
    request = RunRequest(
        SKILL,
        {},
        {},
        scenario.trace_id,
        trust_level=settings.value("trust_level") if live else "privileged",
        confirmed=() if live else (stage.capability.id,),
        binds=binds,
        durability="none",
    )
    catalog = _with_skill(stage, scenario)
    selection = SelectionOptions(binds, None, environ)
    loaded = PreparedRun(request, catalog.skills[SKILL], catalog, {}, {}, selection, [])
    runners: list[RecordingRunner] = []

    def around(runner: CapabilityRunner) -> CapabilityRunner:
        runners.append(RecordingRunner(runner, stage.capability.id))
        return runners[0]

    result = launch(environment_of(own), loaded, around=around)
    return result, runners[0]


# ---------------------------------------------------------------------------------------------------------------------


def _stage(
    catalog: Catalog, capability: Capability, binding: Binding, service: Service, environ: Mapping[str, str],
    *, local: bool,
) -> Stage:  # fmt: skip
    """A stage whose catalog holds what the call needs: the binding without fallback, the gates with their bindings.

    `local`: gates may use only services inside this process.
    """
    metadata = {k: v for k, v in binding.metadata.items() if k != "fallback_binding_id"}
    binding = binding._replace(metadata=metadata)
    # A service of its own to whoever remembers how services behaved: one scenario's failures are not another's.
    service = service._replace(layer=f"{service.layer} {uuid4().hex}")
    capabilities = {c.id: c for c in _called_capabilities(catalog, capability)}
    bindings = {binding.id: binding}
    services = {service.id: service}
    for other in capabilities:
        for name in catalog.bindings_of.get(other, ()) if other != capability.id else ():
            found = catalog.services.get(catalog.bindings[name].service)
            if found is not None and (not local or catalog.in_process(found)):
                bindings[name] = catalog.bindings[name]
                services.setdefault(found.id, found)
    of = {
        other: tuple(name for name in catalog.bindings_of.get(other, ()) if name in bindings)
        for other in capabilities
    }
    kept = {f"capability:{id}" for id in capabilities}
    kept |= {f"binding:{id}" for id in bindings} | {f"service:{id}" for id in services}
    raw = {key: value for key, value in catalog.raw.items() if key in kept}
    raw[f"binding:{binding.id}"] = {**raw[f"binding:{binding.id}"], "metadata": metadata}
    raw[f"service:{service.id}"] = {
        **raw[f"service:{service.id}"],
        **service.settings,
        "network": service.network,
    }
    small = Catalog(
        capabilities=capabilities,
        bindings=bindings,
        bindings_of={**of, capability.id: (binding.id,)},
        services=services,
        defaults=catalog.defaults,
        aliases=catalog.aliases,
        places=catalog.places,
        protocols=catalog.protocols,
        pins={key: value for key, value in catalog.pins.items() if key in kept},
        raw=raw,
        partial=True,
    )
    return Stage(small, capability, binding, service, environ)


def _called_capabilities(catalog: Catalog, capability: Capability) -> Iterator[Capability]:
    """A capability, its gates and theirs, each once."""
    waiting, seen = [capability], set[str]()
    while waiting:
        one = waiting.pop()
        if one.id in seen:
            continue
        seen.add(one.id)
        yield one
        waiting += [found for name in one.asks if (found := catalog.capability(name))]


def _with_skill(stage: Stage, scenario: Scenario) -> Catalog:
    """The catalog with the skill whose only step makes the call."""
    declared = stage.catalog.raw[f"capability:{stage.capability.id}"]
    raw = {
        "id": SKILL,
        "version": "1.0.0",
        "name": "Scenario",
        "description": f"Scenario {scenario.id}.",
        "inputs": {},
        "outputs": declared.get("outputs") or {},
        "steps": [
            {
                "id": STEP,
                "uses": stage.capability.id,
                "input": {name: {"$literal": value} for name, value in scenario.input.items()},
                "output": {name: f"outputs.{name}" for name in stage.capability.outputs},
            }
        ],
    }
    skill = skill_from(raw, scenario.file)
    return stage.catalog._replace(skills={SKILL: skill}, raw={**stage.catalog.raw, f"skill:{SKILL}": raw})
