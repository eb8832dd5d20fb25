"""`run --plan`: the steps and needs of a run (variables, network, trust, approvals), from the specs
alone (docs/reference/command-line.md#views)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from cogcli.app.file_scope import with_file_scope
from cogcli.app.needs import RequirementSearch
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.errors import BindingResolutionError, CogcliError
from cogcli.base.expressions import Expression
from cogcli.base.problems import Problem
from cogcli.base.redact import Redactor
from cogcli.base.refs import READABLE
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import TRUST_RANKS, Capability
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.run.engine.plan import PlannedStep, StepTarget, plan_entry, plan_skill
from cogcli.run.given_inputs import RequestedRun, prepare_given
from cogcli.run.prepare import RunRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.eligibility import variables_of
from cogcli.specs.selection import SelectionOptions, named_binding
from cogcli.specs.step_values import references_in


def plan_requested_run(
    settings: Settings, requested: RequestedRun, write: Callable[[Json], None]
) -> list[Problem]:
    """Pass the plan of a run to `write`, and return the warnings. Nothing is executed.

    Raise the errors of `prepare_given`. The plan of a refused run is written first, unless its
    specs have errors."""
    requested = with_file_scope(settings, requested)
    request = requested.request
    catalog = open_registry(settings).reach(request.skill_id, packs=request.pack_refs)
    options = SelectionOptions.of(request.options, settings.environ)
    try:
        warnings = prepare_given(catalog, requested, settings.environ).warnings
    except CogcliError as error:
        broken = any(problem.severity == "E" for problem in check(catalog, options=options))
        if not broken and request.skill_id in catalog.skills:
            write(_build_plan(catalog, request, options, error.exit_code))
        raise
    write(_build_plan(catalog, request, options, 0))
    return warnings


def _build_plan(
    catalog: Catalog, request: RunRequest, options: SelectionOptions, exit_code: int
) -> Json:
    """Return the plan of a skill whose specs have no errors."""
    survey = _Survey(catalog, PlannedCalls(catalog, options))
    own = survey.skill(catalog.skills[request.skill_id])
    return {
        "skill": request.skill_id,
        **own,
        "skills": survey.nested,
        "needs": {
            **_describe_needs(survey.calls, request),
            "missing": [
                need.to_payload()
                for need in RequirementSearch(catalog, options).skill(request.skill_id)
            ],
        },
        "exit_code": exit_code,
    }


class _Survey:
    """Collects the steps of a skill and its nested skills, each skill once."""

    def __init__(self, catalog: Catalog, calls: PlannedCalls) -> None:
        self.nested: dict[str, Json] = {}
        self.calls = calls
        self._catalog = catalog
        self._by_name = catalog.by_name

    def skill(self, skill: Skill) -> Json:
        """Return the version, the number of waves, and the steps of a skill."""
        wave_of: dict[str, int] = {}
        redactor = Redactor()
        steps = []
        for step in plan_skill(skill, self._by_name, self._catalog.skills).steps:
            wave = 1 + max((wave_of[name] for name in step.depends_on), default=0)
            wave_of[step.step.id] = wave
            steps.append(
                {
                    **redactor.mask(plan_entry(step).json),
                    "wave": wave,
                    "uses": step.step.uses,
                    **self._step_members(step),
                }
            )
        return {"version": skill.version, "waves": max(wave_of.values(), default=0), "steps": steps}

    def _step_members(self, step: PlannedStep) -> Json:
        """Return the members of a step's entry: the values that it reads, and its targets."""
        entry: Json = {"reads": list(reads_of(step))}
        if step.step.config.condition is not None:
            entry["condition"] = step.step.config.condition
        default = [("default", step.target)] if step.targets and step.target else []
        choices = [*step.targets.items(), *default]
        if choices:
            entry["targets"] = [
                {"name": name, **self._target_members(target)} for name, target in choices
            ]
        elif step.target:
            entry.update(self._target_members(step.target))
        return entry

    def _target_members(self, target: StepTarget) -> Json:
        """Return the target of a call: a nested skill, or the service of a capability."""
        if target.capability is None:
            if target.skill_id not in self.nested:
                self.nested[target.skill_id] = {}  # its place in the order of first calls
                self.nested[target.skill_id] = self.skill(self._catalog.skills[target.skill_id])
            return {"uses": target.uses, "skill": target.skill_id}
        self.calls.add(target.capability)
        return {"uses": target.uses, "tool": self.calls.tool(target.capability.id)}


