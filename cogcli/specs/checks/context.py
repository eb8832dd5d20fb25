"""The context of every check: the catalog, the options of the run, and the reports of problems."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cogcli.core.errors import BindingResolutionError
from cogcli.core.problems import suggestion
from cogcli.specs.cached_positions import FilePlaces
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.selection import Selection, select

if TYPE_CHECKING:
    from cogcli.core.problems import KeyPath, Problem
    from cogcli.specs.binding_chain import SelectionOptions
    from cogcli.specs.catalog import Catalog


class CheckContext:
    """One catalog that is checked. Each capability's selection is made once."""

    def __init__(self, catalog: Catalog, options: SelectionOptions) -> None:
        self.catalog = catalog
        self.options = options
        self._reports: dict[tuple[str, KeyPath], ProblemReport] = {}
        self._selections: dict[str, Selection | BindingResolutionError] = {}

    def report(self, file: str, at: KeyPath = ()) -> ProblemReport:
        """The report of a file, or of its part at the path `at`."""
        report = self._reports.get((file, at))
        if report is None:
            places = self.catalog.places
            report = ProblemReport(
                file, places if isinstance(places, FilePlaces) else places.get(file), at=at
            )
            self._reports[file, at] = report
        return report

    def shown(self, path: str, *, beside: str) -> str:
        """The shown name of a real path that is no spec file, relative as that of the spec file `beside`."""
        places = self.catalog.places
        base = places.base(beside) if isinstance(places, FilePlaces) else ""
        real = os.path.join(os.path.realpath(base), "") if base else ""
        return path[len(real) :] if real and path.startswith(real) else path

    def problems(self) -> list[Problem]:
        """All problems reported; writes the positions found to the cache."""
        if isinstance(self.catalog.places, FilePlaces):
            self.catalog.places.flush()
        return [problem for report in self._reports.values() for problem in report.problems]

    def selection(self, capability: str) -> Selection | BindingResolutionError:
        """The selection of a capability, or the error without one."""
        found = self._selections.get(capability)
        if found is None:
            try:
                found = select(self.catalog, capability, self.options)
            except BindingResolutionError as error:
                found = error
            self._selections[capability] = found
        return found

    def absent(self, kind: str, id: str) -> tuple[str, str]:
        """Message and hint about a spec that is needed and not in the catalog."""
        file = self.catalog.broken.get(f"{kind}:{id}")
        if file:
            return f"{kind} `{id}`: its file {file} has errors", ""
        return f"unknown {kind} `{id}`", self.near(kind, id)

    def misnamed(self, capability: str, name: str) -> tuple[str, str] | None:
        """Message and hint about a name that is no binding of this capability; None if it is one."""
        from cogcli.specs.selection_errors import other_capability_reason, unknown_binding_reason

        binding = self.catalog.bindings.get(name)
        if binding is not None and binding.capability == capability:
            return None
        if binding is None:
            reason = unknown_binding_reason(self.catalog, capability, name)
        else:
            reason = other_capability_reason(self.catalog, capability, binding.capability)
        return f"`{capability}`: binding `{name}`: {reason.text}", reason.cure

    def near(self, kind: str, id: str) -> str:
        """A hint naming ids similar to a word."""
        return suggestion(id, self.catalog.known(kind) if self.catalog.known else ())
