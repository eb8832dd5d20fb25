"""What a run takes from outside: directories, registry, clock, ids, environment, signer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cogcli.bindings.breaker import Circuits
    from cogcli.core.system import Clock, IdSource
    from cogcli.episode.signing import Sign
    from cogcli.protocols.pythoncall.readable_files import Reads
    from cogcli.specs.registry import Registry


class RunEnvironment(NamedTuple):
    """Decided before a run, by settings and trust; nothing in a run changes it. Paths are absolute."""

    runs_dir: str
    state_dir: str
    environ: Mapping[str, str]
    clock: Clock
    ids: IdSource
    open_registry: Callable[[], Registry]
    """Called where specs are needed: a broken configuration file is an error there only."""
    signer: Callable[[], Sign | None] = lambda: None
    """Called where a manifest may be signed, for the same reason; None without a key."""
    use_env_proxy: bool = False
    reads: Reads | None = None
    """The files that shipped functions may read; None for any (docs/reference/service.md#trust)."""
    circuits: Circuits | None = None
    """Circuit breakers; None for those that all runs of this process share."""
