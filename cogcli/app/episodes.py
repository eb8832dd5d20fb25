"""The lookup of episodes, and the rows of `ls`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from cogcli.app.settings import Settings
from cogcli.app.settings.config import EPISODES_MODE
from cogcli.app.settings.owner_key import read_key
from cogcli.app.settings.runs_dir import is_shared
from cogcli.app.wings import EPISODE_OF_LINE, is_line_word
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.system import owner_of, rfc3339
from cogcli.base.terminal_text import visible
from cogcli.declarations.value_types import Json
from cogcli.episode.archive.access import open_archives
from cogcli.episode.archive.directories import SUFFIX
from cogcli.episode.layout import EVENTS
from cogcli.episode.listing.episode_row import EpisodeFilter, EpisodeRow, read_row
from cogcli.episode.log_reader import Warn
from cogcli.episode.refusals import ASK_OWNER, altered_error, nothing_began_error, open_episode
from cogcli.episode.removal import is_being_made
from cogcli.episode.store import Store
from cogcli.report.humanize import seconds_of

if TYPE_CHECKING:
    from pathlib import Path


def store_of(settings: Settings) -> Store:
    """Return the store of the runs directory."""
    shared = (
        settings.with_origin(EPISODES_MODE)[0] == "group"
    )  # an invalid file does not matter here
    return Store(settings.runs_dir, owner=read_key(settings.environ).key, shared=shared)


def find_unreadable(settings: Settings) -> Counter[str]:
    """Return the number of episodes that this user may not read, by owner. They are searched only in a runs directory
    to which other users may write.
    """
    found: Counter[str] = Counter()
    if not is_shared(settings.runs_dir):
        return found
    for name in store_of(settings).ids():
        directory = os.path.join(settings.runs_dir, name)
        if os.path.isdir(directory) and not _may_read(directory):
            found[owner_of(directory).text] += 1
    return found


def _may_read(directory: str) -> bool:
    """Return whether this user may read the log of an episode. True if the episode has no log."""
    if not os.access(directory, os.R_OK | os.X_OK):
        return False
    log = os.path.join(directory, EVENTS)
    return os.access(log, os.R_OK) or not os.path.exists(log)


def unreadable_warning(count_by_owner: Counter[str]) -> UnusableEnvironment:
    """Return the warning about episodes that this user may not read."""
    count, owners = (
        count_by_owner.total(),
        ", ".join(f"`{name}`" for name in sorted(count_by_owner)),
    )
    what = "1 episode is" if count == 1 else f"{count} episodes are"
    return UnusableEnvironment(
        "episode.unreadable",
        f"{what} not listed: they belong to {owners}, and you may not read them"
        if count > 1
        else f"{what} not listed: it belongs to {owners}, and you may not read it",
        hint=ASK_OWNER,
    )


def read_status(settings: Settings, directory: Path, warn: Warn) -> EpisodeRow:
    """Return the row of an episode. If its files contradict each other, pass an error to `warn`.

    Raise UnusableEnvironment `episode.unreadable`."""
    row = read_row(directory, read_key(settings.environ).key)
    if row.fault:
        warn(altered_error(directory, visible(row.fault)))
    return row


def find(settings: Settings, name: str | None) -> Path:
    """Return the directory of the named episode, or of the newest one if `name` is None.
    `ba_.../LINE` names the episode of a line of a batch.

    Raise UsageError or UnusableEnvironment."""
    if name == "":
        raise UsageError(
            "episode.unknown", "an empty word names no episode", hint="is a variable unset?"
        )
    if name is not None and is_line_word(name) and not os.path.isdir(name):
        line: Path = EPISODE_OF_LINE(settings, name)
        return line
    if name is not None and (os.path.isdir(name) or SUFFIX in name):
        settings.require_inside(name)
    return store_of(settings).resolve("@last" if name is None else name)


def find_all(settings: Settings, names: Sequence[str]) -> dict[Path, bool]:
    """Return the directories of the named episodes, each once; for a directory of episodes, of all of them, oldest
    first. Each with whether it was named itself.

    Raise the errors of `find`."""
    from pathlib import Path  # commands that list episodes make none

    found: dict[Path, bool] = {}
    for name in names:
        place = Path(os.path.realpath(name))
        inside = [place / id for id in Store(place).ids()[::-1]] if os.path.isdir(name) else []
        named = [] if inside else [find(settings, name)]
        found |= dict.fromkeys(inside, False) | dict.fromkeys(named, True)
    return found


def archive_faults(settings: Settings) -> list[UnusableEnvironment]:
    """Return the errors of archives in the runs directory that cannot be read as a whole."""
    archives = open_archives(settings.runs_dir)
    return [] if archives is None else archives.find_faults()


OUTCOMES = (
    "ok", "error", "vetoed", "aborted", "partial", "pending", "running", "interrupted",
    "altered", "unsealed",
)  # fmt: skip


def list_episodes(
    settings: Settings, episode_filter: EpisodeFilter, limit: int | None
) -> list[EpisodeRow]:
    """Return the newest `limit` episodes that match, newest first; all of them if `limit` is
    None."""
    return list(islice(store_of(settings).episode_rows(episode_filter), limit))


def error_of_unstarted(row: EpisodeRow) -> UnusableEnvironment | None:
    """Return the error of an episode whose run stopped before its first event; None for any other
    episode."""
    try:
        with open_episode(row.place) as folder:
            # A log is locked right after it is created; before that nothing shows that a run owns it.
            return (
                nothing_began_error(folder)
                if folder.holds(EVENTS) or not is_being_made(row)
                else None
            )
    except UnusableEnvironment:
        return None


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def parse_age(settings: Settings, flag: str, age: str | None) -> str | None:
    """Return the timestamp of the moment `age` ago, or None if `age` is None.

    Raise UsageError, with the name of the flag, for an invalid age.
    """
    if age is None:
        return None

    number, unit = age[:-1], age[-1:]
    if not number.isascii() or not number.isdigit() or unit not in _UNITS or len(number) > 6:
        raise UsageError(
            "usage.value", f"`{flag}`: found `{age[:40]}`", expected="an age like 30d, 12h or 45m"
        )
    now = settings.clock.now()
    second = int(seconds_of(now) or 0.0) - int(number) * _UNITS[unit]
    return rfc3339(max(0, second), int(now[20:26]))


def row_to_payload(row: EpisodeRow, display_path: Callable[[str], str], now: str) -> Json:
    """Return the object of an episode in `ls --json`.

    The status of a running run whose process shows no activity is `stalled`."""
    return {
        "episode_id": row.id,
        "status": "stalled" if row.is_stalled(now) else row.shown_status,
        "skill": row.skill,
        "started_at": row.started_at,
        "duration_ms": row.duration_ms,
        "trace_id": row.trace_id,
        "run_id": row.run_id,
        "tags": row.tags,
        "sealed": row.sealed,
        "task": row.task,
        "dir": display_path(row.place),
        "decision": row.decision,
        "pack": row.pack,
        "intent": row.intent,
        "user": row.user,
        **({"fault": row.fault} if row.fault else {}),
    }
