"""A scenario as a governed call: the target of its case is a run of one step through one binding,
with its own episode.

1. With a mock server the run reaches that server only: its address replaces the service's,
   `${NAME}` and `auth_ref` resolve to `test-NAME`, trust is privileged and this one capability is
   confirmed.
2. Live, the service's address, the user's options and the real secrets are used.
3. The binding has no fallback, so that only this binding is tested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

from cogcli.app.file_scope import find_file_scope
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.app.settings.runs_dir import SIGNING_KEY
from cogcli.authoring.verification.case import CaseTarget, Inputs
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.options import RunOptions
from cogcli.declarations.scenario_spec import Scenario
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.http.curl import variable_of
from cogcli.run.file_inputs import pin_inputs
from cogcli.run.input_origins import CASE
from cogcli.run.prepare import PreparedRun, RunRequest, one_step_skill, prepare_one_step
from cogcli.specs.catalog import Catalog
from cogcli.specs.closure import capability_closure
from cogcli.specs.eligibility import variables_of
from cogcli.specs.selection import SelectionOptions

_SKILL: Final = "verify.scenario"


class CallSpecs(NamedTuple):
    """The specs of a call, and the environment with its secrets."""

    capability: Capability
    binding: Binding
    service: Service
    environ: Mapping[str, str]


def with_mock_server(specs: CallSpecs, address: str) -> CallSpecs:
    """Return the specs with a service at the origin `address`. The base path remains that of the
    service.
    """
    service, binding = specs.service, specs.binding
    keys = PROTOCOLS[service.kind].address_keys
    key = next((k for k in keys if k in service.settings), keys[0])
    path = urlsplit(service.settings.get(key) or "").path.rstrip("/")
    settings = {**service.settings, key: f"{address}{path}"}
    settings.pop("login", None)  # a mock wants no token, and no login belongs to its address
    if "auth_ref" in settings:
        settings["auth_ref"] = variable_of(settings["auth_ref"])
    if "auth" in settings:
        settings["auth"] = {name: _mock_entry(each) for name, each in settings["auth"].items()}
    service = service.replace(settings=settings, network="private", trusted=True)
    binding = binding.replace(trusted=True)
    secrets = {name: f"test-{name}" for name in variables_of(binding, service)}
    return specs._replace(binding=binding, service=service, environ={**specs.environ, **secrets})


def _mock_entry(entry: Json) -> Json:
    """Return an entry of `auth` with variables. A client of OAuth 2 becomes a bearer token: no token
    server is called for a mock."""
    if "client_id" in entry:
        return {"bearer": variable_of(entry["client_secret"])}
    places = ("bearer", "api_key", "user", "password")
    return {key: variable_of(each) if key in places else each for key, each in entry.items()}


def scenario_target(
    settings: Settings, catalog: Catalog, specs: CallSpecs, scenario: Scenario, runs_dir: str, *, live: bool
) -> CaseTarget:  # fmt: skip
    """Return the target of a run of one step that calls the capability of a scenario through its
    binding."""
    capability = specs.capability
    environ = {name: value for name, value in specs.environ.items() if name != SIGNING_KEY}
    binds = {capability.id: specs.binding.id}
    options = RunOptions(
        trace_id=scenario.trace_id,
        trust_level=settings.value("trust_level") if live else "privileged",
        confirm=[] if live else [capability.id],
        bind=binds,
        durability="none",
    )
    request = RunRequest(_SKILL, {}, options)
    own_catalog = _catalog_of_call(catalog, specs, local=not live)
    declared = catalog.raw[f"capability:{capability.id}"].get("outputs") or {}
    head = {"id": _SKILL, "name": "Scenario", "description": f"Scenario {scenario.id}."}

    own_settings = Settings({"runs_dir": runs_dir}, environ, base=settings.base)

    def prepare(inputs: Inputs) -> PreparedRun:
        find_files = partial(find_file_scope, own_settings)
        origins = dict.fromkeys(inputs, CASE)
        pinned = pin_inputs(capability.inputs, dict(inputs), origins, find_files)
        if pinned.problems:
            raise ProblemsFound([*pinned.problems.values()])
        skill = one_step_skill(head, capability.id, pinned.values, declared, capability.outputs)
        selection = SelectionOptions(binds, None, environ)
        prepared = prepare_one_step(own_catalog, skill, request, selection, scenario.file)
        return prepared._replace(files=pinned.files)

    return CaseTarget(environment_of(own_settings)._replace(hooks=None), prepare)


def _catalog_of_call(catalog: Catalog, specs: CallSpecs, *, local: bool) -> Catalog:
    """Return the catalog of the call: its specs, the binding without fallback, and the gates with
    their bindings.

    With `local`, gates may use only services inside this process.
    """
    metadata = specs.binding.metadata.replace(fallback_binding_id=None)
    binding = specs.binding.replace(metadata=metadata)
    # Circuit breakers identify a service by its layer, so that scenarios do not share failures.
    service = specs.service.replace(layer=f"{specs.service.layer} {uuid4().hex}")

    whole = capability_closure(catalog, specs.capability.id)
    bindings_of = _usable_bindings(catalog, whole.bindings_of, local=local)
    bindings_of[specs.capability.id] = (binding.id,)
    bindings = {id: catalog.bindings[id] for ids in bindings_of.values() for id in ids}
    services = {each.service: catalog.services[each.service] for each in bindings.values()}
    raw = catalog.raw | _raw_of_call(catalog, binding, service)
    tables: dict[str, Iterable[str]] = {
        "capability": whole.capabilities,
        "binding": bindings,
        "service": services,
    }
    kept = [f"{kind}:{id}" for kind, ids in tables.items() for id in ids]
    return Catalog(
        capabilities=whole.capabilities,
        bindings=bindings | {binding.id: binding},
        bindings_of=bindings_of,
        services=services | {service.id: service},
        defaults=catalog.defaults,
        aliases=catalog.aliases,
        places=catalog.places,
        protocols=catalog.protocols,
        pins={key: catalog.pins[key] for key in kept if key in catalog.pins},
        raw={key: raw[key] for key in kept if key in raw},
        partial=True,
    )


def _usable_bindings(
    catalog: Catalog, bindings_of: Mapping[str, Iterable[str]], *, local: bool
) -> dict[str, tuple[str, ...]]:
    """Return, for each capability, its bindings whose service is declared.

    With `local`, only those whose service is inside this process.
    """

    def is_usable(id: str) -> bool:
        called = catalog.services.get(catalog.bindings[id].service)
        return called is not None and (not local or catalog.in_process(called))

    return {id: tuple(filter(is_usable, ids)) for id, ids in bindings_of.items()}


def _raw_of_call(catalog: Catalog, binding: Binding, service: Service) -> dict[str, Json]:
    """Return the declarations of binding and service as they are called."""
    called = {**service.settings, "network": service.network}
    changes = {
        f"binding:{binding.id}": {"metadata": binding.metadata.json},
        f"service:{service.id}": called,
    }
    return {key: {**catalog.raw[key], **members} for key, members in changes.items()}
