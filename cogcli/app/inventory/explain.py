"""Explanations of which binding is selected for a capability, and why each other binding is not
selected (docs/reference/binding.md#selection)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cogcli.app.inventory.kinds import find_shadowed_specs, find_spec
from cogcli.app.registry import Layers, open_registry, selection_options, untrusted_warning
from cogcli.app.settings import Settings
from cogcli.base.errors import CapabilityNotFoundError, CogcliError, ServiceResolutionError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound, sort_problems
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.value_types import Json
from cogcli.specs.binding_chain import ChainLink, Selection, SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.eligibility import minimum_conformance, reasons
from cogcli.specs.registry import Registry
from cogcli.specs.selection import CANDIDATE, Explanation, explain_selection


class ChoiceExplanation(NamedTuple):
    """The object of `explain --json`, the error if no binding can be called, and warnings about a
    choice that requires trust."""

    body: Json
    error: CogcliError | None = None
    warnings: tuple[CogcliError, ...] = ()


def explain_capability(settings: Settings, name: str) -> ChoiceExplanation:
    """Explain the choice for a capability, which is given by id, alias, or the id of one of its
    bindings.

    Raise CapabilityNotFoundError, or ProblemsFound if the capability's file has errors."""
    registry = open_registry(settings)
    try:
        catalog = registry.reach_capability(name)
    except CapabilityNotFoundError:
        binding = registry.everything().bindings.get(name)
        if binding is None:
            raise
        name = binding.capability
        catalog = registry.reach_capability(name)
    capability = catalog.capability(name)
    if capability is None:
        raise _problems_error(
            catalog, catalog.broken.get(f"capability:{catalog.aliases.get(name, name)}", "")
        )
    choice = _explain_choice_of_runs(settings, registry, catalog, capability.id)
    shadows = find_shadowed_specs(catalog, "capability", capability.id)
    where = {
        "layer": Layers(settings).of(capability.file),
        "file": capability.file,
        "shadows": shadows,
    }
    error = choice.error
    if error and any(problem.file == error.file for problem in catalog.problems):
        error = _problems_error(catalog, error.file)
    return ChoiceExplanation({**choice.body, **where}, error, choice.warnings)


def _explain_choice_of_runs(
    settings: Settings, registry: Registry, catalog: Catalog, capability_id: str
) -> ChoiceExplanation:
    """Explain which binding a run would choose now for a capability.

    In an untrusted project, only the trusted layers choose. If they lack the capability, the choice treats no service
    as trusted (docs/reference/service.md#trust). If trust would change the choice, a warning names the other binding.
    """
    given = selection_options(settings)
    later = explain_choice(catalog, capability_id, given)
    if registry.is_trusted:
        return later
    now = explain_choice(
        registry.for_run("capability", capability_id).reach_capability(capability_id),
        capability_id,
        given,
    )
    chosen, waiting = (each.body["primary_binding_id"] for each in (now, later))
    if waiting in (chosen, None):
        return now
    text = f"the project chooses `{waiting}` for `{capability_id}`, which counts once it is trusted"
    warning = ServiceResolutionError("service.untrusted", text)
    warning.next = ("cogcli config trust",)
    return now._replace(warnings=(warning,))


def explain_skill(settings: Settings, skill_id: str) -> ChoiceExplanation:
    """Explain the choice for each capability that a skill can reach, and list the specs that it
    shadows.

    Raise SkillNotFoundError."""
    catalog = open_registry(settings).reach(skill_id)
    warning = untrusted_warning(settings, "skill", skill_id)
    given = selection_options(settings)
    blocking = [problem for problem in check(catalog, options=given) if problem.severity != "W"]
    skill = catalog.skills.get(skill_id)
    body = {
        "skill_id": skill_id,
        "layer": Layers(settings).of(skill.file) if skill else None,
        "file": skill.file if skill else catalog.broken.get(f"skill:{skill_id}"),
        "shadows": find_shadowed_specs(catalog, "skill", skill_id),
        "capabilities": [explain_choice(catalog, id, given).body for id in catalog.capabilities],
    }
    warnings = () if warning is None else (warning,)
    return ChoiceExplanation(body, ProblemsFound(blocking) if blocking else None, warnings)


def explain_service(settings: Settings, service_id: str) -> ChoiceExplanation:
    """Explain why a service cannot be called. List the specs that it shadows and the capabilities
    that use it.

    Raise UsageError, or ProblemsFound if its file has errors."""
    view, service = find_spec(settings, "services", service_id)
    catalog, registry = view.catalog, open_registry(settings)
    uses = []
    warnings: dict[str, CogcliError] = {}
    for id, binding in sorted(catalog.bindings.items()):
        if binding.service == service_id:
            choice = _explain_choice_of_runs(settings, registry, catalog, binding.capability)
            row = next((row for row in choice.body["bindings"] if row["binding_id"] == id), None)
            if row is not None:
                uses.append({"capability_id": binding.capability, **row})
            warnings |= {warning.message: warning for warning in choice.warnings}
    body = {
        "service_id": service_id,
        "layer": service.layer,
        "file": service.file,
        "trusted": service.trusted,
        "shadows": find_shadowed_specs(catalog, "service", service_id),
        "bindings": uses,
    }
    return ChoiceExplanation(body, None, tuple(warnings.values()))


