"""The runs directory: creating episodes in it, listing them, and finding the one that a user means.

Ids and prefixes match their grammar before a path is built; a path given by the user is the user's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Unpack

from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.episode.archive.access import open_archives, read_archived_ids
from cogcli.episode.archive.directories import SUFFIX
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, STATE, is_episode_id, is_own_id, is_trace_id
from cogcli.episode.refusals import unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from cogcli.episode.journal import Journal, JournalPorts
    from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
    from cogcli.episode.reopen import ReopenedEpisode
    from cogcli.episode.signing import Sign

_NAME = lazy_pattern(r"@?(?:last(?:~(\d{1,6}))?|(failed))")
_PREFIX = lazy_pattern(r"ep_[0-9A-Za-z][0-9A-Za-z._-]{3,}")
_FAILED: Final = ("error", "partial", "vetoed", "aborted", "interrupted", "altered", "unsealed")
_SHOWN: Final = 10


class Store:
    """The episodes of one runs directory, given by its real path.

    `sign` signs the episodes that it seals. Their checkpoints have a message authentication code with the key of the
    `owner`. `shared`: the group may use the written episodes.
    """

    def __init__(
        self,
        runs_dir: str | Path,
        *,
        sign: Sign | None = None,
        owner: bytes | None = None,
        shared: bool = False,
    ) -> None:
        self._place = os.fspath(runs_dir)
        self._sign = sign
        self._owner = owner
        self.shared = shared

    @property
    def runs_dir(self) -> Path:
        """The runs directory."""
        from pathlib import Path  # commands that write an episode never ask

        return Path(self._place)

    # -- writing ------------------------------------------------------------------------------------------------------

    def create(self, episode_id: str, *, trace_id: str, **ports: Unpack[JournalPorts]) -> Journal:
        """Return a new episode with an empty, locked log.

        Raise UnusableEnvironment `env.runs-dir` and leave no file.
        """
        if not is_own_id(episode_id) or not is_trace_id(trace_id):
            raise ValueError("not an episode id or trace id")
        # Commands that only read never import these.
        from cogcli.episode.journal import Journal, remove_unbegun

        made: Folder | None = None
        try:
            with Folder.open(self._place, make=True, shared=self.shared) as runs:
                made = runs.make(episode_id)
            ports.setdefault("sign", self._sign)
            ports.setdefault("owner", self._owner)
            return Journal(made, episode_id=episode_id, trace_id=trace_id, **ports)
        except OSError as error:
            if made is not None:
                remove_unbegun(made)
                made.close()
            raise self._cannot_create_error(error) from error

    def _cannot_create_error(self, error: OSError) -> UnusableEnvironment:
        why = error.strerror or str(error)
        return UnusableEnvironment(
            "env.runs-dir",
            f"no episode can be made in `{self._place}`: {why}",
            hint="name another directory with --runs-dir",
        )

    def reopen(
        self,
        directory: Path,
        *,
        mend: bool = False,
        by_waypoint: bool = False,
        **ports: Unpack[JournalPorts],
    ) -> ReopenedEpisode:
        """Lock and recover an unsealed episode, to be continued. The caller closes its journal.

        `mend`: a damaged newest line is moved to `events.torn` (`episode/damage.py`) instead of being refused.
        `by_waypoint`: events that its waypoint leaves out are not read, if it can be used.

        Raise UsageError `episode.sealed`; UnusableEnvironment `episode.busy`, `episode.unreadable`, `env.disk`,
        `env.runs-dir`.
        """
        from cogcli.episode.reopen import reopen

        ports.setdefault("sign", self._sign)
        ports.setdefault("owner", self._owner)
        return reopen(directory, mend=mend, by_waypoint=by_waypoint, shared=self.shared, **ports)

    # -- finding ------------------------------------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """Return the ids of all episodes, including archived ones, newest first. Ids of other tools contain no time and
        are last.
        """
        try:
            entries = [entry for entry in os.scandir(self._place) if is_episode_id(entry.name)]
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._cannot_create_error(error) from error
        archives = open_archives(self._place)
        if archives is not None:
            names = list(archives.episode_ids().union(names))
        return sorted(names, key=lambda name: (is_own_id(name), name), reverse=True)

    def episode_rows(self, wanted: EpisodeFilter | None = None) -> Iterator[EpisodeRow]:
        """Return every readable episode that passes the filter, newest first, one at a time."""
        # Commands that write an episode read no list of episodes.
        from cogcli.episode.listing.episode_listing import list_rows

        return list_rows(self._place, wanted, self.ids, self._owner, shared=self.shared)

    def by_trace(self, trace_id: str) -> list[EpisodeRow]:
        """Return the episodes of a trace, newest first; `trace_id` whole, or its first 8 hex digits."""
        return list(self._rows_with(trace_id=trace_id))

    def _rows_with(
        self, *, trace_id: str | None = None, outcomes: tuple[str, ...] = ()
    ) -> Iterator[EpisodeRow]:
        from cogcli.episode.listing.episode_row import EpisodeFilter

        return self.episode_rows(EpisodeFilter(trace_id=trace_id, outcomes=outcomes))

    def resolve(self, text: str) -> Path:
        """Return the directory of the episode that a user names: a path, `@last`, an id, a prefix or a trace id.

        Raise UsageError `episode.unknown` or `episode.ambiguous`, UnusableEnvironment `episode.unreadable`.
        """
        if "/" in text or os.sep in text or text in (".", "..") or text.endswith(SUFFIX):
            return _checked_directory(text)
        for find in (
            self._find_by_name,
            self._find_by_id,
            self._find_by_prefix,
            self._find_by_trace_id,
        ):
            found = find(text)
            if len(found) > 1:
                raise _ambiguous_id_error(text, found)
            if found:
                path = self.runs_dir / found[0]
                if path.is_symlink():
                    raise unreadable(path, "is a symbolic link")
                return path
        if any(os.path.exists(os.path.join(text, name)) for name in (EVENTS, STATE)):
            return _checked_directory(text)
        raise _unknown_episode_error(text, self._unreadable_archives())

    def _unreadable_archives(self) -> str:
        """Return the names of archives that cannot be read as a whole, in which an unknown episode may be."""
        archives = open_archives(self._place)
        faults = [] if archives is None else archives.find_faults()
        return ", ".join(os.path.basename(fault.file) for fault in faults)

    def _find_by_name(self, text: str) -> list[str]:
        match = _NAME.fullmatch(text)
        if match is None:
            return []
        if match[2]:
            newest = next(self._rows_with(outcomes=_FAILED), None)
            return [] if newest is None else [newest.id]
        back = int(match[1] or 0)
        found = self._indexed_ids("ep_", skip=back, limit=1)
        return self.ids()[back : back + 1] if found is None else found

    def _find_by_id(self, text: str) -> list[str]:
        if not is_episode_id(text):
            return []
        if (self.runs_dir / text).is_dir():
            return [text]
        archives = open_archives(self._place)
        return [text] if archives is not None and archives.has(text) else []

    def _find_by_prefix(self, text: str) -> list[str]:
        if not _PREFIX.fullmatch(text):
            return []
        found = self._indexed_ids(text)
        return [name for name in self.ids() if name.startswith(text)] if found is None else found

    def _indexed_ids(self, prefix: str, *, skip: int = 0, limit: int = -1) -> list[str] | None:
        from cogcli.episode.listing.episode_listing import find_indexed_ids

        return find_indexed_ids(self._place, prefix, skip=skip, limit=limit)

    def _find_by_trace_id(self, text: str) -> list[str]:
        return [row.id for row in self.by_trace(text)] if is_trace_id(text) else []


def _checked_directory(text: str) -> Path:
    """Return the directory at a path that a user typed."""
    from pathlib import Path

    path = Path(text)
    if not os.path.isdir(path):
        if (archived := _archived_path(path)) is not None:
            return archived
        raise _unknown_episode_error(text)
    has_files = any(os.path.lexists(path / name) for name in (EVENTS, STATE))
    if not has_files and not is_own_id(path.name):
        raise unreadable(path, f"{EVENTS} does not exist")
    return path.resolve()


def _archived_path(path: Path) -> Path | None:
    """Return the path of the archived episode that `ARCHIVE/ID` names, or `ARCHIVE` if it has only one.

    Raise UsageError for an archive of several, and UnusableEnvironment `archive.unreadable`.
    """
    named, archive = ("", path) if path.name.endswith(SUFFIX) else (path.name, path.parent)
    if not archive.name.endswith(SUFFIX) or not archive.is_file():
        return None
    real = archive.resolve()
    found = [episode_id for episode_id in read_archived_ids(real) if named in (episode_id, "")]
    if len(found) > 1:
        raise _ambiguous_id_error(str(path), [f"{archive}/{episode_id}" for episode_id in found])
    return real / found[0] if found else None


def _unknown_episode_error(text: str, unreadable_archives: str = "") -> UsageError:
    hint = f"it may be in an archive that cannot be read: {unreadable_archives:.200}"
    return UsageError(
        "episode.unknown",
        f"no episode is called `{text:.80}`",
        expected="an id or its beginning, @last, @failed, a trace id or a directory",
        hint=hint if unreadable_archives else "",
        next=("cogcli ls",),
    )


def _ambiguous_id_error(text: str, found: list[str]) -> UsageError:
    names = ", ".join(found[:_SHOWN]) + (
        f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    )
    return UsageError(
        "episode.ambiguous",
        f"`{text:.80}` fits {len(found)} episodes",
        expected="one episode",
        found=names,
        next=tuple(f"cogcli trace {name}" for name in found[:3]),
    )
