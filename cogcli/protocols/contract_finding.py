"""Findings of the wire checks about one binding, before they have a position in a file
(docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from cogcli.base.json_pointer import DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Severity, suggestion
from cogcli.declarations.binding_spec import Binding
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json

SERVICE: Final = "service"
DOCUMENT: Final = "document"
BINDING: Final = "binding"
UNDESCRIBED: Final[Json] = {}
"""The schema of a reply that the document does not describe. It is compared by identity, since a
document may contain `{}`."""


class ContractFinding(NamedTuple):
    """A problem without a position.

    `about` is its file: the binding's, its service's, or the service's document or lock. In a
    document or lock it has `line` and `column` instead of a `path`. `key`: whether it is at the
    key."""

    code: str
    severity: Severity
    path: tuple[str | int, ...]
    message: str
    hint: str = ""
    key: bool = False
    about: str = BINDING
    line: int = 0
    column: int = 0


def document_finding(fault: DocumentFault, path: tuple[str | int, ...]) -> ContractFinding:
    """Return the finding for a document's fault. Without a position in the document it is at `path`
    of the service."""
    about = DOCUMENT if fault.file else SERVICE
    place = (fault.line, fault.column)
    return ContractFinding(fault.code, "R", path, fault.message, fault.hint, False, about, *place)


class OperationInput(NamedTuple):
    """One input of an operation. `as_text`: it is sent in a path, a query or a header. `schema` is None if it is
    unknown.
    """

    label: str
    required: bool
    schema: object
    deprecated: bool = False
    as_text: bool = False


def argument_findings(
    binding: Binding, title: str, known: Mapping[str, OperationInput], *, takes_rest: bool = False
) -> Iterator[ContractFinding]:
    """Yield the findings about arguments given by name: missing required ones, and unknown ones.

    With `takes_rest` the operation `title` accepts unknown arguments."""
    for name, taken in known.items():
        if taken.required and name not in binding.request:
            message = f"{title} requires `{name}`, which is not given"
            yield ContractFinding(
                "wire.parameter", "E", ("request",), message, f"add {name} to request", key=True
            )
    for key in binding.request:
        if key not in known and not takes_rest:
            hint = suggestion(key, known) or f"it takes {', '.join(list(known)[:6]) or 'nothing'}"
            message = f"{title} takes no `{key}`"
            yield ContractFinding("wire.parameter", "E", ("request", key), message, hint, key=True)


class OperationContract(NamedTuple):
    """The inputs of an operation, by the keys of a binding's request, and its replies.

    `reply` contains the schemas of the bodies that `response.*` may read; None if they are unknown. `described`
    contains every schema of the operation in the service's document.
    """

    title: str
    taken: dict[str, OperationInput]
    reply: tuple[object, ...] | None
    deprecated: bool = False
    described: tuple[object, ...] = ()


class ContractJudges(NamedTuple):
    """The functions of a protocol that compare a binding with the description of its service, and
    check that description.

    `binding` gets the bytes of the description. It yields its findings, then the contract of the
    operation."""

    binding: Callable[
        [Binding, Capability, Service, bytes], Iterable[ContractFinding | OperationContract]
    ]
    service: Callable[[Service], Iterable[ContractFinding]]
