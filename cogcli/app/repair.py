"""`verify --repair`: move a damaged last line away, seal an ended run.

Sealing again writes the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from cogcli.app.settings import Settings
from cogcli.app.settings.runs_dir import signer_of
from cogcli.core.files import FileRefused
from cogcli.core.redact import Redactor
from cogcli.episode.damage import damage_of
from cogcli.episode.layout import BLOBS, EVENTS, MANIFEST, STATE
from cogcli.episode.log_fold import fold_log
from cogcli.episode.log_reader import EventLog
from cogcli.episode.refusals import open_episode
from cogcli.episode.seal import persist_pending, seal
from cogcli.episode.store import Store
from cogcli.episode.verify.check import verify


def repair(settings: Settings, directory: Path) -> bool:
    """Repair an unsealed episode; False where nothing was to do. Other damage is left as it is.

    Raises EnvironmentRefusal `episode.busy`, `env.disk`, and `episode.unreadable` for damage that cannot be repaired.
    """
    damaged = _is_damaged(directory)
    if not damaged and not _only_unsealed(directory):
        return False
    store = Store(settings.runs_dir, sign=signer_of(settings))
    journal = store.reopen(
        directory, clock=settings.clock, ids=settings.ids, redactor=Redactor(), mend=damaged
    ).journal
    try:
        if fold_log(journal.events()).projection.terminated is not None:
            seal(journal)
        elif any(found.file == STATE and found.severity == "error" for found in verify(journal.directory)):
            persist_pending(journal)
    finally:
        journal.close()
    return True


def _is_damaged(directory: Path) -> bool:
    """Whether a line of an unfinished log was altered."""
    with open_episode(directory) as folder:
        try:
            return MANIFEST not in folder.entries() and damage_of(folder) is not None
        except FileRefused:
            return False  # `verify` says why


def _only_unsealed(directory: Path) -> bool:
    """Whether the run has ended without a manifest, and log and blobs are unaltered. False for another tool's log."""
    if (directory / MANIFEST).exists():
        return False
    if fold_log(EventLog(directory)).projection.terminated is None:
        return False
    findings = verify(directory)
    if any(finding.code == "chain.unchained" for finding in findings):
        return False
    wrong = {finding.file for finding in findings if finding.severity == "error"}
    return not any(name == EVENTS or name.startswith(BLOBS) for name in wrong)
