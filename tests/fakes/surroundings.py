"""What invokers get from outside, in tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cogcli.base.system import SystemClock
from cogcli.protocols.invoker import InvokerContext
from cogcli.protocols.secrets import Secrets


def surroundings(
    environ: Mapping[str, str] | None = None,
    *,
    learn: Callable[[str], None] = lambda secret: None,
    state_dir: str = "",
    max_workers: int = 8,
) -> InvokerContext:
    """Real parts, an environment of the test's own."""
    given = environ or {}
    return InvokerContext(Secrets(given, learn), SystemClock(), state_dir, given, max_workers)
