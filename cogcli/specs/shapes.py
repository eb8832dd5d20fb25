"""The shapes of all kinds, and checking one parsed file against its own (docs/reference/spec-files.md#keys)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cogcli.core.problems import Problem
from cogcli.specs.binding_shape import binding_shape, check_binding
from cogcli.specs.capability_shape import CAPABILITY, check_capability
from cogcli.specs.host_shape import ACTIVE, OVERRIDES, check_overrides, read_services, services_shape
from cogcli.specs.problem_report import ProblemReport, has_errors
from cogcli.specs.protocol import Protocols
from cogcli.specs.service_shape import check_service, document_key, service_shape
from cogcli.specs.shape import MapOf, Shape, Text, clean, record, required
from cogcli.specs.shape_check import check_shape
from cogcli.specs.skill_shape import SKILL, check_skill
from cogcli.yaml.positions import Places

KINDS: Final = ("skill", "capability", "binding", "service", "policy")
HOST_KINDS: Final = ("overrides", "services", "active")
"""The kinds of the files of host overrides, which hold several entries each."""
_SHAPES: Final[dict[str, Shape]] = {
    "skill": SKILL,
    "capability": CAPABILITY,
    "policy": record({"defaults": required(MapOf(Text(empty=False)), nullable=True)}),
    "overrides": OVERRIDES,
    "active": ACTIVE,
}
_OF_PROTOCOLS: Final[dict[str, Callable[[Protocols], Shape]]] = {
    "binding": binding_shape,
    "service": service_shape,
    "services": services_shape,
}
"""Kinds of files whose keys depend on the protocols."""
_RULES: Final[dict[str, Callable[[dict[str, Any], ProblemReport], None]]] = {
    "skill": check_skill,
    "capability": check_capability,
    "overrides": check_overrides,
}
_RULES_OF_PROTOCOLS: Final = {"binding": check_binding, "service": check_service}
_SUBJECTS: Final = {"active": "active bindings"}
_APART: Final = (
    "keep it outside services/, as docs/notes.yaml, and name it in a service: spec_ref: docs/notes.yaml"
)


class CheckedFile(NamedTuple):
    """A file's cleaned mapping, None where it has errors, and every problem of its content."""

    raw: dict[str, Any] | None
    problems: list[Problem]


def shape_of(kind: str, protocols: Protocols) -> Shape:
    """The shape of a kind of file."""
    return _OF_PROTOCOLS[kind](protocols) if kind in _OF_PROTOCOLS else _SHAPES[kind]


def check_file(
    kind: str, value: dict[str, Any], places: Places | None, file: str, protocols: Protocols
) -> CheckedFile:
    """The result of checking one parsed file by itself: its shape and the rules of its kind."""
    if kind == "services":
        return CheckedFile(*read_services(value, places, file, protocols))
    named = kind in KINDS and isinstance(value.get("id"), str)
    subject = f"{kind} `{value['id']}`" if named else _SUBJECTS.get(kind, kind)
    if kind == "service" and (document := document_key(value, protocols)):
        report = ProblemReport(file, places)
        message = f"service: found a document of `{document}`, expected a service"
        report.error("key.unknown", (document,), message, hint=_APART, key=True)
        return CheckedFile(None, report.problems)
    shape, report = shape_of(kind, protocols), ProblemReport(file, places, subject=subject)
    problems = check_shape(shape, value, places, file, subject)
    if kind in _RULES:
        _RULES[kind](value, report)
    elif kind in _RULES_OF_PROTOCOLS:
        _RULES_OF_PROTOCOLS[kind](value, report, protocols)
    problems += report.problems
    return CheckedFile(None if has_errors(problems) else clean(shape, value), problems)
