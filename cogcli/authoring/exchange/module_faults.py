"""The faults in the Python modules of services: nothing of a module is executed
(docs/how-to/come-from-agent-skills.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from cogcli.app.settings import Settings
from cogcli.authoring.exchange.foreign_folder import (
    find_source,
    functions_in,
    has_package,
    is_installed,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.specs.catalog import Catalog
from cogcli.specs.layers import HOST
from cogcli.specs.python_imports import FailedImport, failed_imports
from cogcli.specs.service import is_shipped


class ImportRemark(NamedTuple):
    """A remark about a line of a file, or about the whole file if the line is 0."""

    file: str
    line: int
    text: str
    reason: str

    def to_payload(self) -> Json:
        """Return the remark as a JSON object."""
        return self._asdict()


def line_of(catalog: Catalog, file: str, path: tuple[object, ...]) -> int:
    """Return the line of a path in a spec file; 0 if it is unknown."""
    places = catalog.places.of(file)
    return places.position(path, key=False)[0] if places else 0


class ModuleFaultSearch:
    """Searches the modules of the services in a catalog that `is_searched` selects, by their files.

    `home` is the folder of the project.
    """

    def __init__(
        self, settings: Settings, home: str, catalog: Catalog, is_searched: Callable[[str], bool]
    ) -> None:
        self._settings, self._home, self._catalog = settings, home, catalog
        self._is_searched = is_searched

    def find_all(self) -> Iterator[tuple[str, ImportRemark]]:
        """Yield the faults in the modules of services, each with the spec file that it makes
        unusable.
        """
        used: dict[str, list[Binding]] = {}
        for binding in self._catalog.bindings.values():
            used.setdefault(binding.service, []).append(binding)
        for service in self._catalog.services.values():
            is_own_code = bool(service.module) and not is_shipped(service.module or "")
            if is_own_code and self._is_searched(service.file):
                yield from self._module_faults(service, used.get(service.id, []))

    def _module_faults(
        self, service: Service, bindings: list[Binding]
    ) -> Iterator[tuple[str, ImportRemark]]:
        """Yield remarks about a missing source, missing imports and missing functions."""
        module = service.module or ""
        root = (
            self._home if service.layer == HOST else service.root
        )  # host overrides will lie in the project
        path = find_source(root, module)
        if path is None:
            top = module.partition(".")[0]
            if not is_installed(top) or has_package(root, top):
                yield service.file, self._missing_module(service, root)
            return  # an installed module is read only once the project is trusted
        functions = functions_in(path)
        if functions is None:
            shown, reason = self._settings.display_path(path), f"service `{service.id}` needs it"
            yield (
                service.file,
                ImportRemark(shown, 0, "this module is not Python that can be read", reason),
            )
            return
        yield from self._find_failing_imports(service, root, bindings)
        for binding in bindings:
            if binding.operation not in functions:
                yield binding.file, self._missing_function(binding, module)

    def _missing_module(self, service: Service, root: str) -> ImportRemark:
        line = line_of(self._catalog, service.file, (*service.at, "module"))
        text = f"service `{service.id}`: module `{service.module}` is not found"
        reason = f"put it below {self._settings.display_path(root)}, or install it"
        return ImportRemark(service.file, line, text, reason)

    def _missing_function(self, binding: Binding, module: str) -> ImportRemark:
        line = line_of(self._catalog, binding.file, ("operation",))
        text = f"binding `{binding.id}`: `{module}` has no function `{binding.operation}`"
        return ImportRemark(binding.file, line, text, "name a top-level `def` of that module")

    def _find_failing_imports(
        self, service: Service, root: str, bindings: Iterable[Binding]
    ) -> Iterator[tuple[str, ImportRemark]]:
        """Yield the failing imports in the service's module or in a function that a binding calls."""
        module = service.module or ""
        of_module = _certain_failures(failed_imports(module, root, links=False))
        for failed in of_module:
            yield service.file, self._import_remark(failed, f"service `{service.id}`")
        for binding in bindings:
            for failed in _certain_failures(
                failed_imports(module, root, (binding.operation,), links=False)
            ):
                if failed not in of_module:
                    yield binding.file, self._import_remark(failed, f"`{binding.operation}`")

    def _import_remark(self, failure: FailedImport, importer: str) -> ImportRemark:
        display_path = self._settings.display_path(failure.file)
        hint = failure.hint.replace("\n", "; ")
        text = f"{importer} imports `{failure.name}`, which is not found"
        return ImportRemark(display_path, failure.line, text, f"{failure.looked_for}; {hint}")


def _certain_failures(failures: list[FailedImport]) -> list[FailedImport]:
    return [failure for failure in failures if failure.certain]
