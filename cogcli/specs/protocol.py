"""The interface of a protocol that specs use. The implementations in `cogcli.protocols` are passed to the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from cogcli.base.jsonvalue import Json
from cogcli.base.named_tuple import NamedTuple

if TYPE_CHECKING:
    from cogcli.declarations.service_spec import Service
    from cogcli.declarations.spec import Spec
    from cogcli.specs.problem_report import ProblemReport
    from cogcli.specs.shape import RecordKey

DOCUMENT: Final = "document"
LOCK: Final = "lock"
SOURCE: Final = "source"


class Grammar(NamedTuple):
    """The keys of a protocol's services, and the rules for its bindings.

    A service needs one key of `addresses`; `exclusive` is whether it may have only one. `keys_with_address` maps that
    key to the keys that are allowed together with it.
    """

    settings: type[Spec]
    """The class whose fields are the keys."""
    addresses: tuple[str, ...]
    exclusive: bool = False
    keys_with_address: Mapping[str, tuple[str, ...]] | None = None
    unused: tuple[str, ...] = ()
    """Keys of a binding's `metadata` without a meaning for this protocol."""
    operation: Callable[[str], str] = lambda operation: ""
    """Returns the expected form of an operation, or an empty string for a valid one."""
    check_service: Callable[[Json, ProblemReport], None] = lambda raw, report: None
    """Reports the faults of a single service file."""
    sends_files: bool = False
    """Whether a request may contain a file."""
    has_headers: bool = False
    """Whether a binding may map the headers of a reply."""
    documents: tuple[str, ...] = ()
    """The keys that identify an API document of this protocol."""

    @property
    def keys(self) -> Mapping[str, RecordKey]:
        """Return the shapes of the keys by name."""
        from cogcli.specs.shape_of_spec import shape_of_spec  # for checks of services alone

        return shape_of_spec(self.settings).keys


class SpecProtocol(Protocol):
    """A row of the table of protocols, as far as specs use it."""

    @property
    def in_process(self) -> bool:
        """Whether the protocol's services are functions on this machine."""
        ...

    def grammar(self) -> Grammar:
        """Return the keys of the protocol's files and their rules."""
        ...

    def described_by(self, service: Service) -> str:
        """Return the source that describes a service's operations: DOCUMENT, LOCK or SOURCE. Empty if the service has
        no description.
        """
        ...


Protocols = Mapping[str, SpecProtocol]
"""The protocols by the name in a service's `kind` and a binding's `protocol`."""
