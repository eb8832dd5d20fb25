"""The missing requirements of capabilities and skills, for `ls --usable`, `doctor`, `run --plan`
and `registry` (docs/reference/command-line.md#needs)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.base.errors import BindingResolutionError
from cogcli.base.extras import install_line, missing_module
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.protocols import PROTOCOLS
from cogcli.specs.binding_chain import ChainLink, Reason
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.checks.replaced import is_made_unusable
from cogcli.specs.closure import capability_closure, skill_closure
from cogcli.specs.eligibility import reasons, variables_of
from cogcli.specs.registry import Registry, catalog_without_trust
from cogcli.specs.selection import SelectionOptions, named_binding, select
from cogcli.specs.skill import capabilities_of, skills_of

KINDS: Final = {
    "model": "a model",
    "service": "a service of the host",
    "web": "the web",
    "extra": "an extra",
    "isolation": "isolation",
    "trust": "trust",
    "effects": "a real effect",
    "replaced": "what is shipped as it is shipped",
    "example": "an example that runs",
    "case": "a case that runs it",
    "binding": "a binding",
}
"""The kinds of needs, with their words."""
_BY_CODE: Final = {"env.missing": "service", "service.untrusted": "trust", "env.extra": "extra"}
REPLACED: Final = "replaced"
MODEL: Final = "model"
"""The `purpose` of a service that is a language model."""


NETWORK: Final = "COGCLI_TEST_NETWORK"
"""The variable that allows checks and cases to use the network."""


class MissingRequirement(NamedTuple):
    """One missing requirement, with the command or change that satisfies it. `kind` is one of
    KINDS."""

    kind: str
    text: str
    cure: str = ""
    short: str = ""
    """The need in two or three words, such as `extra pdf`; empty if only its kind is known."""

    @property
    def brief(self) -> str:
        """Return the need in two or three words."""
        return self.short or ("no binding" if self.kind == "binding" else self.kind)

    @property
    def sentence(self) -> str:
        """Return `needs an extra: ...`."""
        return f"needs {KINDS[self.kind]}: {self.text}"

    def to_payload(self) -> Json:
        """Return the need as a JSON object."""
        return self._replace(short=self.brief)._asdict()


_FEW: Final = 6
"""The number of closures from which one check of all files costs less than a check of each closure.
"""


class RequirementSearch:
    """The missing requirements of the capabilities and skills of a catalog. The network is assumed
    to work.

    A need is anything that keeps a run from starting, so the checks of a run find it in the
    closure. After a few closures, all files are checked once. From then on, only a closure that
    contains a file with an error is checked by itself. This is sound because a closure has no error
    that the whole catalog lacks, except errors in the selection of bindings. `_needs_of_selection`
    finds these."""

    def __init__(self, catalog: Catalog, options: SelectionOptions) -> None:
        self._catalog = catalog
        self._options = options
        self._capabilities: dict[str, tuple[MissingRequirement, ...]] = {}
        self._skills: dict[str, tuple[MissingRequirement, ...]] = {}
        self._called: dict[str, tuple[MissingRequirement, ...]] = {}
        self._closures = 0
        self._faulty: frozenset[str] | None = None

    def capability(self, id: str) -> tuple[MissingRequirement, ...]:
        """Return the missing needs of a capability and its gates; empty if it can be called."""
        if id not in self._capabilities:
            self._capabilities[id] = self._needs_of_closure(
                capability_closure(self._catalog, id), [id]
            )
        return self._capabilities[id]

    def skill(self, id: str) -> tuple[MissingRequirement, ...]:
        """Return the missing needs of a skill and its closure, each once; empty if it can run.

        A skill in a cycle always has a need."""
        if id not in self._skills:
            closure = skill_closure(self._catalog, id)
            called = dict.fromkeys(
                name for one in closure.skills.values() for name in capabilities_of(one)
            )
            nested = [name for skill in closure.skills.values() for name in skills_of(skill)]
            missing = [name for name in (id, *nested) if name not in closure.skills]
            needs = [
                MissingRequirement("binding", f"no skill `{name}`", short=f"skill {name}")
                for name in missing
            ]
            self._skills[id] = tuple(
                dict.fromkeys([*needs, *self._needs_of_closure(closure, called)])
            )
        return self._skills[id]

    def _needs_of_closure(
        self, closure: Catalog, capabilities: Iterable[str]
    ) -> tuple[MissingRequirement, ...]:
        names = dict.fromkeys([*capabilities, *closure.capabilities])
        needs = [need for name in names for need in self._needs_of_call(name)]
        if self._may_be_refused(closure):
            needs += _find_closure_errors(closure, self._options)
        return tuple(dict.fromkeys(needs))

    def _may_be_refused(self, closure: Catalog) -> bool:
        """Return whether a run of the closure may be refused because of errors in files.

        That is so if a file of the closure has an error, or if a file with an error contains no spec of the catalog.
        Also True if this is unknown.
        """
        self._closures += 1
        catalog = self._catalog
        if self._closures <= _FEW or catalog.partial or catalog.only is not None:
            return True
        if self._faulty is None:
            problems = check(catalog, options=self._options)
            self._faulty = frozenset(p.file for p in problems if p.severity != "W")
        faulty = self._faulty
        return not faulty.isdisjoint(_spec_files(closure)) or not faulty <= _spec_files(catalog)

    def _needs_of_call(self, id: str) -> tuple[MissingRequirement, ...]:
        """Return the missing needs of the binding that is selected for a capability."""
        if id not in self._called:
            self._called[id] = tuple(_needs_of_selection(self._catalog, id, self._options))
        return self._called[id]


class UntrustedRunRequirements(RequirementSearch):
    """The missing needs in an untrusted project (docs/reference/service.md#trust).

    A run of a spec from a trusted layer reads only trusted layers. Any other run may only call services that are open
    to such a project.
    """

    def __init__(self, trusted: Catalog, whole: Catalog, options: SelectionOptions) -> None:
        super().__init__(whole, options)
        self._trusted = trusted
        self._needs_of_trusted = RequirementSearch(trusted, options)

    def capability(self, id: str) -> tuple[MissingRequirement, ...]:
        """Return the missing needs of a capability and its gates; empty if it can be called."""
        if self._trusted.capability(id) is not None:
            return self._needs_of_trusted.capability(id)
        return super().capability(id)

    def skill(self, id: str) -> tuple[MissingRequirement, ...]:
        """Return the missing needs of a skill and its closure, each once; empty if it can run."""
        return self._needs_of_trusted.skill(id) if id in self._trusted.skills else super().skill(id)


def find_needs(
    registry: Registry, catalog: Catalog, options: SelectionOptions
) -> RequirementSearch:
    """Return the missing needs of a catalog, which has all specs of a registry or the closure of
    one run."""
    if registry.is_trusted or catalog.partial:
        return RequirementSearch(catalog, options)
    distrust = registry.without_trust().distrust
    whole = catalog_without_trust(catalog, distrust)
    return UntrustedRunRequirements(registry.trusted_layers().everything(), whole, options)


def _spec_files(catalog: Catalog) -> set[str]:
    """Return the files of the specs of a catalog, including files with errors."""
    by_kind = (catalog.skills, catalog.capabilities, catalog.bindings, catalog.services)
    return {spec.file for specs in by_kind for spec in specs.values()} | {*catalog.broken.values()}


def _find_closure_errors(
    closure: Catalog, options: SelectionOptions
) -> Iterator[MissingRequirement]:
    """Yield the errors that keep a run of the closure from starting, except errors in the selection
    of bindings."""
    reported = [
        error.message
        for id in closure.capabilities
        if (error := _selection_error(closure, id, options))
    ]
    for problem in check(closure, options=options):
        if problem.severity != "W" and not problem.message.endswith(tuple(reported)):
            place = f"{problem.file}:{problem.line}" if problem.line else problem.file
            kind = REPLACED if is_made_unusable(problem) else _BY_CODE.get(problem.code, "binding")
            yield MissingRequirement(
                kind, f"{place}: {problem.message}", problem.hint, f"error {problem.code}"
            )


def _selection_error(
    catalog: Catalog, id: str, options: SelectionOptions
) -> BindingResolutionError | None:
    """Return the error of the selection of a binding; None if the selection succeeds."""
    try:
        select(catalog, id, options)
    except BindingResolutionError as error:
        return error
    return None


def _needs_of_selection(
    catalog: Catalog, id: str, options: SelectionOptions
) -> Iterator[MissingRequirement]:
    """Yield the missing needs of the binding that is selected for a capability."""
    if catalog.capability(id) is None:
        yield MissingRequirement("binding", f"no capability `{id}`", short=f"capability {id}")
        return
    try:
        link = first_eligible_link(catalog, id, options)
    except BindingResolutionError as error:
        yield MissingRequirement("binding", error.message, error.hint, "no binding")
        return
    service = catalog.services.get(link.service_id or "")
    for reason in link.reasons:
        yield _need_from_reason(reason, service)
    if link.eligible and service is not None and (extra := protocol_extra(service)):
        yield MissingRequirement(
            "extra", f"it needs the extra `{extra}`", install_line(extra), f"extra {extra}"
        )


def first_eligible_link(catalog: Catalog, id: str, options: SelectionOptions) -> ChainLink:
    """Return the first binding of a capability that can be called, or else the first of its chain.

    Raise BindingResolutionError if no binding is selected."""
    chain = named_binding(catalog, id, options)
    return next((link for link in chain.candidates if link.eligible), chain.chain[0])


def needs_of_binding(
    catalog: Catalog, binding: Binding, options: SelectionOptions
) -> list[MissingRequirement]:
    """Return the missing needs of a binding; empty if it can be called."""
    service = catalog.services.get(binding.service)
    return [_need_from_reason(reason, service) for reason in reasons(catalog, binding, options)]


def _need_from_reason(reason: Reason, service: Service | None) -> MissingRequirement:
    """Convert the reason why a binding cannot be called to a need."""
    kind = reason.need or _BY_CODE.get(reason.code, "binding")
    kind = MODEL if kind == "service" and is_model(service) else kind
    return MissingRequirement(kind, reason.text, reason.cure, reason.short)


def is_model(service: Service | None) -> bool:
    """Return whether a service is a language model, by its `metadata.purpose`."""
    return service is not None and service.metadata.purpose == MODEL


def protocol_extra(service: Service) -> str:
    """Return the missing extra of a service's protocol; empty if nothing is missing."""
    extra = PROTOCOLS[service.kind].extra if "server" not in service.settings else ""
    return extra if extra and missing_module(extra) else ""


def find_outside_need(
    catalog: Catalog, capability: Capability, link: ChainLink
) -> MissingRequirement | None:
    """Return the need for a service outside this machine; None for a function on this machine."""
    service = catalog.services.get(link.service_id or "")
    if service is None:
        return None
    if catalog.in_process(service) and not service.declares_network:
        return None
    if is_model(service):
        return MissingRequirement(MODEL, f"service `{service.id}` is a model")
    binding = catalog.bindings.get(link.binding_id)
    kind = "service" if service.variables or any(variables_of(binding, service)) else "web"
    return MissingRequirement(kind, f"service `{service.id}` is outside of this machine")


def count_first_needs(needs_by_entry: Iterable[tuple[MissingRequirement, ...]]) -> dict[str, int]:
    """Count entries by their first need, in the order of KINDS. Entries without needs are not
    counted."""
    order = [*KINDS]
    first = [
        min(needs, key=lambda need: order.index(need.kind)).kind
        for needs in needs_by_entry
        if needs
    ]
    return {kind: first.count(kind) for kind in KINDS if kind in first}


def describe_counts(counts: dict[str, int]) -> str:
    """Return counts as `a model (4), the web (5)`. If there is only one kind, omit the count."""
    if len(counts) == 1:
        return KINDS[next(iter(counts))]
    return ", ".join(f"{KINDS[kind]} ({count})" for kind, count in counts.items())
