"""The access that Python functions get during a run through `cogcli.sdk` (docs/reference/sdk.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from cogcli.base.named_tuple import NamedTuple, new_tuple

if TYPE_CHECKING:
    from cogcli.base.calls import Cancellation
    from cogcli.base.file_roots import Roots
    from cogcli.base.jsonvalue import Json


class HostAccess(NamedTuple):
    """The access of one call. A function without it runs outside a run, for example in a test."""

    open_registry: Callable[[], Any] | None = None
    """Opens the registry of the run; None if there is none, for example in a worker process."""
    store_dir: str = ""
    """The folder of the project's stores; empty if the run has none."""
    proxies: Mapping[str, str] = {}
    """The environment variables if proxies may be used, else empty."""
    network: str = "public"
    """The addresses that may be reached, as in a service."""
    secret: Callable[[], str] | None = None
    """Reads the secret that `auth_ref` of the service names; None if it names none."""
    mask_text: Callable[[str], str] = str
    """Masks the secrets that the run has resolved. Foreign text is masked before it is truncated.
    """
    roots: Roots = ()
    """The folders from which files are read; () for anywhere."""
    typed: frozenset[str] = frozenset()
    """Files of credentials whose paths the user typed, with links followed."""
    is_online: Callable[[], bool] = bool
    """Whether the run may reach a network or a model. A function that runs by itself is in no run.
    """
    write_roots: Roots = ()
    """The folders where files are written; () for the working directory."""
    deadline: float | None = None
    """The end of the call in monotonic time; None without a limit."""
    cancel: Cancellation | None = None
    files: list[Json] | None = None
    """The list that receives the path, size and hash of each written file; None if they are not
    recorded."""

    def for_call(self, deadline: float, cancel: Cancellation, files: list[Json]) -> HostAccess:
        """Return this access with the limits of one call, and the list of its files."""
        return new_tuple(
            HostAccess, (*self[:-3], deadline, cancel, files)
        )  # the last three members


NOTHING: Final = HostAccess()
ACCESS: Final[ContextVar[HostAccess]] = ContextVar("ACCESS", default=NOTHING)
