"""Finds batches, and the episodes of their lines, by the words that a user types."""

from __future__ import annotations

from pathlib import Path

from cogcli.app.settings import Settings
from cogcli.base.errors import UsageError
from cogcli.base.system import encode_ulid
from cogcli.scale.batch_folder import BatchFolder, find_batch, read_header
from cogcli.scale.ledger import LedgerEntry
from cogcli.scale.line_archive import LineArchive

_LINE_DIGITS = 21
"""Characters of an episode's id that its time and its line determine: `ep_`, 10 and 8 of them."""


def find_episode(settings: Settings, text: str) -> Path:
    """Return the directory of the episode of `ba_.../LINE`. Raise UsageError."""
    word, _, number = text.partition("/")
    batch_id = find_batch(settings.runs_dir, word)
    line = int(number[:12])
    with BatchFolder.open(settings.runs_dir, batch_id) as batch:
        header = read_header(batch.folder)
        if not 1 <= line <= header.input.lines:
            what = f"`{batch_id}` has {header.input.lines} lines, found line {line}"
            raise UsageError("episode.unknown", what, expected="the number of a line")
        found = _find_in_ledgers(settings, batch, line)
        found = found or _find_by_id(settings, header.created_ms, line)
    if found is None:
        what = (
            f"line {line} of `{batch_id}` has no episode: it did not run yet, or is no valid input"
        )
        raise UsageError("episode.unknown", what, next=(f"cogcli ls --batch {batch_id}",))
    return found


def _find_in_ledgers(settings: Settings, batch: BatchFolder, line: int) -> Path | None:
    """Return the path of the episode in a line's last ledger entry; None if the line has no entry."""
    last: LedgerEntry | None = None
    for shard in batch.shards():
        if shard.has(line):
            for entry in batch.read_ledger(shard):
                last = entry if entry.line == line else last
    if last is None or last.episode is None:
        return None
    archive = LineArchive(Path(settings.runs_dir), batch.batch_id)
    return archive.path_of(last.at, last.episode)


def _find_by_id(settings: Settings, created_ms: int, line: int) -> Path | None:
    """Return the folder of a line that has not ended. None if it has none."""
    prefix = f"ep_{encode_ulid(created_ms, line << 40)}"[:_LINE_DIGITS]
    found = sorted(Path(settings.runs_dir).glob(f"{prefix}*"))
    return found[-1] if found else None
