"""Finishing what a crash between two sealing steps left: the same steps again, which give the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from cogcli.app.settings import Settings


def repair(settings: Settings, directory: Path) -> bool:
    """Seal an episode whose run has ended; whether that was needed. Unfinished and altered ones stay as they are.

    Raises EnvironmentRefusal `episode.busy`, `episode.unreadable`, `env.disk`.
    """
    from cogcli.app.signing import signer_of
    from cogcli.core.redact import Redactor
    from cogcli.episode.seal import seal
    from cogcli.episode.store import Store

    if not _only_unsealed(directory):
        return False
    store = Store(settings.runs_dir, sign=signer_of(settings))
    journal = store.reopen(directory, clock=settings.clock, ids=settings.ids, redactor=Redactor()).journal
    try:
        seal(journal)
    finally:
        journal.close()
    return True


def _only_unsealed(directory: Path) -> bool:
    """Whether the run has ended, no manifest says so, and log and blobs are as they were."""
    from cogcli.episode.account import account_of
    from cogcli.episode.layout import BLOBS, EVENTS, MANIFEST
    from cogcli.episode.reading import read_events
    from cogcli.episode.verify import verify

    if (directory / MANIFEST).exists():
        return False
    if account_of(read_events(directory)).projection.terminated is None:
        return False
    wrong = {finding.file for finding in verify(directory) if finding.severity == "error"}
    return not any(name == EVENTS or name.startswith(BLOBS) for name in wrong)
