"""Choosing the binding of a capability (docs/reference/binding.md#selection).

1. The first rule that names a binding decides: flag, active, override, policy, only. The environment never selects.
2. A binding named by flag, active or override must itself be eligible; after an override that only prefers, the next
   rule decides instead. For one named by policy or only, an eligible fallback is used.
3. A binding of channel `candidate` is used only where flag, active or override names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.errors import BindingResolutionError
from cogcli.specs.eligibility import Reason, SelectionOptions, conformance_needed, reasons
from cogcli.specs.selection_errors import (
    ambiguous_error,
    ineligible_error,
    no_binding_error,
    nothing_named_error,
    other_capability_reason,
    unknown_binding_reason,
)

if TYPE_CHECKING:
    from cogcli.specs.catalog import Catalog
    from cogcli.specs.host_overrides import Override

__all__ = ["ChainLink", "Considered", "Selection", "SelectionOptions", "named_binding", "select"]

CANDIDATE: Final = "candidate"
RULES: Final = ("flag", "active", "override", "policy", "only")
BY_NAME: Final = ("flag", "active", "override")
"""The rules that name one binding without alternatives."""


class Considered(NamedTuple):
    """A rule that was evaluated, the binding that it names if any, and why it was chosen or not."""

    rule: str
    binding_id: str | None
    chosen: bool
    reason: str


class ChainLink(NamedTuple):
    """A member of the fallback chain; `reasons`: why it is not eligible."""

    binding_id: str
    service_id: str | None
    conformance_profile: str | None
    reasons: tuple[Reason, ...] = ()

    @property
    def eligible(self) -> bool:
        """Whether it may be called."""
        return not self.reasons


class Selection(NamedTuple):
    """The chain chosen for a capability, and the rules that led to it."""

    capability_id: str
    selection_source: str
    primary_binding_id: str
    required_conformance_profile: str
    considered: tuple[Considered, ...]
    chain: tuple[ChainLink, ...]

    @property
    def tried(self) -> tuple[ChainLink, ...]:
        """The members of which the first eligible one is called first."""
        return self.chain[:1] if self.selection_source in BY_NAME else self.chain

    @property
    def usable(self) -> tuple[str, ...]:
        """The eligible bindings in calling order; a result of `select` has at least one."""
        return tuple(link.binding_id for link in self.chain if link.eligible)

    def as_dict(self) -> dict[str, Any]:
        """The explanation as a JSON object, as shown and recorded."""
        return {
            "capability_id": self.capability_id,
            "selection_source": self.selection_source,
            "primary_binding_id": self.primary_binding_id,
            "required_conformance_profile": self.required_conformance_profile,
            "considered": [
                {"rule": c.rule, "binding_id": c.binding_id, "chosen": c.chosen, "reason": c.reason}
                for c in self.considered
            ],
            "chain": [
                {
                    "binding_id": link.binding_id,
                    "service_id": link.service_id,
                    "conformance_profile": link.conformance_profile,
                    "eligible": link.eligible,
                    "reason": "; ".join(reason.text for reason in link.reasons),
                }
                for link in self.chain
            ],
        }


def select(catalog: Catalog, capability_id: str, options: SelectionOptions) -> Selection:
    """The binding chain of a capability, given by id or alias.

    Raises BindingResolutionError `binding.none`, `binding.ambiguous_error` or `binding.ineligible_error`, or with the
    code of the
    only reason; its hint lists every reason.
    """
    selection = named_binding(catalog, capability_id, options)
    if not any(link.eligible for link in selection.tried):
        raise ineligible_error(catalog, selection)
    return selection


def named_binding(catalog: Catalog, capability_id: str, options: SelectionOptions) -> Selection:
    """The chain that the rules name for a capability, given by id or alias, whether or not a member is eligible.

    Raises BindingResolutionError `binding.none` or `binding.ambiguous_error`.
    """
    return _select(catalog, capability_id, options, [])


class Explanation(NamedTuple):
    """A selection and its rules: those evaluated, and either the selection or the error; the other one is None."""

    capability_id: str
    considered: tuple[Considered, ...]
    selection: Selection | None
    error: BindingResolutionError | None


def explain_selection(catalog: Catalog, capability_id: str, options: SelectionOptions) -> Explanation:
    """The explanation of `select`, without raising; a selection without an eligible binding has its error too."""
    considered: list[Considered] = []
    found: Selection | None = None
    try:
        found = _select(catalog, capability_id, options, considered)
        select(catalog, capability_id, options)
    except BindingResolutionError as error:
        return Explanation(error.capability_id or capability_id, tuple(considered), found, error)
    return Explanation(found.capability_id, found.considered, found, None)


def _select(
    catalog: Catalog, capability_id: str, options: SelectionOptions, considered: list[Considered]
) -> Selection:
    """The chain that the rules name; every rule evaluated is added to `considered`, also where this raises."""
    capability = catalog.capability(capability_id)
    id = capability.id if capability else capability_id
    source, primary = _decide(catalog, id, options, considered)
    chain = _chain(catalog, id, primary, options, explicit=source in BY_NAME)
    return Selection(
        id, source, primary, conformance_needed(capability, options), tuple(considered), tuple(chain)
    )


def _decide(
    catalog: Catalog, id: str, options: SelectionOptions, considered: list[Considered]
) -> tuple[str, str]:
    """The deciding rule and the binding it names."""
    asked = [id, *(alias for alias, target in catalog.aliases.items() if target == id)]
    flag = next((options.binds[name] for name in asked if name in options.binds), None)
    if flag is not None:
        considered.append(Considered("flag", flag, True, "named on the command line"))
        return "flag", flag
    considered.append(Considered("flag", None, False, "not given"))
    _require_readable(catalog, id)
    active = catalog.host.active.get(id)
    if active is not None:
        considered.append(Considered("active", active.binding, True, f"named in {active.file}"))
        return "active", active.binding
    considered.append(Considered("active", None, False, "names none"))
    override = catalog.host.overrides.get(id)
    if override is None:
        considered.append(Considered("override", None, False, "names none"))
    else:
        found = _apply_override(catalog, id, override, options)
        considered.append(found)
        if found.chosen and found.binding_id is not None:
            return "override", found.binding_id
    policy = catalog.defaults.bindings.get(id)
    if policy is not None:
        file = catalog.defaults.files.get(id, "")
        considered.append(Considered("policy", policy, True, f"named in {file}"))
        return "policy", policy
    considered.append(Considered("policy", None, False, "names none"))
    return "only", _only_binding(catalog, id, options, considered)


def _require_readable(catalog: Catalog, id: str) -> None:
    """Raise where a file that could name a binding cannot be read: the choice is not known."""
    for key, file in catalog.broken.items():
        if key.startswith(("active:", "overrides:")):
            raise nothing_named_error(
                id, f"{file} has errors, so nothing is chosen", f"cogcli validate {file}", file=file
            )


def _apply_override(catalog: Catalog, id: str, override: Override, options: SelectionOptions) -> Considered:
    """The binding of an override. Raises BindingResolutionError `binding.none` for a service without a binding."""
    name = override.binding or find_binding_on(catalog, id, override.service or "")
    on = "" if override.binding else f" as the binding on service `{override.service}`"
    if name is None:
        said = f"{override.file} names service `{override.service}`, which has no binding for it"
        if override.prefers:
            return Considered("override", None, False, said)
        hint = f"add a binding on `{override.service}`, or write mode: prefer"
        raise nothing_named_error(id, said, hint, file=override.file)
    if override.prefers:
        link = _evaluate_link(catalog, id, name, options, named=True)
        if not link.eligible:
            reason = "; ".join(reason.text for reason in link.reasons)
            return Considered("override", name, False, f"preferred in {override.file}, but {reason}")
        return Considered("override", name, True, f"preferred in {override.file}{on}")
    return Considered("override", name, True, f"named in {override.file}{on}")


def find_binding_on(catalog: Catalog, id: str, service: str) -> str | None:
    """A capability's binding on a service: of those that are no candidates, in the latest layer, the first by id."""
    fitting = [
        binding
        for binding in map(catalog.bindings.__getitem__, catalog.bindings_of.get(id, ()))
        if binding.service == service and binding.channel != CANDIDATE
    ]
    rank = {name: position for position, name in enumerate(catalog.layers)}
    # What lies in no layer was given last.
    fitting.sort(key=lambda binding: (-rank.get(binding.layer, len(rank)), binding.id))
    return fitting[0].id if fitting else None


