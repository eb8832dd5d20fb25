"""The selection of a capability's binding (docs/reference/binding.md#selection).

1. The first rule that names a binding decides: flag, active, override, prefer, policy, only. Environment variables name
   none.
2. A binding named by flag, active or override must itself be eligible. After an override with mode prefer, and after
   preferred services, the next rule decides instead. For a binding named by prefer, policy or only, fallbacks are used.
   If a policy names several bindings, the first eligible one is chosen, otherwise the first with an eligible fallback.
3. A binding of channel `candidate` is used only if flag, active or override names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.base.errors import BindingResolutionError
from cogcli.base.named_tuple import NamedTuple
from cogcli.specs.binding_chain import (
    BY_NAME,
    CANDIDATE,
    ChainLink,
    EvaluatedRule,
    Reason,
    Selection,
    SelectionOptions,
)
from cogcli.specs.catalog import Catalog
from cogcli.specs.eligibility import minimum_conformance, reasons
from cogcli.specs.selection_errors import (
    ambiguous_error,
    ineligible_error,
    no_binding_error,
    no_usable_binding_error,
    other_capability_reason,
    unknown_binding_reason,
)
from cogcli.specs.shipped_fit import explain_shipped_misfit, is_shipped_file

__all__ = [
    "BY_NAME",
    "CANDIDATE",
    "ChainLink",
    "EvaluatedRule",
    "Selection",
    "SelectionOptions",
    "named_binding",
    "select",
]


def select(catalog: Catalog, capability_id: str, options: SelectionOptions) -> Selection:
    """Return the binding chain of a capability, by id or alias.

    Raise BindingResolutionError `binding.none`, `binding.ambiguous` or `binding.ineligible`. If all reasons have the
    same code, the error has that code instead. Its hint lists every reason.
    """
    chooser = _Chooser(catalog, capability_id, options)
    selection = chooser.selection()
    if not any(link.eligible for link in selection.candidates):
        others = [
            link for link in chooser.listed if link.binding_id != selection.primary_binding_id
        ]
        raise ineligible_error(catalog, selection, options, others=others)
    return selection


def named_binding(catalog: Catalog, capability_id: str, options: SelectionOptions) -> Selection:
    """Return the chain that the rules name for a capability, by id or alias, even if no binding in it is eligible.

    Raise BindingResolutionError `binding.none` or `binding.ambiguous`.
    """
    return _Chooser(catalog, capability_id, options).selection()


class Explanation(NamedTuple):
    """A selection or an error, with the rules that were evaluated.

    Only one of selection and error is set, unless the selection has no eligible binding.
    """

    capability_id: str
    considered: tuple[EvaluatedRule, ...]
    selection: Selection | None
    error: BindingResolutionError | None


def explain_selection(
    catalog: Catalog, capability_id: str, options: SelectionOptions
) -> Explanation:
    """Select a binding like `select`, but return errors instead of raising them.

    A selection without an eligible binding is returned together with its error.
    """
    chooser = _Chooser(catalog, capability_id, options)
    found: Selection | None = None
    try:
        found = chooser.selection()
        select(catalog, capability_id, options)
    except BindingResolutionError as error:
        return Explanation(
            error.capability_id or capability_id, tuple(chooser.considered), found, error
        )
    return Explanation(found.capability_id, found.considered, found, None)


class _Chooser:
    """Chooses the binding of one capability. `considered` has every rule that was evaluated, even after an error."""

    def __init__(self, catalog: Catalog, name: str, options: SelectionOptions) -> None:
        self.catalog = catalog
        self.options = options
        self.capability = catalog.capability(name)
        self.id = self.capability.id if self.capability else name
        self.considered: list[EvaluatedRule] = []
        self.listed: tuple[ChainLink, ...] = ()
        """The bindings of a policy that names several, if that policy decides."""

    def selection(self) -> Selection:
        """Return the chain that the rules name: the primary binding and its fallbacks.

        If the fallbacks form a cycle, the chain ends before it repeats.
        """
        source, primary = self._find_deciding_rule()
        chain = self._build_chain(primary, is_named=source in BY_NAME)
        needed = minimum_conformance(self.capability, self.options)
        return Selection(self.id, source, primary, needed, tuple(self.considered), chain)

    def _find_deciding_rule(self) -> tuple[str, str]:
        """Return the deciding rule and its binding. Raise BindingResolutionError if no rule selects a binding."""
        for rule, find in _RULES.items():
            if rule == "prefer" and not self.options.prefer:
                continue  # most runs prefer nothing, and each log records the considered rules
            found = find(self)
            self.considered.append(found)
            if found.chosen and found.binding_id is not None:
                return rule, found.binding_id
            if rule == "flag":
                self._require_readable()
        ids = self._list_non_candidates()
        if len(ids) > 1:
            raise ambiguous_error(self.catalog, self.id, ids, self.options)
        raise no_binding_error(self.catalog, self.id, self.catalog.bindings_of.get(self.id, ()))

    def _require_readable(self) -> None:
        """Raise BindingResolutionError if an unreadable file might name a binding: then the choice is unknown."""
        for key, file in self.catalog.broken.items():
            if key.startswith(("active:", "overrides:")):
                text = f"{file} has errors, so nothing is chosen"
                raise no_usable_binding_error(self.id, text, f"cogcli validate {file}", file=file)

    def by_flag(self) -> EvaluatedRule:
        aliases, binds = self.catalog.aliases, self.options.binds
        names = [self.id, *(alias for alias, target in aliases.items() if target == self.id)]
        flag = next((binds[name] for name in names if name in binds), None)
        return EvaluatedRule(
            "flag",
            flag,
            flag is not None,
            "not given" if flag is None else "named on the command line",
        )

    def by_active(self) -> EvaluatedRule:
        active = self.catalog.host.active.get(self.id)
        return _consider_file(
            "active", active.binding if active else None, active.file if active else ""
        )

    def by_policy(self) -> EvaluatedRule:
        """Return the default binding. If several bindings are listed, it is the first eligible one."""
        defaults = self.catalog.defaults
        names, file = defaults.bindings.get(self.id, ()), defaults.files.get(self.id, "")
        if len(names) < 2:
            return self._consider_single_default(next(iter(names), None), file)
        self.listed = tuple(self._build_link(name, is_named=False) for name in names)
        chosen = next((link for link in self.listed if link.eligible), None) or next(
            (link for link in self.listed if self._has_eligible_fallback(link)), self.listed[0]
        )
        before = self.listed[: self.listed.index(chosen)]
        passed = "".join(f"; before it `{link.binding_id}`: {link.reason}" for link in before)
        return EvaluatedRule("policy", chosen.binding_id, True, f"named in {file}{passed}")

    def _consider_single_default(self, name: str | None, file: str) -> EvaluatedRule:
        shipped = self.catalog.bindings.get(name or "")
        replaced = (
            shipped
            and is_shipped_file(self.catalog, file)
            and name not in self._list_non_candidates()
        )
        if shipped and replaced and (fault := explain_shipped_misfit(self.catalog, shipped)):
            return EvaluatedRule("policy", name, False, f"named in {file}, but {fault}")
        return _consider_file("policy", name, file)

    def _has_eligible_fallback(self, link: ChainLink) -> bool:
        return any(each.eligible for each in self._build_chain(link.binding_id, is_named=False))

    def by_override(self) -> EvaluatedRule:
        """Return the binding that an override selects. Raise BindingResolutionError `binding.none` if the capability
        has no binding on the overriding service.
        """
        override = self.catalog.host.overrides.get(self.id)
        if override is None:
            return _consider_file("override", None, "")
        file, service = override.file, override.service
        name = override.binding or find_binding_on(self.catalog, self.id, service or "")
        if name is None:
            reason = f"{file} names service `{service}`, which has no binding for it"
            if override.prefers:
                return EvaluatedRule("override", None, False, reason)
            hint = f"add a binding on `{service}`, or write mode: prefer"
            raise no_usable_binding_error(self.id, reason, hint, file=file)
        if override.prefers:
            link = self._build_link(name, is_named=True)
            if not link.eligible:
                return EvaluatedRule(
                    "override", name, False, f"preferred in {file}, but {link.reason}"
                )
        on = "" if override.binding else f" as the binding on service `{service}`"
        return EvaluatedRule(
            "override", name, True, f"{'preferred' if override.prefers else 'named'} in {file}{on}"
        )

    def by_prefer(self) -> EvaluatedRule:
        """Return the binding on the first preferred service that has an eligible one."""
        first, why = None, []
        for service in self.options.prefer:
            name = find_binding_on(self.catalog, self.id, service)
            if name is None:
                why.append(f"service `{service}` is preferred, but has no binding for it")
                continue
            link = self._build_link(name, is_named=False)
            if link.eligible:
                return EvaluatedRule("prefer", name, True, f"service `{service}` is preferred")
            first = first or name
            why.append(f"service `{service}` is preferred, but {link.reason}")
        return EvaluatedRule("prefer", first, False, "; ".join(why))

    def by_only(self) -> EvaluatedRule:
        ids = self._list_non_candidates()
        if len(ids) == 1:
            return EvaluatedRule("only", ids[0], True, "the only one")
        reason = f"there are {len(ids)}: {', '.join(ids)}" if ids else "there is none"
        return EvaluatedRule("only", None, False, reason)

    def _list_non_candidates(self) -> list[str]:
        """Return the bindings that are not candidates. If a replaced capability still fits some bindings, the shipped
        bindings that no longer fit are omitted.
        """
        bindings = [
            self.catalog.bindings[name] for name in self.catalog.bindings_of.get(self.id, ())
        ]
        ids = [each.id for each in bindings if each.channel != CANDIDATE]
        if self.id not in self.catalog.replaced:
            return ids
        return [
            name
            for name in ids
            if not explain_shipped_misfit(self.catalog, self.catalog.bindings[name])
        ] or ids

    def _build_chain(self, primary: str, *, is_named: bool) -> tuple[ChainLink, ...]:
        """Return a binding and its fallbacks. `is_named` is whether a rule names exactly this
        binding.
        """
        chain: list[ChainLink] = []
        name: str | None = primary
        while name is not None and all(link.binding_id != name for link in chain):
            chain.append(self._build_link(name, is_named=is_named and not chain))
            if self.options.no_fallback:
                break
            binding = self.catalog.bindings.get(name)
            name = binding.fallback if binding and binding.capability == self.id else None
        return tuple(chain)

    def _build_link(self, name: str, *, is_named: bool) -> ChainLink:
        binding = self.catalog.bindings.get(name)
        if binding is None:
            reason = unknown_binding_reason(self.catalog, self.id, name, self.options)
            return ChainLink(name, None, None, (reason,))
        found = []
        if binding.capability != self.id:
            found.append(
                other_capability_reason(self.catalog, self.id, binding.capability, self.options)
            )
        if binding.channel == CANDIDATE and not is_named:
            found.append(
                Reason("binding.ineligible", "it is a candidate, used only when named itself")
            )
        found += reasons(self.catalog, binding, self.options)
        return ChainLink(name, binding.service, binding.conformance, tuple(found))


def _consider_file(rule: str, binding: str | None, file: str) -> EvaluatedRule:
    reason = "names none" if binding is None else f"named in {file}"
    return EvaluatedRule(rule, binding, binding is not None, reason)


_RULES: Final[dict[str, Callable[[_Chooser], EvaluatedRule]]] = {
    "flag": _Chooser.by_flag,
    "active": _Chooser.by_active,
    "override": _Chooser.by_override,
    "prefer": _Chooser.by_prefer,
    "policy": _Chooser.by_policy,
    "only": _Chooser.by_only,
}
RULES: Final = tuple(_RULES)
"""The rules in order. The first one that selects a binding decides."""


def find_binding_on(catalog: Catalog, id: str, service: str) -> str | None:
    """Return a capability's binding on a service, or None.

    Of several bindings that are not candidates, the latest layer decides, then the order of ids.
    """
    bindings = (catalog.bindings[name] for name in catalog.bindings_of.get(id, ()))
    fitting = [each for each in bindings if each.service == service and each.channel != CANDIDATE]
    rank = {name: position for position, name in enumerate(catalog.layers)}
    # A binding outside all layers counts as the latest.
    fitting.sort(key=lambda binding: (-rank.get(binding.layer, len(rank)), binding.id))
    return fitting[0].id if fitting else None
