"""The shapes of the three files of host overrides: services, active bindings, overrides
(docs/reference/binding.md#host-overrides)."""

from __future__ import annotations

from typing import Any, Final

from cogcli.base.jsonvalue import list_of
from cogcli.base.yaml.positions import Places
from cogcli.specs.common_shape import CAPABILITY_REF, PLAIN_REF
from cogcli.specs.problem_report import CheckedFile, ProblemReport, has_errors
from cogcli.specs.protocol import Protocols
from cogcli.specs.service_shape import check_service, service_shape
from cogcli.specs.shape import (
    Data,
    ListOf,
    MapOf,
    RecordShape,
    Text,
    clean,
    is_ignored,
    record,
    required,
)
from cogcli.specs.shape_check import check_shape

MODES: Final = ("replace", "prefer")

ACTIVE: Final = MapOf(
    Text(empty=False, hint="name a binding by its id; `cogcli bindings ls` lists them")
)
OVERRIDES: Final = record(
    {
        "overrides": required(
            ListOf(
                record(
                    {
                        "capabilities": required(
                            ListOf(CAPABILITY_REF, least=1, code="overrides.shape")
                        ),
                        "binding": PLAIN_REF,
                        "service": PLAIN_REF,
                        "mode": Text(choices=MODES),
                    }
                )
            ),
            nullable=True,
        )
    }
)
_NAMES: Final = record({"services": required(MapOf(Data(), name=PLAIN_REF), nullable=True)})


def services_shape(protocols: Protocols) -> RecordShape:
    """The shape of a file with several services."""
    return record(
        {"services": required(MapOf(_entry_shape(protocols), name=PLAIN_REF), nullable=True)}
    )


def _entry_shape(protocols: Protocols) -> RecordShape:
    return record(
        {name: key for name, key in service_shape(protocols).keys.items() if name != "id"}
    )


def read_services(
    value: dict[str, Any], places: Places | None, file: str, protocols: Protocols
) -> CheckedFile:
    """The services of a file by id, None for each with errors, and all problems.

    None instead of the mapping where the file as a whole has errors.
    """
    whole = ProblemReport(file, places, subject="services")
    check_shape(_NAMES, value, whole)
    if has_errors(whole.problems):
        return CheckedFile(None, whole.problems)
    services: dict[str, Any] = {}
    shape = _entry_shape(protocols)
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
