"""`gc`: the selection and removal of episodes, and the reasons why others are kept
(docs/reference/command-line.md#views)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from cogcli.app.episodes import find, parse_age, store_of
from cogcli.app.retention import is_expired
from cogcli.app.settings import Settings
from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.episode.archive.access import open_archives
from cogcli.episode.archive.reader import is_archive_file
from cogcli.episode.archive.transfer import drop_archive
from cogcli.episode.listing.episode_row import EpisodeRow
from cogcli.episode.redeemed import remove_expired_approvals
from cogcli.episode.removal import (
    is_being_made,
    pin,
    read_pins,
    remove,
    remove_leftovers,
    size_of,
    unpin,
)

REMOVABLE = ("ok", "error", "vetoed", "aborted", "partial", "interrupted")
"""Running and waiting episodes are never removed."""
KEEP_REASONS = ("newest", "running", "pending", "pinned", "archived")
"""`archived`: in an archive with other episodes that are kept. An archive is removed as a whole."""


class RemovalCriteria(NamedTuple):
    """The conditions for the removal of an episode.

    `keep` is the number of newest episodes to keep, and `before` a timestamp. The retention that
    the episode's pack sets must have ended by `expired_at`."""

    keep: int | None = None
    before: str | None = None
    outcome: str | None = None
    expired_at: str | None = None

    def fits(self, row: EpisodeRow) -> bool:
        """Return whether the outcome and age of an episode match.

        The outcome of a running or waiting episode is not compared, so that the report lists the
        episode as kept."""
        if self.outcome is not None and row.status in REMOVABLE and row.status != self.outcome:
            return False
        if self.before is not None and (row.started_at or "") >= self.before:
            return False
        return self.expired_at is None or is_expired(row, self.expired_at)


class RemovalPlan(NamedTuple):
    """The episodes to remove, their size in bytes, and the number of matching episodes that are
    kept, by reason. The reasons are in KEEP_REASONS. `archives` are the archives to remove, with all
    their episodes."""

    rows: list[EpisodeRow]
    bytes: int
    kept: Counter[str]
    archives: tuple[Path, ...] = ()


def parse_criteria(
    settings: Settings,
    *,
    keep: int | None,
    older_than: str | None,
    outcome: str | None,
    expired: bool,
) -> RemovalCriteria:
    """Convert flags to criteria. Raise UsageError if no flag is a criterion, or if an age is
    invalid."""
    before = parse_age(settings, "--older-than", older_than)
    found = RemovalCriteria(keep, before, outcome, settings.clock.now() if expired else None)
    if found == RemovalCriteria():
        raise UsageError(
            "usage.value",
            "`gc` needs a criterion",
            expected="--keep N, --older-than AGE, --outcome WORD or --expired",
            next=("cogcli gc --keep 50 --dry-run",),
        )
    return found


def _select_unprotected_episodes(
    episodes: Iterable[EpisodeRow], criteria: RemovalCriteria, pins: frozenset[str]
) -> tuple[list[EpisodeRow], Counter[str]]:
    """Return the episodes that match and are unprotected, and the number of protected ones by
    reason.
    """
    rows: list[EpisodeRow] = []
    kept: Counter[str] = Counter()
    for number, row in enumerate(episodes):
        if criteria.keep is not None and number < criteria.keep:
            kept["newest"] += 1
        elif criteria.fits(row):
            reason = _find_protection(row, pins)
            if reason:
                kept[reason] += 1
            else:
                rows.append(row)
    return rows, kept


