"""What the wire checks find about one binding, before it has a place in a file
(docs/reference/protocols.md#wire-checks)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.core.problems import Severity

if TYPE_CHECKING:
    from cogcli.core.document_fault import DocumentFault

SERVICE: Final = "service"
DOCUMENT: Final = "document"
BINDING: Final = "binding"


class ContractFinding(NamedTuple):
    """A problem to be. `about` is the file it stands in: the binding's, its service's, or the service's document or
    lock, where it has `line` and `column` instead of a `path`; `key` its place at a key.
    """

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
    """What is wrong with a service's document, at `path` of the service where the document has no place for it."""
    about = DOCUMENT if fault.file else SERVICE
    place = (fault.line, fault.column)
    return ContractFinding(fault.code, "R", path, fault.message, fault.hint, False, about, *place)


class Taken(NamedTuple):
    """One value that an operation takes.

    `as_text`: it is written into a path, a query or a header. `schema` None says that nothing is known of it.
    """

    label: str
    required: bool
    schema: Any
    deprecated: bool = False
    as_text: bool = False


class OperationContract(NamedTuple):
    """What an operation takes for each key of a binding's request, and what its reply holds.

    `reply` holds the schemas of the bodies that `response.*` may walk; None where nothing is known of them.
    `described` holds every schema that the service gives for the operation.
    """

    title: str
    taken: dict[str, Taken]
    reply: tuple[Any, ...] | None
    deprecated: bool = False
    described: tuple[Any, ...] = ()
