"""The shapes of files with several entries: default bindings, and a host's services, active bindings and overrides.

The rules are in docs/reference/binding.md#host-overrides.
"""

from __future__ import annotations

from typing import Final, cast

from cogcli.base.jsonvalue import Json
from cogcli.base.yaml.positions import YamlPositions
from cogcli.declarations.host_spec import (
    ActiveBindings,
    DefaultBindings,
    OverridesFile,
    ServicesFile,
)
from cogcli.specs.problem_report import CheckedFile, ProblemReport, has_errors
from cogcli.specs.protocol import Protocols
from cogcli.specs.service_shape import check_service, service_shape
from cogcli.specs.shape import Data, MapOf, RecordShape, Shape, clean_value, is_ignored
from cogcli.specs.shape_check import check_shape
from cogcli.specs.shape_of_spec import shape_of_hint, shape_of_spec
from cogcli.specs.unchecked import objects_at, texts_at, value_at

ACTIVE: Final = shape_of_hint(ActiveBindings)
OVERRIDES: Final = shape_of_spec(OverridesFile)
DEFAULT_BINDINGS: Final = shape_of_spec(DefaultBindings)


def services_shape(protocols: Protocols) -> RecordShape:
    """Return the shape of a file with several services."""
    return _build_file_shape(_build_entry_shape(protocols))


def _build_file_shape(entry: Shape) -> RecordShape:
    """Return the shape of a file of services, each with the shape `entry`."""
    whole = shape_of_spec(ServicesFile).keys["services"]
    return RecordShape(
        {"services": whole._replace(shape=cast(MapOf, whole.shape)._replace(value=entry))}
    )


def _build_entry_shape(protocols: Protocols) -> RecordShape:
    keys = service_shape(protocols).keys
    return RecordShape({name: key for name, key in keys.items() if name != "id"})


def read_services(
    value: Json, places: YamlPositions | None, file: str, protocols: Protocols
) -> CheckedFile:
    """Return the services in a file by id, with None for a service with errors, and all problems.

    The mapping is None if the file as a whole has errors.
    """
    whole = ProblemReport(file, places, subject="services")
    check_shape(_build_file_shape(Data()), value, whole)
    if has_errors(whole.problems):
        return CheckedFile(None, whole.problems)
    services: Json = {}
    shape = _build_entry_shape(protocols)
    for id, entry in (value["services"] or {}).items():
        if is_ignored(id):
            continue
        report = ProblemReport(file, places, at=("services", id), subject=f"service `{id}`")
        check_shape(shape, entry, report)
        if isinstance(entry, dict):
            check_service(entry, report, protocols)
        services[id] = None if has_errors(report.problems) else clean_value(shape, entry)
        whole.problems += report.problems
    return CheckedFile({"services": services}, whole.problems)


def check_overrides(raw: Json, report: ProblemReport) -> None:
    """Report overrides without a binding or service, and capabilities that occur twice in the file."""
    seen: dict[str, int] = {}
    for index, entry in objects_at(raw, "overrides"):
        part = report.part(f"override {index + 1}", "overrides", index)
        _check_choice(entry, part)
        for position, id in texts_at(entry, "capabilities"):
            first = seen.get(id)
            if first is None:
                seen[id] = index + 1
            else:
                message = f"capability `{id}` is already in override {first}"
                path = ("capabilities", position)
                part.error("overrides.duplicate", path, message, hint="keep one of them")


def _check_choice(entry: Json, report: ProblemReport) -> None:
    """Report an override unless it names either a binding or a service."""
    named = [key for key in ("binding", "service") if value_at(entry, key) is not None]
    if len(named) != 1:
        found = "both `binding` and `service`" if named else "neither `binding` nor `service`"
        message = f"found {found}, expected one of them"
        report.error("overrides.shape", (), message, hint="name one of them")
