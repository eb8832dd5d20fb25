"""The shapes of all kinds of files, and the check of a parsed file (docs/reference/spec-files.md#keys)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.yaml.positions import YamlPositions
from cogcli.specs.binding_shape import binding_shape, check_binding
from cogcli.specs.capability_shape import CAPABILITY, check_capability
from cogcli.specs.case_shape import CASES, check_cases
from cogcli.specs.host_shape import (
    ACTIVE,
    DEFAULT_BINDINGS,
    OVERRIDES,
    check_overrides,
    read_services,
    services_shape,
)
from cogcli.specs.pack_shape import PACK, check_pack
from cogcli.specs.problem_report import CheckedFile, ProblemReport, has_errors
from cogcli.specs.protocol import Protocols
from cogcli.specs.service_shape import check_service, document_key, service_shape
from cogcli.specs.shape import Shape, clean_value
from cogcli.specs.shape_check import check_shape
from cogcli.specs.skill_shape import SKILL, check_skill
from cogcli.specs.unchecked import text_at

KINDS: Final = ("skill", "capability", "binding", "service", "policy", "pack")


class _FileKind(NamedTuple):
    """A kind of file: its shape, which may depend on the protocols, and rules that a shape cannot express."""

    shape: Callable[[Protocols], Shape]
    check: Callable[[Json, ProblemReport, Protocols], None] = lambda raw, report, protocols: None


_OF_KIND: Final = {
    "skill": _FileKind(lambda _: SKILL, lambda raw, report, _: check_skill(raw, report)),
    "capability": _FileKind(
        lambda _: CAPABILITY, lambda raw, report, _: check_capability(raw, report)
    ),
    "binding": _FileKind(binding_shape, check_binding),
    "service": _FileKind(service_shape, check_service),
    "policy": _FileKind(lambda _: DEFAULT_BINDINGS),
    "pack": _FileKind(lambda _: PACK, lambda raw, report, _: check_pack(raw, report)),
    # The files of host overrides, which hold several entries each.
    "overrides": _FileKind(
        lambda _: OVERRIDES, lambda raw, report, _: check_overrides(raw, report)
    ),
    "services": _FileKind(services_shape),
    "active": _FileKind(lambda _: ACTIVE),
    "case": _FileKind(lambda _: CASES, lambda raw, report, _: check_cases(raw, report)),
}
_APART: Final = "keep it outside services/, as docs/notes.yaml, and name it in a service: spec_ref: docs/notes.yaml"


def shape_of(kind: str, protocols: Protocols) -> Shape:
    """Return the shape of a kind of file."""
    return _OF_KIND[kind].shape(protocols)


def check_file(
    kind: str, value: Json, places: YamlPositions | None, file: str, protocols: Protocols
) -> CheckedFile:
    """Check a single parsed file against the shape and the rules of its kind."""
    if kind == "services":
        return read_services(value, places, file, protocols)
    named = kind in KINDS and text_at(value, "id") is not None
    subject = (
        f"{kind} `{value['id']}`" if named else "active bindings" if kind == "active" else kind
    )
    report = ProblemReport(file, places, subject=subject)
    if kind == "service" and (document := document_key(value, protocols)):
        message = f"service: found a document of `{document}`, expected a service"
        report.part("").error("key.unknown", (document,), message, hint=_APART, key=True)
        return CheckedFile(None, report.problems)
    shape = shape_of(kind, protocols)
    check_shape(shape, value, report)
    _OF_KIND[kind].check(value, report, protocols)
    return CheckedFile(
        None if has_errors(report.problems) else clean_value(shape, value), report.problems
    )
