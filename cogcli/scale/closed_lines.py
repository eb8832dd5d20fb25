"""Which lines of a batch begin no episode any more, because their folders may be gone (docs/reference/batch.md#moves).

1. The file `closed` of a shard has one number: its lines up to this one are closed. It only grows.
2. It is on disk before the first of their folders goes.
3. A claim that made a folder reads it before the first event. So a process that was stopped for long runs no line
   whose folder was archived, and later removed with its archive.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cogcli.base.files import UnreadableFile
from cogcli.episode.folder import Folder
from cogcli.scale.batch_folder import Shard, find_shards

CLOSED: Final = "closed"
_LARGEST: Final = 32


def closed_file(shard: Shard) -> str:
    """Return the name of the file of a shard."""
    return f"{CLOSED}{shard.suffix}"


def close_lines(folder: Folder, shard: Shard, line: int) -> None:
    """Close the lines of a shard up to this one. Raise UnusableEnvironment `env.disk`."""
    folder.replace(closed_file(shard), b"%d\n" % line)


def read_last_closed_line(folder: Folder, shard: Shard) -> int:
    """Return the last closed line of a shard; 0 without one. A file that cannot be read closes all lines."""
    name = closed_file(shard)
    try:
        text = folder.read(name, limit=_LARGEST).strip()
    except UnreadableFile as error:
        return 0 if error.reason == "missing" else _EVERY
    return int(text) if text.isdigit() else _EVERY


_EVERY: Final = 1 << 62


def is_line_closed(batch: Path, line: int) -> bool:
    """Return whether a line of the batch with this folder is closed. Raise OSError."""
    try:
        folder = Folder.open(batch)
    except FileNotFoundError:
        return False
    with folder:
        shards = find_shards(folder.names(), CLOSED)
        return any(
            shard.has(line) and line <= read_last_closed_line(folder, shard) for shard in shards
        )
