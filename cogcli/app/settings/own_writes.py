"""Files that a command of the user writes in an accepted project. The project remains accepted
(docs/reference/service.md#trust)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cogcli.app.settings import Settings
from cogcli.app.settings.trust_accept import accept_written_files

Written = Callable[[str, bytes], None]
"""A function that records the path of a written file, and its content."""


@contextmanager
def keep_trust(settings: Settings) -> Iterator[Written]:
    """Accept the files that the `with` block records, if the project is accepted. Accept no other
    changes.

    A file that another program changes at the same time still ends the trust. Raise
    UnusableEnvironment `env.disk` or `trust.size`."""
    was_accepted = settings.project is not None and settings.trust.state == "accepted"
    written: dict[str, bytes] = {}
    try:
        yield written.__setitem__
    finally:
        if was_accepted and written and settings.project is not None:
            accept_written_files(settings.project, settings.environ, written)
            settings.reread_trust()
