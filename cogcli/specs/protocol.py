"""What the specs ask of a protocol. The rows are those of `cogcli.protocols`, handed in where the registry is
opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cogcli.specs.shape_of_spec import shape_of_spec

if TYPE_CHECKING:
    from cogcli.declarations.service_spec import Service
    from cogcli.declarations.spec import Spec
    from cogcli.specs.problem_report import ProblemReport
    from cogcli.specs.shape import RecordKey

DOCUMENT: Final = "document"
LOCK: Final = "lock"
SOURCE: Final = "source"


class Grammar(NamedTuple):
    """The keys of a protocol's services, and the rules of its bindings.

    `addresses` are the keys of which a service needs one, `exclusive` whether it may have only one; `beside` has, by
    that one, the keys that mean something next to it.
    """

    settings: type[Spec]
    """The class whose fields are the keys."""
    addresses: tuple[str, ...]
    exclusive: bool = False
    beside: Mapping[str, tuple[str, ...]] | None = None
    unused: tuple[str, ...] = ()
    """Keys of a binding's `metadata` without a meaning for this protocol."""
    operation: Callable[[str], str] = lambda operation: ""
    """What an operation should be, empty for a good one."""
    check_service: Callable[[dict[str, Any], ProblemReport], None] = lambda raw, report: None
    """Reports the faults of a service's file by itself."""
    sends_files: bool = False
    """Whether a request may hold a file."""
    documents: tuple[str, ...] = ()
    """The keys by which an API document of this protocol is known."""

    @property
    def keys(self) -> Mapping[str, RecordKey]:
        """The shapes of its keys by name."""
        return shape_of_spec(self.settings).keys


class SpecProtocol(Protocol):
    """A row of the table of protocols, as far as the specs ask it."""

    @property
    def in_process(self) -> bool:
        """Whether its services are functions on this machine: nothing leaves it."""
        ...

    def grammar(self) -> Grammar:
        """The keys of its files and the rules on them."""
        ...

    def described_by(self, service: Service) -> str:
        """What describes the operations of a service: DOCUMENT, LOCK, SOURCE; empty where nothing does."""
        ...


Protocols = Mapping[str, SpecProtocol]
"""The protocols by the name that a service's `kind` and a binding's `protocol` give."""
