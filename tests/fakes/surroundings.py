"""What invokers get from outside, in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cogcli.core.system import SystemClock
from cogcli.protocols.invoker import Surroundings
from cogcli.protocols.secrets import Secrets


def surroundings(
    environ: Mapping[str, str] | None = None,
    *,
    learn: Callable[[str], None] = lambda secret: None,
    state_dir: str = "",
    max_workers: int = 8,
) -> Surroundings:
    """Real parts, an environment of the test's own."""
    given = environ or {}
    return Surroundings(Secrets(given, learn), SystemClock(), state_dir, given, max_workers)