_EXPLAIN: Final = {"skills": explain_skill, "services": explain_service}


def explain_spec(settings: Settings, kind: str, name: str) -> ChoiceExplanation:
    """Explain the choice for a skill, a service or the capability of this name.

    Raise the errors of these explanations."""
    return _EXPLAIN.get(kind, explain_capability)(settings, name)


def explain_choice(
    catalog: Catalog, capability_id: str, options: SelectionOptions
) -> ChoiceExplanation:
    """Explain the choice for one capability of a catalog."""
    explanation = explain_selection(catalog, capability_id, options)
    return ChoiceExplanation(
        {
            "capability_id": explanation.capability_id,
            "selection_source": None,
            "primary_binding_id": None,
            "required_conformance_profile": minimum_conformance(
                catalog.capability(capability_id), options
            ),
            "considered": [considered._asdict() for considered in explanation.considered],
            "chain": [],
            **(explanation.selection.to_payload() if explanation.selection else {}),
            "usable": explanation.error is None,
            "bindings": list(_list_bindings(catalog, explanation, options)),
        },
        explanation.error,
    )


def _list_bindings(
    catalog: Catalog, explanation: Explanation, options: SelectionOptions
) -> Iterator[Json]:
    """Yield every binding of the capability with its state. The bindings of the chain come first."""
    chain = {
        link.binding_id: link
        for link in (explanation.selection.chain if explanation.selection else ())
    }
    first = next((link.binding_id for link in chain.values() if link.eligible), None)
    for id in dict.fromkeys((*chain, *catalog.bindings_of.get(explanation.capability_id, ()))):
        state, reason = _binding_state(catalog, explanation, id, first, options)
        row: Json = {"binding_id": id, "state": state, "reason": reason}
        binding = catalog.bindings.get(id)
        if binding is None:
            yield row | {"file": catalog.broken.get(f"binding:{id}")}
            continue
        service = catalog.services.get(binding.service)
        yield row | {
            "protocol": binding.protocol,
            "service_id": binding.service,
            "conformance_profile": binding.conformance,
            "channel": binding.channel,
            "layer": binding.layer,
            "file": binding.file,
            "shadows": find_shadowed_specs(catalog, "binding", id),
            "service_layer": service.layer if service else None,
            "service_file": service.file
            if service
            else catalog.broken.get(f"service:{binding.service}"),
            "service_shadows": find_shadowed_specs(catalog, "service", binding.service),
        }


def _binding_state(
    catalog: Catalog,
    explanation: Explanation,
    id: str,
    first: str | None,
    options: SelectionOptions,
) -> tuple[str, str]:
    """Return the state of a binding (`chosen`, `fallback`, `unusable` or `not named`) and the
    reason.

    `first` is the id of the first eligible binding of the chain."""
    selection = explanation.selection
    chain = selection.chain if selection else ()
    link = next((link for link in chain if link.binding_id == id), None)
    if link and not link.eligible:
        return "unusable", link.reason
    if link and explanation.error is None:
        if link is chain[0]:
            return "chosen", explanation.considered[-1].reason
        return _fallback_state(catalog, chain, id, is_first=id == first)
    binding = catalog.bindings[id]
    why = "; ".join(reason.text for reason in reasons(catalog, binding, options))
    return (
        ("unusable", why) if why else ("not named", _explain_absence(catalog, binding, selection))
    )


def _explain_absence(catalog: Catalog, binding: Binding, selection: Selection | None) -> str:
    """Return why a usable binding is not in the chain."""
    if binding.channel == CANDIDATE:
        return "a candidate, used only when it is named itself"
    if selection is None:
        return "no rule names it"
    source, primary = selection.selection_source, selection.primary_binding_id
    listed = (
        catalog.defaults.bindings.get(selection.capability_id, ()) if source == "policy" else ()
    )
    return f"{source} names `{primary}`{' before it' if binding.id in listed else ''}"


def _fallback_state(
    catalog: Catalog, chain: Sequence[ChainLink], id: str, *, is_first: bool
) -> tuple[str, str]:
    """Return the state of a fallback, and the reason. `is_first`: no earlier binding of the chain
    is eligible."""
    before = (catalog.bindings.get(link.binding_id) for link in chain)
    owner = next(binding.id for binding in before if binding and binding.fallback == id)
    if is_first:
        return "chosen", f"the fallback of `{owner}`, which cannot be used"
    return "fallback", f"called where `{owner}` fails"


def _problems_error(catalog: Catalog, file: str) -> CogcliError:
    """Return the error with the problems of a file, or all problems if the file has none."""
    own = [problem for problem in catalog.problems if problem.file == file]
    return ProblemsFound(sort_problems(own or catalog.problems))
