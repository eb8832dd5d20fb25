"""The shapes of files with several choices: default bindings, and the services, active bindings and overrides of a host
(docs/reference/binding.md#host-overrides)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

from cogcli.base.jsonvalue import list_of
from cogcli.base.yaml.positions import Places
from cogcli.declarations.host_spec import (
    ActiveBindings,
    DefaultBindings,
    OverridesFile,
    ServicesFile,
)
from cogcli.specs.problem_report import CheckedFile, ProblemReport, has_errors
from cogcli.specs.protocol import Protocols
from cogcli.specs.service_shape import check_service, service_shape
from cogcli.specs.shape import Data, MapOf, RecordShape, Shape, clean, is_ignored
from cogcli.specs.shape_check import check_shape
from cogcli.specs.shape_of_spec import shape_of_hint, shape_of_spec

ACTIVE: Final = shape_of_hint(ActiveBindings)
OVERRIDES: Final = shape_of_spec(OverridesFile)
DEFAULT_BINDINGS: Final = shape_of_spec(DefaultBindings)


def services_shape(protocols: Protocols) -> RecordShape:
    """Return the shape of a file with several services."""
    return _build_file_shape(_build_entry_shape(protocols))


def _build_file_shape(entry: Shape) -> RecordShape:
    """Return the shape of a file whose services have the shape `entry`."""
    whole = shape_of_spec(ServicesFile).keys["services"]
    return RecordShape(
        {"services": replace(whole, shape=replace(cast(MapOf, whole.shape), value=entry))}
    )


def _build_entry_shape(protocols: Protocols) -> RecordShape:
    keys = service_shape(protocols).keys
    return RecordShape({name: key for name, key in keys.items() if name != "id"})


def read_services(
    value: dict[str, Any], places: Places | None, file: str, protocols: Protocols
) -> CheckedFile:
    """Return the services of a file by id, None for each with errors, and all problems.

    The mapping is None if the file as a whole has errors.
    """
    whole = ProblemReport(file, places, subject="services")
    check_shape(_build_file_shape(Data()), value, whole)
    if has_errors(whole.problems):
        return CheckedFile(None, whole.problems)
    services: dict[str, Any] = {}
    shape = _build_entry_shape(protocols)
    for id, entry in (value["services"] or {}).items():
        if is_ignored(id):
            continue
        report = ProblemReport(file, places, at=("services", id), subject=f"service `{id}`")
        check_shape(shape, entry, report)
        if isinstance(entry, dict):
            check_service(entry, report, protocols)
        services[id] = None if has_errors(report.problems) else clean(shape, entry)
        whole.problems += report.problems
    return CheckedFile({"services": services}, whole.problems)


def check_overrides(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report overrides without a binding or service, and capabilities that are in the file twice."""
    seen: dict[str, int] = {}
    for index, entry in enumerate(list_of(raw.get("overrides"))):
        if not isinstance(entry, dict):
            continue
        part = report.part(f"override {index + 1}", "overrides", index)
        named = [key for key in ("binding", "service") if entry.get(key) is not None]
        if len(named) != 1:
            found = "both `binding` and `service`" if named else "neither `binding` nor `service`"
            part.error(
                "overrides.shape",
                (),
                f"found {found}, expected one of them",
                hint="name one of them",
            )
        for position, id in enumerate(list_of(entry.get("capabilities"))):
            if isinstance(id, str) and id in seen:
                message = f"capability `{id}` is already in override {seen[id]}"
                path = ("capabilities", position)
                part.error("overrides.duplicate", path, message, hint="keep one of them")
            elif isinstance(id, str):
                seen[id] = index + 1
