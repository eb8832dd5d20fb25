"""The context that is passed to every check: the catalog, the options of the run, and the problem reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Protocol, TypeVar, cast

from cogcli.base.errors import BindingResolutionError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import KeyPath, Problem, suggestion
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.declarations.skill_spec import Skill
from cogcli.specs.binding_chain import ChainLink, SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.selection import Selection, select
from cogcli.specs.selection_errors import other_capability_reason, unknown_binding_reason

S = TypeVar("S", Skill, Capability, Binding, Service)


class NeededFiles(NamedTuple):
    """The files that the skill of a partial catalog depends on, and the ids of services in `services.yaml` files."""

    files: set[str]
    services: set[str]
    shared: frozenset[str]

    def is_affected_by(self, problem: Problem) -> bool:
        """Return whether a problem affects the skill."""
        if problem.file in self.shared and problem.path.startswith("/services/"):
            return problem.path.split("/")[2] in self.services
        return problem.file in self.files


class CheckContext:
    """The catalog to check, with the options and problem reports. Each capability's selection is computed once."""

    def __init__(self, catalog: Catalog, options: SelectionOptions) -> None:
        self.catalog = catalog
        self.options = options
        self.documents: dict[str, set[str]] = {}
        """By display path of a document or lock with problems: the files of its services."""
        self._reports: dict[tuple[str, KeyPath], ProblemReport] = {}
        self._selections: dict[str, Selection | BindingResolutionError] = {}

    def report(self, file: str, at: KeyPath = ()) -> ProblemReport:
        """Return the problem report of a file, or of its part at the path `at`."""
        report = self._reports.get((file, at))
        if report is None:
            report = ProblemReport(file, self.catalog.places.of(file), at=at)
            self._reports[file, at] = report
        return report

    def iterate_specs(self, specs: Mapping[str, S]) -> Iterator[S]:
        """Yield the specs to check: all, or only those in the files that were given by name."""
        only = self.catalog.only
        return (spec for spec in specs.values() if only is None or spec.file in only)

    def step_report(self, skill: Skill, index: int) -> ProblemReport:
        """Return the problem report of one step. Its paths are relative to the step."""
        return self.report(skill.file, skill.at).part(
            f"step `{skill.steps[index].id}`", "steps", index
        )

    def display_path(self, path: str, *, relative_to: str) -> str:
        """Return the display path of a file that is not a spec file.

        It is relative to the same directory as the display path `relative_to`, which belongs to a spec file.
        """
        base = self.catalog.places.base(relative_to)
        real = os.path.join(os.path.realpath(base), "") if base else ""
        return path[len(real) :] if real and path.startswith(real) else path

    @property
    def has_problems(self) -> bool:
        """Whether any problem was reported so far."""
        return any(report.problems for report in self._reports.values())

    def problems(self) -> list[Problem]:
        """Return all reported problems, and write newly computed positions to the cache."""
        self.catalog.places.flush()
        return [problem for report in self._reports.values() for problem in report.problems]

    def selection(self, capability: str) -> Selection | BindingResolutionError:
        """Return the selection of a capability, or the error if it has no usable binding."""
        found = self._selections.get(capability)
        if found is None:
            try:
                found = select(self.catalog, capability, self.options)
            except BindingResolutionError as error:
                found = error
            self._selections[capability] = found
        return found

    @cached_property
    def protocols(self) -> Mapping[str, CheckedProtocol]:
        """The protocols by name. The cast is needed because the catalog's type cannot import that of the checks."""
        return cast("Mapping[str, CheckedProtocol]", self.catalog.protocols)

    @cached_property
    def needed_files(self) -> NeededFiles | None:
        """The files that the skill of a partial catalog depends on. None for a whole catalog.

        Of bindings and services, only those that are chosen and called are included.
        """
        if not self.catalog.partial:
            return None
        catalog = self.catalog
        found = [self.selection(id) for id in catalog.capabilities if id not in catalog.stubbed]
        chosen = [selection for selection in found if isinstance(selection, Selection)]
        broken = self._find_broken(selection_failed=len(chosen) < len(found))
        files = {*self._files_of_skills(), *broken.values()}
        services = {key.partition(":")[2] for key in broken}
        for selection in chosen:
            for link in selection.chain:
                files |= self._files_of_link(link)
                services.add(link.service_id or "")
        return NeededFiles(files, services, catalog.host.services_files)

    def _files_of_skills(self) -> Iterator[str]:
        """Yield the files of skills and capabilities, and those that choose bindings."""
        catalog = self.catalog
        yield from (skill.file for skill in catalog.skills.values())
        yield from (capability.file for capability in catalog.capabilities.values())
        yield from (*catalog.defaults.files.values(), *catalog.host.files)

    def _find_broken(self, *, selection_failed: bool) -> dict[str, str]:
        """Return the relevant files with errors by `kind:id`. With `selection_failed`, bindings and
        services count, too.
        """
        # A binding that does not load may be the reason for a failed selection.
        ignored = () if selection_failed else ("binding:", "service:")
        broken = self.catalog.broken.items()
        return {key: file for key, file in broken if not key.startswith(ignored)}

    def _files_of_link(self, link: ChainLink) -> set[str]:
        """Return the files of a binding and of its service, even if they have errors."""
        catalog = self.catalog
        binding = catalog.bindings.get(link.binding_id)
        service = catalog.services.get(link.service_id or "")
        keys = (f"binding:{link.binding_id}", f"service:{link.service_id}")
        files = {spec.file for spec in (binding, service) if spec}
        return files.union(catalog.broken.get(key, "") for key in keys)

    def explain_absence(self, kind: str, id: str) -> tuple[str, str]:
        """Return the message and the hint about a spec that is needed but not in the catalog."""
        file = self.catalog.broken.get(f"{kind}:{id}")
        if file:
            return f"{kind} `{id}`: its file {file} has errors", ""
        return f"unknown {kind} `{id}`", self.suggest_ids(kind, id)

    def explain_wrong_binding(
        self, capability: str, name: str, options: SelectionOptions | None = None
    ) -> tuple[str, str] | None:
        """Return the message and the hint about a name that is not a binding of this capability. None if it is one.

        With `options`, the hint proposes only usable bindings.
        """
        binding = self.catalog.bindings.get(name)
        if binding is not None and binding.capability == capability:
            return None
        if binding is None:
            reason = unknown_binding_reason(self.catalog, capability, name, options)
        else:
            reason = other_capability_reason(self.catalog, capability, binding.capability, options)
        return f"`{capability}`: binding `{name}`: {reason.text}", reason.cure

    def suggest_ids(self, kind: str, id: str) -> str:
        """Return a hint with ids that are similar to this one, or an empty string."""
        return suggestion(id, self.catalog.known(kind) if self.catalog.known else ())


class ProtocolChecks(NamedTuple):
    """The static checks of a protocol's services and bindings. Each one reports to the context.

    A binding whose service is unknown or of another kind is checked without its service.
    """

    service: Callable[[CheckContext, Service], None] = lambda context, service: None
    binding: Callable[[CheckContext, Binding, Service | None], None] = (
        lambda context, binding, service: None
    )


class CheckedProtocol(Protocol):
    """The interface of a protocol for checks. It extends the interface for the catalog."""

    def checks(self) -> ProtocolChecks:
        """Return the checks of the protocol's services and bindings."""
        ...

    def check_contracts(
        self, context: CheckContext, name: str, bindings: Iterable[Binding]
    ) -> None:
        """Report bindings that contradict the API documents of their services."""
        ...

    def path_keys(self, service: Service, binding: Binding) -> Collection[str]:
        """Return the keys of a binding's request that become parts of the URL path."""
        ...

    @property
    def in_process(self) -> bool:
        """Whether the protocol's services are functions on this machine."""
        ...

    @property
    def sends_files(self) -> bool:
        """Whether requests can contain the content of files."""
        ...
