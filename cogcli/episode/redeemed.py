"""The approvals that reruns took over from ended runs: one file for each, in `redeemed/` of the project's `.cogcli`
(docs/reference/episode.md#redeemed).

1. The file is created exclusively, and synced with its folder, before the call that it permits. Of several runs only
   one creates it, and no crash undoes it.
2. The name alone counts. A file, link or folder with the name of an approval means that it was taken over, whatever it
   contains: then a person is asked again.
3. A file stays as long as its approval could be taken over: until the approval has expired and its episode is gone.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.base.canonical import canonical
from cogcli.base.files import UnreadableFile
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.episode.folder import Folder, disk_errors, write_all
from cogcli.episode.layout import is_own_id

_PROJECT: Final = ".cogcli"
_FOLDER: Final = "redeemed"
_LIMIT: Final = 4096
_NODES: Final = 20


class Redemption(Record):
    """The content of a file: the approval's origin, the run that reused it, and the time when it expires."""

    approval_id: str = ""
    from_episode: str = ""
    by_episode: str = ""
    expires_at: str = ""


def redeemed_folder(runs_dir: str | Path) -> Path:
    """Return the folder of these files: `.cogcli/redeemed` of a project, `.redeemed` inside any other runs directory.

    It depends on the real path of the runs directory alone, so that all commands that use one agree.
    """
    real = Path(os.path.realpath(runs_dir))
    return real.parent / _FOLDER if real.parent.name == _PROJECT else real / f".{_FOLDER}"


def redeem(runs_dir: str | Path, redemption: Redemption, *, shared: bool = False) -> None:
    """Record on disk that a run reuses an approval. Raise FileExistsError if another run has reused it.

    `shared`: other users of the group record their redemptions here, too. Raise OSError if that fails. The approval
    must not be used then.
    """
    data = canonical(redemption.json) + b"\n"
    with Folder.open(redeemed_folder(runs_dir), make=True, shared=shared) as folder:
        handle = folder.create(redemption.approval_id, os.O_WRONLY)
        try:
            write_all(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        folder.sync_with_parent()


def read_redemption(runs_dir: str | Path, approval_id: str) -> Redemption:
    """Return the content of an approval's file. Its members are empty if the file cannot be read."""
    with suppress(OSError), Folder.open(redeemed_folder(runs_dir)) as folder:
        return _read_file(folder, approval_id)
    return Redemption()


def _read_file(folder: Folder, name: str) -> Redemption:
    try:
        found = loads(folder.read(name, limit=_LIMIT), max_bytes=_LIMIT, max_nodes=_NODES)
    except (UnreadableFile, InvalidJson):
        return Redemption()
    return read_record(Redemption, found)


def remove_expired_approvals(runs_dir: Path, now: str) -> None:
    """Remove the files of expired approvals whose episodes no longer exist. Raise UnusableEnvironment `env.disk`."""
    place = redeemed_folder(runs_dir)
    with disk_errors(place), suppress(FileNotFoundError), Folder.open(place) as folder:
        for name in folder.names():
            found = _read_file(folder, name)
            is_gone = is_own_id(found.from_episode) and not (runs_dir / found.from_episode).exists()
            if found.approval_id == name and found.expires_at <= now and is_gone:
                folder.unlink(name)
