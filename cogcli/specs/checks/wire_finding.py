"""What the wire checks find about one binding, before it has a place in a file (protocols.md 7)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.specs.problems import Severity

SERVICE: Final = "service"
BINDING: Final = "binding"


class Finding(NamedTuple):
    """A problem to be. `about` is the file it stands in, the binding's or its service's; `key` its place at a key."""

    code: str
    severity: Severity
    path: tuple[str | int, ...]
    message: str
    hint: str = ""
    key: bool = False
    about: str = BINDING


class Taken(NamedTuple):
    """One value that an operation takes.

    `as_text`: it is written into a path, a query or a header. `schema` None says that nothing is known of it.
    """

    label: str
    required: bool
    schema: Any
    deprecated: bool = False
    as_text: bool = False


class Wire(NamedTuple):
    """What an operation takes for each key of a binding's request, and what its reply holds.

    `reply` holds the schemas of the bodies that `response.*` may walk; None where nothing is known of them.
    """

    title: str
    taken: dict[str, Taken]
    reply: tuple[Any, ...] | None
    deprecated: bool = False
