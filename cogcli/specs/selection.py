"""Choosing the binding of a capability (docs/reference/binding.md#selection).

1. The first rule that names a binding decides: flag, active, override, policy, only. The environment never selects.
2. A binding named by flag, active or override must itself be eligible; after an override that only prefers, the next
   rule decides instead. For one named by policy or only, an eligible fallback is used.
3. A binding of channel `candidate` is used only where flag, active or override names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from cogcli.core.errors import BindingResolutionError
from cogcli.specs.binding_chain import BY_NAME, ChainLink, Considered, Reason, Selection, SelectionOptions
from cogcli.specs.eligibility import conformance_needed, reasons
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

__all__ = ["BY_NAME", "ChainLink", "Considered", "Selection", "SelectionOptions", "named_binding", "select"]

CANDIDATE: Final = "candidate"


def select(catalog: Catalog, capability_id: str, options: SelectionOptions) -> Selection:
    """The binding chain of a capability, given by id or alias.

    Raises BindingResolutionError `binding.none`, `binding.ambiguous` or `binding.ineligible`, or with the code of the
    only reason; its hint lists every reason.
    """
    selection = named_binding(catalog, capability_id, options)
    if not any(link.eligible for link in selection.tried):
        raise ineligible_error(catalog, selection)
    return selection


def named_binding(catalog: Catalog, capability_id: str, options: SelectionOptions) -> Selection:
    """The chain that the rules name for a capability, given by id or alias, whether or not a member is eligible.

    Raises BindingResolutionError `binding.none` or `binding.ambiguous`.
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
    """The deciding rule and the binding it names. Raises BindingResolutionError where none names one."""
    for rule in RULES:
        found = _RULES[rule](catalog, id, options)
        considered.append(found)
        if found.chosen and found.binding_id is not None:
            return rule, found.binding_id
        if rule == "flag":
            _require_readable(catalog, id)
    ids = _no_candidates(catalog, id)
    if len(ids) > 1:
        raise ambiguous_error(catalog, id, ids, options)
    raise no_binding_error(catalog, id, catalog.bindings_of.get(id, ()))


def _by_flag(catalog: Catalog, id: str, options: SelectionOptions) -> Considered:
    names = [id, *(alias for alias, target in catalog.aliases.items() if target == id)]
    flag = next((options.binds[name] for name in names if name in options.binds), None)
    return Considered(
        "flag", flag, flag is not None, "not given" if flag is None else "named on the command line"
    )


def _by_active(catalog: Catalog, id: str, options: SelectionOptions) -> Considered:
    active = catalog.host.active.get(id)
    return _considered("active", active.binding if active else None, active.file if active else "")


def _by_policy(catalog: Catalog, id: str, options: SelectionOptions) -> Considered:
    return _considered("policy", catalog.defaults.bindings.get(id), catalog.defaults.files.get(id, ""))


def _considered(rule: str, binding: str | None, file: str) -> Considered:
    return Considered(
        rule, binding, binding is not None, "names none" if binding is None else f"named in {file}"
    )


def _by_override(catalog: Catalog, id: str, options: SelectionOptions) -> Considered:
    """The binding of an override. Raises BindingResolutionError `binding.none` for a service without a binding."""
    override = catalog.host.overrides.get(id)
    if override is None:
        return _considered("override", None, "")
    name = override.binding or find_binding_on(catalog, id, override.service or "")
    if name is None:
        reason = f"{override.file} names service `{override.service}`, which has no binding for it"
        if override.prefers:
            return Considered("override", None, False, reason)
        hint = f"add a binding on `{override.service}`, or write mode: prefer"
        raise nothing_named_error(id, reason, hint, file=override.file)
    if override.prefers:
        link = _evaluate_link(catalog, id, name, options, named=True)
        if not link.eligible:
            return Considered("override", name, False, f"preferred in {override.file}, but {link.reason}")
    on = "" if override.binding else f" as the binding on service `{override.service}`"
    verb = "preferred" if override.prefers else "named"
    return Considered("override", name, True, f"{verb} in {override.file}{on}")


def _by_only(catalog: Catalog, id: str, options: SelectionOptions) -> Considered:
    ids = _no_candidates(catalog, id)
    if len(ids) == 1:
        return Considered("only", ids[0], True, "the only one")
    reason = f"there are {len(ids)}: {', '.join(ids)}" if ids else "there is none"
    return Considered("only", None, False, reason)


_RULES: Final[dict[str, Callable[[Catalog, str, SelectionOptions], Considered]]] = {
    "flag": _by_flag,
    "active": _by_active,
    "override": _by_override,
    "policy": _by_policy,
    "only": _by_only,
}
RULES: Final = tuple(_RULES)
"""The rules in order; the first that names a binding decides."""


def _no_candidates(catalog: Catalog, id: str) -> list[str]:
    return [name for name in catalog.bindings_of.get(id, ()) if catalog.bindings[name].channel != CANDIDATE]


def _require_readable(catalog: Catalog, id: str) -> None:
    """Raise where a file that could name a binding cannot be read: the choice is not known."""
    for key, file in catalog.broken.items():
        if key.startswith(("active:", "overrides:")):
            raise nothing_named_error(
                id, f"{file} has errors, so nothing is chosen", f"cogcli validate {file}", file=file
            )


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
