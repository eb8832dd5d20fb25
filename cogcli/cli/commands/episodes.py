"""`episodes archive` and `episodes extract`: episodes between folders and archives
(docs/reference/archive.md#commands)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from cogcli.app.archive_episodes import (
    EpisodeArchiver,
    EpisodeExtractor,
    Transfer,
    batch_archives,
    list_archives,
    sealed_folders,
)
from cogcli.app.episodes import find
from cogcli.app.settings import Settings
from cogcli.app.wings import is_batch_word
from cogcli.base.errors import ENVIRONMENT, OK, UnusableEnvironment, UsageError
from cogcli.cli.context import CommandContext
from cogcli.cli.options import OUTPUT, argument, command, switch, text, wrong_flag
from cogcli.episode.archive.directories import SUFFIX
from cogcli.report.humanize import count_of, size
from cogcli.scale.batch_folder import BatchFolder, find_batch


@command(
    examples=(
        ("cogcli episodes archive @last", "one finished episode"),
        ("cogcli episodes archive ba_01JD8", "the finished lines of a batch"),
        ("cogcli episodes archive --all --json", "for scripts: every finished episode"),
    ),
    exits=(0, 2, 3),
    maximum=65_536,
)
def archive(
    context: CommandContext,
    names: Annotated[list[str], argument("[EP...]", "episodes")],
    *,
    all: Annotated[
        bool, switch("--all", help="every finished episode of the runs directory")
    ] = False,
) -> int:
    """Move finished episodes into archives."""
    settings = context.settings
    if all == bool(names):
        fix = "name episodes or a batch, or give --all"
        raise wrong_flag("`episodes archive` takes episodes or `--all`", fix)
    directories = sealed_folders(settings) if all else []
    for name in names:
        if is_batch_word(name):
            directories += sealed_folders(settings, find_batch(settings.runs_dir, name))
        else:
            directories.append(find(settings, name))
    archiver = EpisodeArchiver(settings, _claim_check(settings))
    return _report_transfers(
        context, archiver.archive(list(dict.fromkeys(directories))), "archived"
    )


def _claim_check(settings: Settings) -> Callable[[str, str], bool]:
    """Return the function that finds out whether a batch may still claim an episode."""

    @cache
    def ended(batch_id: str) -> frozenset[str]:
        with BatchFolder.open(settings.runs_dir, batch_id) as batch:
            shards = batch.shards()
            # A worker of a running batch may be late, and must not find the id of its line free.
            if any(batch.folder.is_locked(shard.ledger) for shard in shards):
                return frozenset()
            entries = (entry for shard in shards for entry in batch.read_ledger(shard))
            return frozenset(entry.episode for entry in entries if entry.episode and entry.is_final)

    return lambda batch_id, episode_id: episode_id not in ended(batch_id)


@command(
    examples=(
        ("cogcli episodes extract @last", "write its folder, which is then read instead"),
        ("cogcli episodes extract mailed.cogarchive --to ./mailed", "all episodes of a file"),
        ("cogcli episodes extract ba_01JD8 --json", "for scripts: the archived lines of a batch"),
    ),
    exits=(0, 2, 3),
    maximum=65_536,
)
def extract(
    context: CommandContext,
    names: Annotated[list[str], argument("EP", "episodes")],
    *,
    to: Annotated[
        str | None, text("--to", "DIR", "the directory of the folders", OUTPUT, completes="files")
    ] = None,
) -> int:
    """Write the folders of archived episodes. The archive keeps them."""
    settings = context.settings
    places, faults = _find_places(settings, names)
    target = None if to is None else Path(settings.require_inside(os.path.abspath(to)))
    extractor = EpisodeExtractor(settings, target)
    code = _report_transfers(context, extractor.extract(dict.fromkeys(places)), "extracted")
    for fault in faults:
        context.warn(fault)
    if faults and code == OK:
        context.fail({"code": faults[0].code, "message": faults[0].message})
    return code or (ENVIRONMENT if faults else OK)


def _find_places(
    settings: Settings, names: Sequence[str]
) -> tuple[list[Path], list[UnusableEnvironment]]:
    """Return the episodes that match these names, and the faults of unreadable archives. Without an episode, raise the
    first fault, or UsageError `episode.unknown`.
    """
    places: list[Path] = []
    faults: list[UnusableEnvironment] = []
    for name in names:
        archives = _find_named_archives(settings, name)
        if archives is None:
            places.append(find(settings, name))
        else:
            listed = list_archives(archives)
            places += listed.places
            faults += listed.faults
    if not places and faults:
        raise faults[0]
    if not places:
        raise UsageError("episode.unknown", "no archive has an episode of this name")
    return places, faults


def _find_named_archives(settings: Settings, name: str) -> list[Path] | None:
    """Return the archives that a word names as a whole: one file, or the archives of a batch. None
    for an episode."""
    if is_batch_word(name):
        return batch_archives(settings, find_batch(settings.runs_dir, name))
    if name.endswith(SUFFIX) and os.path.isfile(name):
        return [Path(settings.require_inside(name))]
    return None


def _report_transfers(context: CommandContext, results: Iterable[Transfer], verb: str) -> int:
    """Write the place of each episode, and fill the envelope. The exit code is that of the first error."""
    rows, done, total = [], 0, 0
    first = None
    found = list(results)
    if len(found) == 1 and found[0].error is not None:
        raise found[0].error
    for result in found:
        row: dict[str, object] = {"episode_id": result.episode_id, "place": None}
        if result.error is not None:
            first = first or result.error
            row["error"] = result.error.code
            context.warn(result.error)
        elif result.place is not None:
            row["place"] = context.settings.display_path(str(result.place))
            context.answer(f"{row['place']}\n")
            done, total = done + 1, total + result.bytes
        rows.append(row)
    context.own[verb] = {"episodes": rows, "bytes": total}
    if not context.json:
        context.note(f"{verb} {count_of(done, 'episode')} ({size(total)})")
    if first is None:
        return OK
    context.fail({"code": first.code, "message": first.message})
    return first.exit_code
