"""Clearing episodes away: which may go, which stay and why, and removing them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cogcli.app.episodes import before, find, store_of
from cogcli.core.errors import UsageError
from cogcli.episode.pins import pin, read_pins, unpin
from cogcli.episode.removal import is_being_made, remove, remove_leftovers, size_of

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.episode.episode_row import Overview

REMOVABLE = ("ok", "error", "vetoed", "aborted", "partial", "interrupted")
"""A run that goes on, or waits for somebody, is nothing to clear away."""
STAYS = ("newest", "running", "pending", "pinned")


class Criteria(NamedTuple):
    """What may go: all of it must be true of an episode. `before` is a timestamp, `keep` a number of newest ones."""

    keep: int | None = None
    before: str | None = None
    outcome: str | None = None

    @property
    def given(self) -> bool:
        """Whether there is any criterion."""
        return self != Criteria()

    def fits(self, row: Overview) -> bool:
        """Whether outcome and age of an episode are those that may go; of running and pending ones the age alone."""
        if self.outcome is not None and row.status in REMOVABLE and row.status != self.outcome:
            return False
        return self.before is None or (row.started_at or "") < self.before


class Sweep(NamedTuple):
    """What would go, how many bytes that is, and how many of those that fit stay, by reason."""

    rows: list[Overview]
    bytes: int
    stay: Counter[str]


def criteria(
    settings: Settings, *, keep: int | None, older_than: str | None, outcome: str | None
) -> Criteria:
    """The criteria of flags. Raises UsageError where there is none."""
    found = Criteria(keep, before(settings, "--older-than", older_than), outcome)
    if not found.given:
        raise UsageError(
            "usage.value",
            "`gc` needs to know what may go",
            expected="--keep N, --older-than AGE or --outcome WORD",
            next=("cogcli gc --keep 50 --dry-run",),
        )
    return found


def sweep(settings: Settings, wanted: Criteria) -> Sweep:
    """What would go now. Raises EnvironmentRefusal where the pins cannot be read."""
    pins = read_pins(Path(settings.runs_dir))
    go: list[Overview] = []
    stay: Counter[str] = Counter()
    for number, row in enumerate(store_of(settings).overviews()):
        if wanted.keep is not None and number < wanted.keep:
            stay["newest"] += 1
        elif wanted.fits(row):
            reason = _protection(row, pins)
            if reason:
                stay[reason] += 1
            else:
                go.append(row)
    return Sweep(go, sum(size_of(row.directory) for row in go), stay)


def _protection(row: Overview, pins: frozenset[str]) -> str:
    if row.id in pins:
        return "pinned"
    if row.status == "running" or is_being_made(row):
        return "running"
    return "" if row.status in REMOVABLE else "pending"


def swept(settings: Settings, wanted: Criteria, planned: Sweep) -> Sweep:
    """Remove what was planned, as far as it may still go; gives what went. Raises EnvironmentRefusal `env.disk`."""
    runs_dir = Path(settings.runs_dir)
    remove_leftovers(runs_dir)
    gone: list[Overview] = []
    freed = 0
    for row in planned.rows:
        size = size_of(row.directory)
        if remove(row.directory, lambda now: wanted.fits(now) and not _protection(now, read_pins(runs_dir))):
            gone.append(row)
            freed += size
    stay = planned.stay + Counter(running=len(planned.rows) - len(gone))
    return Sweep(gone, freed, stay)


def set_pin(settings: Settings, name: str) -> str:
    """Pin an episode of the runs directory; gives its id. Raises UsageError."""
    directory = find(settings, name)
    runs_dir = Path(settings.runs_dir)
    if directory.parent.resolve() != runs_dir.resolve():
        raise UsageError(
            "usage.value",
            f"`{name}` is not in {settings.shown(settings.runs_dir)}",
            hint="nothing removes it there",
        )
    pin(runs_dir, directory.name)
    return directory.name


def take_pin(settings: Settings, name: str) -> str:
    """Take an episode's pin away, also of one that is gone; gives its id. Raises UsageError."""
    runs_dir = Path(settings.runs_dir)
    id = name if name in read_pins(runs_dir) else find(settings, name).name
    unpin(runs_dir, id)
    return id
