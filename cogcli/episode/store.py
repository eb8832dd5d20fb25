"""The runs directory: creating episodes in it, listing them, and finding the one that a user means.

Ids and prefixes match their grammar before a path is built; a path given by the user is the user's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cogcli.core.errors import EnvironmentRefusal, UsageError
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, STATE, is_episode_id, is_own_id, is_trace_id
from cogcli.episode.listing.episode_listing import find_indexed_ids, list_rows
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow
from cogcli.episode.log_reader import unreadable

if TYPE_CHECKING:
    from cogcli.core.ports import Clock, IdSource
    from cogcli.core.redact import Redactor
    from cogcli.episode.journal import Journal
    from cogcli.episode.reopen import Reopened
    from cogcli.episode.signing import Sign

_NAME = re.compile(r"@?(?:last(?:~(\d{1,6}))?|(failed))")
_PREFIX = re.compile(r"ep_[0-9A-Za-z][0-9A-Za-z._-]{3,}")
_FAILED: Final = ("error", "partial", "vetoed", "aborted", "interrupted")
_SHOWN: Final = 10


class Store:
    """The episodes of one runs directory. What it creates or reopens is signed by `sign` when it is sealed."""

    def __init__(self, runs_dir: str | Path, *, sign: Sign | None = None) -> None:
        self.runs_dir = Path(runs_dir)
        self._sign = sign

    # -- writing ------------------------------------------------------------------------------------------------------

    def create(
        self,
        episode_id: str,
        *,
        trace_id: str,
        clock: Clock,
        ids: IdSource,
        redactor: Redactor,
        durability: str = "process",
    ) -> Journal:
        """A new episode with an empty log, locked. Raises EnvironmentRefusal `env.runs-dir`; then nothing is left."""
        if not is_own_id(episode_id) or not is_trace_id(trace_id):
            raise ValueError("not an episode id or trace id")
        # Reading commands, which never come here, do without what only writing needs.
        from cogcli.episode.journal import Journal
        from cogcli.episode.temp_cleanup import unmake

        made: Folder | None = None
        try:
            self.runs_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            with Folder.open(self.runs_dir.resolve()) as runs:
                made = runs.make(episode_id)
            return Journal(
                made,
                episode_id=episode_id,
                trace_id=trace_id,
                clock=clock,
                ids=ids,
                redactor=redactor,
                durability=durability,
                sign=self._sign,
            )
        except OSError as error:
            if made is not None:
                unmake(made)
                made.close()
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> EnvironmentRefusal:
        why = error.strerror or str(error)
        return EnvironmentRefusal(
            "env.runs-dir",
            f"no episode can be made in `{self.runs_dir}`: {why}",
            hint="name another directory with --runs-dir",
        )

    def reopen(
        self,
        directory: Path,
        *,
        clock: Clock,
        ids: IdSource,
        redactor: Redactor,
        durability: str = "process",
        mend: bool = False,
    ) -> Reopened:
        """An unsealed episode, locked and recovered, to go on with: close its journal.

        `mend`: a newest line that was damaged is moved to `events.torn` (`episode/damage.py`); else it is refused.

        Raises UsageError `episode.sealed`; EnvironmentRefusal `episode.busy`, `episode.unreadable`, `env.disk`,
        `env.runs-dir`.
        """
        from cogcli.episode.reopen import reopen

        return reopen(
            directory,
            clock=clock,
            ids=ids,
            redactor=redactor,
            durability=durability,
            sign=self._sign,
            mend=mend,
        )

    # -- finding ------------------------------------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """The ids of all episodes, newest first; those of other tools, which tell no time, come last."""
        try:
            names = [entry.name for entry in os.scandir(self.runs_dir) if _is_episode(entry)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._refused(error) from error
        names.sort(reverse=True)
        own = list(filter(is_own_id, names))
        if len(own) == len(names):
            return own
        ours = set(own)
        return own + [name for name in names if name not in ours]

    def episode_rows(self, wanted: EpisodeFilter | None = None) -> Iterator[EpisodeRow]:
        """Every readable episode that fits, newest first, one at a time."""
        return list_rows(self.runs_dir, wanted or EpisodeFilter(), self.ids)

    def by_trace(self, trace_id: str) -> list[EpisodeRow]:
        """The episodes of a trace, newest first; `trace_id` whole, or its first 8 hex digits."""
        return list(self.episode_rows(EpisodeFilter(trace_id=trace_id)))

    def resolve(self, text: str) -> Path:
        """The directory of the episode that a user names: a path, `@last`, an id, a prefix or a trace id.

        Raises UsageError `episode.unknown` or `episode.ambiguous`, EnvironmentRefusal `episode.unreadable`.
        """
        if os.sep in text or text in (".", ".."):
            return _mailed(text)
        for find in (self._by_name, self._by_id, self._by_prefix, self._by_trace_id):
            found = find(text)
            if len(found) == 1:
                return self._safe(found[0])
            if found:
                raise _ambiguous(text, found)
        if any(os.path.exists(os.path.join(text, name)) for name in (EVENTS, STATE)):
            return _mailed(text)
        raise _unknown(text)

    def _by_name(self, text: str) -> list[str]:
        match = _NAME.fullmatch(text)
        if match is None:
            return []
        if match[2]:
            newest = next(self.episode_rows(EpisodeFilter(outcomes=_FAILED)), None)
            return [] if newest is None else [newest.id]
        back = int(match[1] or 0)
        found = find_indexed_ids(self.runs_dir, "ep_", skip=back, limit=1)
        return self.ids()[back : back + 1] if found is None else found

    def _by_id(self, text: str) -> list[str]:
        return [text] if is_episode_id(text) and (self.runs_dir / text).is_dir() else []

    def _by_prefix(self, text: str) -> list[str]:
        if not _PREFIX.fullmatch(text):
            return []
        found = find_indexed_ids(self.runs_dir, text)
        return [name for name in self.ids() if name.startswith(text)] if found is None else found

    def _by_trace_id(self, text: str) -> list[str]:
        return [row.id for row in self.by_trace(text)] if is_trace_id(text) else []

    def _safe(self, episode_id: str) -> Path:
        path = self.runs_dir / episode_id
        if path.is_symlink():
            raise unreadable(path, "is a symbolic link")
        return path


def _mailed(text: str) -> Path:
    path = Path(text)
    if not os.path.isdir(path):
        raise _unknown(text)
    there = any(os.path.lexists(path / name) for name in (EVENTS, STATE))
    if not there and not is_own_id(path.name):
        raise unreadable(path, f"{EVENTS} does not exist")
    return path.resolve()


def _is_episode(entry: os.DirEntry[str]) -> bool:
    return is_episode_id(entry.name) and entry.is_dir(follow_symlinks=False)


def _unknown(text: str) -> UsageError:
    return UsageError(
        "episode.unknown",
        f"no episode is called `{text:.80}`",
        expected="an id or its beginning, @last, @failed, a trace id or a directory",
        next=("cogcli ls",),
    )


def _ambiguous(text: str, found: list[str]) -> UsageError:
    names = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    return UsageError(
        "episode.ambiguous",
        f"`{text:.80}` fits {len(found)} episodes",
        expected="one episode",
        found=names,
        next=tuple(f"cogcli trace {name}" for name in found[:3]),
    )