def _only_binding(catalog: Catalog, id: str, options: SelectionOptions, considered: list[Considered]) -> str:
    """The only binding that is no candidate. Raises BindingResolutionError `binding.none`,
    `binding.ambiguous_error`."""
    all_ids = catalog.bindings_of.get(id, ())
    ids = [name for name in all_ids if catalog.bindings[name].channel != CANDIDATE]
    if not ids:
        considered.append(Considered("only", None, False, "there is none"))
        raise no_binding_error(catalog, id, all_ids)
    if len(ids) > 1:
        considered.append(Considered("only", None, False, f"there are {len(ids)}: {', '.join(ids)}"))
        raise ambiguous_error(catalog, id, ids, options)
    considered.append(Considered("only", ids[0], True, "the only one"))
    return ids[0]


def _chain(
    catalog: Catalog, id: str, primary: str, options: SelectionOptions, *, explicit: bool
) -> list[ChainLink]:
    """The primary binding and its fallbacks, each with its reasons; a cycle ends at its start."""
    chain: list[ChainLink] = []
    name: str | None = primary
    while name is not None and all(link.binding_id != name for link in chain):
        link = _evaluate_link(catalog, id, name, options, named=explicit and not chain)
        chain.append(link)
        binding = catalog.bindings.get(name)
        name = binding.fallback if binding and binding.capability == id else None
    return chain


def _evaluate_link(
    catalog: Catalog, id: str, name: str, options: SelectionOptions, *, named: bool
) -> ChainLink:
    binding = catalog.bindings.get(name)
    if binding is None:
        return ChainLink(name, None, None, (unknown_binding_reason(catalog, id, name),))
    found = []
    if binding.capability != id:
        found.append(other_capability_reason(catalog, id, binding.capability))
    if binding.channel == CANDIDATE and not named:
        found.append(Reason("binding.ineligible", "it is a candidate, used only when named itself"))
    found += reasons(catalog, binding, options)
    return ChainLink(name, binding.service, binding.conformance, tuple(found))


def _first_candidates(source: str, chain: tuple[ChainLink, ...]) -> tuple[ChainLink, ...]:
    """The members of which the first eligible one is called first."""
    return chain[:1] if source in BY_NAME else chain