def reads_of(step: PlannedStep) -> dict[str, None]:
    """Return the references in a step's input and then those in its expressions, without loop
    variables."""
    found: dict[str, None] = {}
    for reference in references_in(step.step.input, step.step.loop_names):
        if reference.namespace in READABLE:
            found[reference.text] = None
    for expression in step.expressions:
        for reference in expression.references if isinstance(expression, Expression) else ():
            if reference.namespace in READABLE:
                found[reference.text] = None
    return found


class PlannedCalls:
    """The capabilities that a run may call, including gates, and their bindings."""

    def __init__(self, catalog: Catalog, options: SelectionOptions) -> None:
        self.capabilities: dict[str, Capability] = {}
        self.options = options
        self._catalog = catalog

    def add(self, capability: Capability) -> None:
        """Add a capability, its gates and its probe."""
        if capability.id in self.capabilities:
            return
        self.capabilities[capability.id] = capability
        for id in capability.asks:
            if called := self._catalog.capability(id):
                self.add(called)

    def tool(self, capability_id: str) -> str | None:
        """Return `protocol:service` of the first binding that a call uses; None if no binding can
        be selected."""
        found = next(self.bindings(capability_id), None)
        return f"{found[0].protocol}:{found[0].service}" if found else None

    def bindings(self, capability_id: str) -> Iterator[tuple[Binding, Service]]:
        """Yield the bindings that a call may use, in order. If none can be called, yield the first
        of the chain."""
        try:
            chain = named_binding(self._catalog, capability_id, self.options).chain
        except BindingResolutionError:
            return
        for link in [link for link in chain if link.eligible] or chain[:1]:
            binding = self._catalog.bindings.get(link.binding_id)
            service = self._catalog.services.get(link.service_id or "")
            if binding and service:
                yield binding, service


def _describe_needs(calls: PlannedCalls, request: RunRequest) -> Json:
    """Return the needs of all calls. Each entry includes whether the need is satisfied."""
    called = calls.capabilities.values()
    levels = [c.safety.trust_level for c in called if c.safety]
    needed, given = (
        max(levels, key=TRUST_RANKS.__getitem__, default="sandbox"),
        request.options.trust_level,
    )
    asking = [c.id for c in called if c.safety and c.safety.requires_confirmation]
    return {
        "variables": list(_describe_variables(calls)),
        "network": sorted(_find_hosts(calls)),
        "trust": {
            "needed": needed,
            "given": given,
            "enough": TRUST_RANKS[needed] <= TRUST_RANKS[given],
        },
        "approvals": [
            {"capability": id, "confirmed": id in request.options.confirm} for id in asking
        ],
        "may_ask": [
            {"capability": capability.id, "gate": gate.capability}
            for capability in called
            for gate in capability.gates
            if gate.on_fail == "require_human"
        ],
    }


def _describe_variables(calls: PlannedCalls) -> Iterator[Json]:
    """Yield the variables of the first binding of each capability. A fallback may be used without
    them."""
    seen = set()
    for capability_id in calls.capabilities:
        for binding, service in list(calls.bindings(capability_id))[:1]:
            for name in variables_of(binding, service):
                if name not in seen:
                    seen.add(name)
                    yield {
                        "name": name,
                        "set": bool(calls.options.environ.get(name)),
                        "service": service.id,
                    }


def _find_hosts(calls: PlannedCalls) -> set[str]:
    """Return the hosts of all bindings that may be called."""
    services = [service for id in calls.capabilities for _, service in calls.bindings(id)]
    hosts = (urlsplit(service.keys.address).hostname for service in services)
    return set(filter(None, hosts))
