"""The shapes of all kinds, and checking one parsed file against its own (docs/reference/spec-files.md#keys)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.specs.binding_shape import BINDING, check_binding
from cogcli.specs.capability_shape import CAPABILITY, check_capability
from cogcli.specs.host_shape import ACTIVE, OVERRIDES, SERVICES, check_overrides, read_services
from cogcli.specs.problem_report import ProblemReport, has_errors
from cogcli.specs.service_shape import SERVICE, check_service, document_key
from cogcli.specs.shape import MapOf, Record, Shape, Text, clean, required_key
from cogcli.specs.shape_check import check_shape
from cogcli.specs.skill_shape import SKILL, check_skill

if TYPE_CHECKING:
    from cogcli.core.problems import Problem
    from cogcli.yaml.positions import Places

KINDS: Final = ("skill", "capability", "binding", "service", "policy")
HOST_KINDS: Final = ("overrides", "services", "active")
"""The kinds of the files of host overrides, which hold several entries each."""
SHAPES: Final[dict[str, Shape]] = {
    "skill": SKILL,
    "capability": CAPABILITY,
    "binding": BINDING,
    "service": SERVICE,
    "policy": Record({"defaults": required_key(MapOf(Text(empty=False)), nullable=True)}),
    "overrides": OVERRIDES,
    "services": SERVICES,
    "active": ACTIVE,
}
_RULES: Final[dict[str, Callable[[dict[str, Any], ProblemReport], None]]] = {
    "skill": check_skill,
    "capability": check_capability,
    "binding": check_binding,
    "service": check_service,
    "overrides": check_overrides,
}
_SUBJECTS: Final = {"active": "active bindings"}
_APART: Final = (
    "keep it outside services/, as docs/notes.yaml, and name it in a service: spec_ref: docs/notes.yaml"
)


class CheckedFile(NamedTuple):
    """A file's cleaned mapping, None where it has errors, and every problem of its content."""

    raw: dict[str, Any] | None
    problems: list[Problem]


def check_file(kind: str, value: dict[str, Any], places: Places | None, file: str) -> CheckedFile:
    """The result of checking one parsed file by itself: its shape and the rules of its kind."""
    if kind == "services":
        return CheckedFile(*read_services(value, places, file))
    named = kind in KINDS and isinstance(value.get("id"), str)
    subject = f"{kind} `{value['id']}`" if named else _SUBJECTS.get(kind, kind)
    if kind == "service" and (document := document_key(value)):
        report = ProblemReport(file, places)
        message = f"service: found a document of `{document}`, expected a service"
        report.error("key.unknown", (document,), message, hint=_APART, key=True)
        return CheckedFile(None, report.problems)
    problems = check_shape(SHAPES[kind], value, places, file, subject)
    rules = _RULES.get(kind)
    if rules:
        report = ProblemReport(file, places, subject=subject)
        rules(value, report)
        problems += report.problems
    if has_errors(problems):
        return CheckedFile(None, problems)
    return CheckedFile(clean(SHAPES[kind], value), problems)