def plan_sweep(settings: Settings, criteria: RemovalCriteria) -> RemovalPlan:
    """Return the episodes that a removal would remove now. Raise UnusableEnvironment if the pins
    cannot be read."""
    pins = read_pins(Path(settings.runs_dir))
    rows, kept = _select_unprotected_episodes(store_of(settings).episode_rows(), criteria, pins)
    archives = _whole_archives(Path(settings.runs_dir), {row.id for row in rows})
    kept_in_archives = [
        row for row in rows if _is_archived(row) and row.directory.parent not in archives
    ]
    kept += Counter(archived=len(kept_in_archives))
    staying = {row.id for row in kept_in_archives}
    rows = [row for row in rows if row.id not in staying]
    freed = sum(size_of(row.directory) for row in rows) + _size_of_files(archives)
    return RemovalPlan(rows, freed, kept, archives)


def _is_archived(row: EpisodeRow) -> bool:
    return is_archive_file(row.directory.parent)


def _size_of_files(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.exists())


def _whole_archives(runs_dir: Path, ids: set[str]) -> tuple[Path, ...]:
    """Return the archives whose episodes are all among these ids."""
    archives = open_archives(runs_dir)
    if archives is None:
        return ()
    return tuple(
        archive.path
        for archive in archives.archives()
        if not archive.contents.fault and ids.issuperset(archive.episode_ids())
    )


def _find_protection(row: EpisodeRow, pins: frozenset[str]) -> str:
    """Return the reason why an episode is kept, one of KEEP_REASONS; empty if it is not
    protected."""
    if row.id in pins:
        return "pinned"
    if row.status == "running" or is_being_made(row):
        return "running"
    return "" if row.status in REMOVABLE else "pending"


def _drop_archives(runs_dir: Path, plan: RemovalPlan) -> tuple[list[EpisodeRow], int]:
    """Remove the planned archives that are still unprotected. Return their episodes and the freed
    bytes.
    """
    removed: list[EpisodeRow] = []
    freed = 0
    may_drop = partial(_may_drop, runs_dir, {row.id for row in plan.rows})
    for path in plan.archives:
        rows = [row for row in plan.rows if row.directory.parent == path]
        size = _size_of_files([path])
        if drop_archive(path, may_drop):
            removed += rows
            freed += size
    return removed, freed


def remove_planned_episodes(
    settings: Settings, criteria: RemovalCriteria, plan: RemovalPlan
) -> RemovalPlan:
    """Remove the planned episodes that still match, and return the removed ones.

    Raise UnusableEnvironment `env.disk`."""
    runs_dir = Path(settings.runs_dir)
    remove_leftovers(runs_dir)
    removed, freed = _drop_archives(runs_dir, plan)
    folders = [row for row in plan.rows if not _is_archived(row)]
    for row in folders:
        size = size_of(row.directory)
        if remove(
            row.directory,
            lambda now: criteria.fits(now) and not _find_protection(now, read_pins(runs_dir)),
        ):
            removed.append(row)
            freed += size
    remove_expired_approvals(runs_dir, settings.clock.now())
    kept = plan.kept + Counter(running=len(plan.rows) - len(removed))
    return RemovalPlan(removed, freed, kept)


def _may_drop(runs_dir: Path, planned_ids: set[str], ids: list[str]) -> bool:
    """Return whether an archive with these episodes may be removed: all are planned, and none is
    pinned.
    """
    return planned_ids.issuperset(ids) and not read_pins(runs_dir).intersection(ids)


def set_pin(settings: Settings, name: str) -> str:
    """Pin an episode in the runs directory and return its id. Raise UsageError."""
    directory = find(settings, name)
    runs_dir = Path(settings.runs_dir)
    if directory.parent != runs_dir:
        message = f"`{name}` is not in {settings.display_path(settings.runs_dir)}"
        raise UsageError("usage.value", message, hint="nothing removes it there")
    pin(runs_dir, directory.name)
    return directory.name


def remove_pin(settings: Settings, name: str) -> str:
    """Remove the pin of an episode and return its id. The episode may be deleted. Raise
    UsageError."""
    runs_dir = Path(settings.runs_dir)
    id = name if name in read_pins(runs_dir) else find(settings, name).name
    unpin(runs_dir, id)
    return id
