"""The files that a command of the user writes below an accepted project: it stays accepted with them
(docs/reference/service.md#trust)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cogcli.app.settings import Settings
from cogcli.app.settings.trust_accept import accept_written

Written = Callable[[str, bytes], None]
"""Notes the path of a file that was written, and its content."""


@contextmanager
def keep_trust(settings: Settings) -> Iterator[Written]:
    """Accept the files that are noted within, if the project was accepted before. Nothing else is accepted: a file that
    somebody else has changed in the meantime ends the trust.

    Raises EnvironmentRefusal `env.disk`, `trust.size`.
    """
    was_accepted = settings.project is not None and settings.trust.state == "accepted"
    written: dict[str, bytes] = {}
    try:
        yield written.__setitem__
    finally:
        if was_accepted and written and settings.project is not None:
            accept_written(settings.project, settings.environ, written)
            settings.reread_trust()
