"""Runs a scenario as a governed call: a run of one step through one binding, with its own episode.

1. With a mock server the run reaches that server only: its address replaces the service's, `${NAME}` and `auth_ref`
   resolve to `test-NAME`, trust is privileged and this one capability is confirmed.
2. Live, the service's address, the user's options and the real secrets are used.
3. The binding has no fallback: it alone is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.app.settings.runs_dir import SIGNING_KEY
from cogcli.core.calls import Answer, Attempt
from cogcli.core.errors import RuntimeErrorBase
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.http.curl import variable_of
from cogcli.runs.launch import launch
from cogcli.runs.prepare import RunRequest, one_step_skill, prepare_one_step
from cogcli.runs.results import RunResult
from cogcli.specs.binding import Binding
from cogcli.specs.capability import Capability
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import variables_of
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.service import Service
from cogcli.verification.scenario import Scenario

_SKILL: Final = "verify.scenario"


class Stage(NamedTuple):
    """The specs and the environment, secrets included, of a scenario's run."""

    catalog: Catalog
    capability: Capability
    binding: Binding
    service: Service
    environ: Mapping[str, str]


def mock_service(
    catalog: Catalog,
    capability: Capability,
    binding: Binding,
    address: str,
    environ: Mapping[str, str],
) -> Stage:
    """A stage whose service is at `address` (an origin; the base path stays that of the service)."""
    service = catalog.services[binding.service]
    keys = PROTOCOLS[service.kind].address_keys
    key = next((k for k in keys if k in service.settings), keys[0])
    settings = {
        **service.settings,
        key: address + urlsplit(service.settings.get(key) or "").path.rstrip("/"),
    }
    if "auth_ref" in settings:
        settings["auth_ref"] = variable_of(settings["auth_ref"])
    service = service._replace(settings=settings, network="private", trusted=True)
    binding = binding._replace(trusted=True)
    tests = {name: f"test-{name}" for name in variables_of(binding, service)}
    return stage_of(catalog, capability, binding, service, {**environ, **tests}, local=True)


def run(
    settings: Settings, stage: Stage, scenario: Scenario, runs_dir: str, *, live: bool
) -> tuple[RunResult, list[Mapping[str, Any]]]:
    """Run the step: its result, and what each attempt sent and received, unmasked. Raises EnvironmentRefusal where the
    episode cannot be written."""
    environ = {name: value for name, value in stage.environ.items() if name != SIGNING_KEY}
    own = Settings({"runs_dir": runs_dir}, environ, base=settings.base)
    binds = {stage.capability.id: stage.binding.id}
    request = RunRequest(
        _SKILL,
        {},
        {},
        scenario.trace_id,
        trust_level=settings.value("trust_level") if live else "privileged",
        confirmed=() if live else (stage.capability.id,),
        binds=binds,
        durability="none",
    )
    outputs = stage.catalog.raw[f"capability:{stage.capability.id}"].get("outputs") or {}
    names = stage.capability.outputs
    head = {"id": _SKILL, "name": "Scenario", "description": f"Scenario {scenario.id}."}
    skill = one_step_skill(head, stage.capability.id, scenario.input, outputs, names)
    selection = SelectionOptions(binds, None, environ)
    prepared = prepare_one_step(stage.catalog, skill, request, selection, scenario.file)
    records: list[Mapping[str, Any]] = []

    def record(attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
        ours = attempt.capability_id == stage.capability.id  # no gate
        try:
            answer = send(attempt)
        except RuntimeErrorBase as error:
            records.extend([error.record or {}] if ours else ())
            raise
        records.extend([answer.record or {}] if ours else ())
        return answer

    return launch(environment_of(own), prepared, intercept=record), records


# ---------------------------------------------------------------------------------------------------------------------


def stage_of(
    catalog: Catalog, capability: Capability, binding: Binding, service: Service, environ: Mapping[str, str],
    *, local: bool,
) -> Stage:  # fmt: skip
    """A stage whose catalog holds what the call needs: the binding without fallback, the gates with their bindings.

    With `local` gates may use only services inside this process.
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
