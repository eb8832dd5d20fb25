"""What the run that calls a Python function lets it reach through `cogcli.sdk` (docs/reference/sdk.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from cogcli.base.calls import Cancellation
    from cogcli.base.file_roots import Roots


class HostAccess(NamedTuple):
    """Set around each call; without one a function runs by itself, as in a test."""

    open_registry: Callable[[], Any] | None = None
    """Opens the registry of the run; None where there is none, such as in a worker process."""
    store_dir: str = ""
    """Where the stores of the project are; empty where a run has none."""
    proxies: Mapping[str, str] = {}
    """The environment's variables where proxies may be used, else nothing."""
    network: str = "public"
    """Which addresses may be reached, as in services."""
    secret: Callable[[], str] | None = None
    """Reads what `auth_ref` of the service names; None where it names nothing."""
    mask_text: Callable[[str], str] = str
    """Masks the secrets that the run has resolved: foreign text is masked before it is cut."""
    deadline: float | None = None
    """The end of the call, monotonic; None for no limit of its own."""
    cancel: Cancellation | None = None
    roots: Roots = ()
    """Where files are read; () for anywhere."""
    typed: frozenset[str] = frozenset()
    """Files of credentials that the user typed, links followed."""
    is_online: Callable[[], bool] = bool
    """Whether the run may reach a network or a model; a function that runs by itself is in no run."""
    write_roots: Roots = ()
    """Where files are written; () for the working directory."""
    files: list[dict[str, Any]] | None = None
    """Takes the files that the call wrote, each as path, size and hash; None where nothing records them."""


NOTHING: Final = HostAccess()
ACCESS: Final[ContextVar[HostAccess]] = ContextVar("ACCESS", default=NOTHING)
