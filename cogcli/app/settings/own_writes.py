"""Writes of the user's commands below an accepted project, which stays accepted
(docs/reference/service.md#trust)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cogcli.app.settings import Settings
from cogcli.app.settings.trust_accept import accept_written

Written = Callable[[str, bytes], None]
"""A function that records the path of a written file, and its content."""


@contextmanager
def keep_trust(settings: Settings) -> Iterator[Written]:
    """Inside, recorded files are accepted if the project was accepted before. Nothing else is
    accepted.

    A file that someone else changes meanwhile still ends the trust. Raise EnvironmentRefusal
    `env.disk` or `trust.size`."""
    was_accepted = settings.project is not None and settings.trust.state == "accepted"
    written: dict[str, bytes] = {}
    try:
        yield written.__setitem__
    finally:
        if was_accepted and written and settings.project is not None:
            accept_written(settings.project, settings.environ, written)
            settings.reread_trust()
