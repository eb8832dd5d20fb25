"""Reopening the episode of a run whose process died, or that waits (docs/reference/episode.md#recovery,
docs/reference/episode.md#doubts).

1. Nothing is changed before the lock is held. A held lock means that the run is alive: it is refused at once, with
   the name of the holder. A file system without locks is refused.
2. Sealed episodes are never appended to. Links, FIFOs, files with a second name and foreign files are refused.
3. Every line must fit its chain, and every blob that it names must exist. Torn bytes are first kept in `events.torn`,
   then cut off. Damage that no crash leaves is refused, and nothing is changed.
4. A crash during recovery loses nothing either: bytes in `events.torn` that no `run.recovered` counts were cut, or
   were about to be.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Final, Unpack

from cogcli.base.canonical import digest
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.file_lock import lock
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Draft, Event, draft_of
from cogcli.declarations.events import RunRecovered
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode import blobs, refusals
from cogcli.episode.checkpoint import (
    Checkpoint,
    TrustedEvents,
    compare,
    places_of,
    read_trusted_checkpoints,
)
from cogcli.episode.damage import Damage, find_damage, identify_lost, read_log_from, write_newline
from cogcli.episode.disk_reserve import describe_holder
from cogcli.episode.folder import TEMPORARY, Folder, disk_refusal
from cogcli.episode.journal import End, Journal, JournalPorts
from cogcli.episode.large_values import BlobReader
from cogcli.episode.layout import BLOBS, EVENTS, MANIFEST, TORN, Finding, is_renamed
from cogcli.episode.log_lines import (
    FIRST,
    LATEST,
    Lines,
    NamedRules,
    first_line,
    is_foreign_line,
    is_torn,
    parse_line,
    rules_of_line,
)
from cogcli.episode.log_reader import event_of
from cogcli.episode.verify.files import EpisodeFiles
from cogcli.episode.verify.lines import LineCheck
from cogcli.episode.waypoint_reading import LogFromWaypoint, read_from_waypoint

_TRIES: Final = 10
_WAIT: Final = 0.01
"""Readers hold the lock for a moment, to see whether a run is alive."""
_DAMAGED: Final = "its last line was damaged"
_MAX_TORN: Final = 1 << 30


class ReopenedEpisode(NamedTuple):
    """A reopened episode: its open journal, all its events with `run.recovered`, and the number of truncated bytes."""

    journal: Journal
    events: list[Event]
    """Without those that the waypoint leaves out, if the log was read from there."""
    dropped_bytes: int
    from_waypoint: LogFromWaypoint | None = None


class _Log(NamedTuple):
    events: list[Event]
    end: End
    tail: bytes
    vouched: TrustedEvents
    from_waypoint: LogFromWaypoint | None = None


def reopen(
    directory: Path, *, mend: bool = False, by_waypoint: bool = False, shared: bool = False,
    **ports: Unpack[JournalPorts],
) -> ReopenedEpisode:  # fmt: skip
    """Lock and recover an unsealed episode; with `mend` also after damage to its newest line.

    With `by_waypoint`, read it from its waypoint on if the waypoint is usable. `shared`: the group may use the written
    files. See `Store.reopen`.
    """
    with ExitStack() as opened:
        folder = opened.enter_context(refusals.open_episode(directory))
        folder.shared = shared
        try:
            _require_folder(folder)
            _require_ours(folder)
            _require_unsealed(folder)
            try:
                fd = folder.open_file(EVENTS, appending=True)
            except UnreadableFile as error:
                raise refusals.no_log_error(folder, error) from error
            opened.callback(os.close, fd)
            _lock_log(folder, fd)
            _require_unsealed(folder)
            _require_plain_files(folder)
            known = read_trusted_checkpoints(folder, ports.get("owner"), ports.get("sign"))
            log = _read_by_waypoint(folder, known) if by_waypoint and not mend else None
            if log is None:
                log = (
                    _read_repaired_log(folder, known)
                    if mend
                    else _read_undamaged_log(folder, known)
                )
            ids = {"episode_id": log.events[0].episode_id, "trace_id": log.events[0].trace_id or ""}
            journal = Journal(folder, **ids, **ports, resumed=(fd, log.end), vouched=log.vouched)
            opened.pop_all()  # now the journal closes both
            opened.callback(journal.close)
            announced = frozenset(
                record.following for record in known if record.episode_id == ids["episode_id"]
            )
            reopened = _recover_log(journal, log, announced)
        except OSError as error:
            raise disk_refusal(directory, error) from error
        opened.pop_all()
        return reopened


# -- what is refused ---------------------------------------------------------------------------------------------------


def _require_ours(folder: Folder) -> None:
    """Raise an error for another tool's log, which lacks the data for a resume. An unreadable log is refused later."""
    try:
        first = first_line(folder)
    except UnreadableFile:
        return
    if is_foreign_line(first):
        raise refusals.another_tools(folder.path, event_of(parse_line(first)))


def _require_folder(folder: Folder) -> None:
    """Raise an error for an episode in an archive, where nothing can be written."""
    if folder.archive is not None:
        raise UsageError(
            "episode.archived",
            f"`{folder.path.name}` is finished and archived: nothing is written to it",
            found=f"it is in `{folder.archive.name}`",
            hint="repeat it as a new episode, or write its folder first",
            next=(
                f"cogcli rerun {folder.path.name}",
                f"cogcli episodes extract {folder.path.name}",
            ),
        )


def _require_unsealed(folder: Folder) -> None:
    if MANIFEST in folder.entries():
        raise UsageError(
            "episode.sealed",
            f"`{folder.path.name}` is finished and sealed: nothing is appended to it",
            hint="repeat it, or a part of it, as a new episode",
            next=(f"cogcli rerun {folder.path.name}",),
        )


def _require_plain_files(folder: Folder) -> None:
    """Raise an error if the directory has entries other than files of an episode, each with one name."""
    for finding in EpisodeFiles(folder).findings:
        if finding.severity == "error":
            raise refusals.unreadable(folder.path, finding.message, file=finding.file)


def _lock_log(folder: Folder, fd: int) -> None:
    for left in reversed(range(_TRIES)):
        try:
            lock(fd, wait=False)
        except BlockingIOError as error:
            if not left:
                raise UnusableEnvironment(
                    "episode.busy",
                    f"`{folder.path.name}` is held by {describe_holder(folder)}",
                    hint="its run is alive: wait for it to end",
                    next=(f"cogcli trace {folder.path.name} --follow",),
                ) from error
            time.sleep(_WAIT)
        except OSError as error:
            raise UnusableEnvironment(
                "env.runs-dir",
                f"`{folder.path / EVENTS}` cannot be locked: {error.strerror or error}",
                hint="runs need a file system with locks; copy the episode to one",
            ) from error
        else:
            return


# -- reading -----------------------------------------------------------------------------------------------------------


def _read_by_waypoint(folder: Folder, known: list[Checkpoint]) -> _Log | None:
    """Read the log from its waypoint on. None if it has to be read as a whole."""
    found = read_from_waypoint(folder, known)
    if found is None or is_renamed(folder.path.name, found.events[0].episode_id):
        return None
    first, last = found.events[0], found.events[-1]
    check, prior = found.check, last.prev or ""
    end = End(
        check.count, check.head, last.timestamp, found.size, prior, first.run_id or "", found.rules
    )
    tail = read_log_from(folder, found.size)
    return _Log(found.events, end, tail, found.vouched, found)


def _read_undamaged_log(folder: Folder, known: list[Checkpoint]) -> _Log:
    """Read the log. If its damage can be repaired, the raised error suggests the command."""
    try:
        return _read_log(folder, known)
    except UnusableEnvironment as error:
        damage = find_damage(folder)
        if damage is not None and damage.can_be_mended:
            error.next = (f"cogcli verify {quote(str(folder.path))} --repair",)
        raise


def _read_repaired_log(folder: Folder, known: list[Checkpoint]) -> _Log:
    """Read the log without its damaged newest line; restore altered newlines. Raise UnusableEnvironment, OSError."""
    while (damage := find_damage(folder)) and damage.corrupted_newline >= 0:
        write_newline(folder, damage.corrupted_newline)
    if damage is None or damage.number == 1:
        return _read_log(folder, known)
    if not damage.is_last:
        why = "was altered, and lines follow it: only a last line can be moved"
        raise _bad_line(folder, damage.number, why)
    return _read_log(folder, known, damage)


def _read_log(folder: Folder, known: list[Checkpoint], lost: Damage | None = None) -> _Log:
    """Read the committed events, checking each line against its neighbors, and the bytes after them."""
    try:
        log = _read_lines(folder, known, lost)
    except UnreadableFile as error:
        raise refusals.unreadable(folder.path, error.message, file=EVENTS) from error
    if lost and identify_lost(lost.rest, (log.end.head,)) is None:
        raise _bad_line(folder, lost.number, "was altered beyond recognition")
    if is_renamed(folder.path.name, log.events[0].episode_id):
        raise refusals.renamed_folder_error(folder.path, log.events[0].episode_id)
    return log


def _read_lines(folder: Folder, known: list[Checkpoint], lost: Damage | None) -> _Log:
    events: list[Event] = []
    size, rules = 0, FIRST
    check, lines = LineCheck(), Lines(folder.chunks(EVENTS))
    heads: dict[int, str] = {}
    places = places_of(known)
    with closing(blobs.BlobFolder(folder)) as kept:
        reader = BlobReader(lambda name: _read_blob(folder, kept, name, check.count))
        for number, raw, value in islice(lines.objects(), lost.number - 1 if lost else None):
            if number == 1:
                rules = _rules_version(folder, value)
            _refuse_first(folder, check.check(number, raw, value))
            if not check.chained:
                raise _bad_line(
                    folder, number, "another tool's, without a chain: nothing can follow it"
                )
            events.append(event_of(value, raw, reader, rules))
            if number in places:
                heads[number] = check.head
            size += len(raw) + 1
    if lines.refused and not lines.torn:
        raise _bad_line(folder, lines.refused.number, lines.refused.why)
    _refuse_first(folder, check.end())
    if not events:
        raise refusals.no_beginning_error(folder.path, None, held=True)
    first, last = events[0], events[-1]
    prior, root = last.prev or "", first.run_id or ""
    end = End(check.count, check.head, last.timestamp, size, prior, root, rules)
    vouched = compare(known, first.episode_id, heads)
    return _Log(events, end, read_log_from(folder, size), vouched)


def _read_blob(folder: Folder, kept: blobs.BlobFolder, name: str, number: int) -> bytes:
    """Return a blob that line `number` names. Raise UnusableEnvironment if it does not exist."""
    data = kept.get(name)
    if data is None:
        raise _bad_line(folder, number, f"names {name or 'too much'}, which is not there")
    return data


class _FirstLineOfRun(Record):
    """The members of a log's first line that say how to continue it."""

    phase: str = ""
    payload: NamedRules


def _rules_version(folder: Folder, first: Json) -> int:
    """Return the version of a log's rules, from its first line. Raise UnusableEnvironment if the line does not start a
    run, or if its rules are newer than this program.
    """
    named = read_record(_FirstLineOfRun, first)
    if named.phase != "start":
        raise refusals.no_beginning_error(folder.path, event_of(first))
    if named.payload.rules > LATEST:
        raise _bad_line(
            folder, 1, f"follows rules {named.payload.rules}, of a later version of cogcli"
        )
    return rules_of_line(first)


def _refuse_first(folder: Folder, findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.severity == "error":
            raise _bad_line(folder, finding.line, finding.message)


def _bad_line(folder: Folder, number: int, why: str) -> UnusableEnvironment:
    return refusals.unreadable(folder.path, why, file=EVENTS, line=number)


# -- recovering --------------------------------------------------------------------------------------------------------


def _recover_log(journal: Journal, log: _Log, announced: frozenset[str]) -> ReopenedEpisode:
    """Remove temporary files, truncate uncommitted bytes, and record the truncation. Raise OSError.

    `announced` are the hashes of the lines that known records announce. Any other lost line may be forged, so nothing
    vouches for the event that repeats it.
    """
    journal.folder.remove_files(TEMPORARY)
    with suppress(FileNotFoundError, NotADirectoryError), journal.folder.sub(BLOBS) as kept:
        kept.remove_files(TEMPORARY)
    dropped = _truncate_tail(journal, log)
    if not dropped:
        return ReopenedEpisode(journal, log.events, 0, log.from_waypoint)
    last = log.events[-1]
    # Whether a whole line was cut, not only the rest of an unfinished write.
    damaged = not all(map(is_torn, dropped.split(b"\n")[:-1]))
    marks = _damage_marks(journal.folder, log, dropped) if damaged else ()
    marked = [
        journal.append_derived(draft, vouched=digest(line) in announced) for draft, line in marks
    ]
    payload = RunRecovered(
        reason=_DAMAGED if damaged else "the process died while it wrote its last line",
        checkpoint={"offset": log.end.size, "head": log.end.head},
        dropped_bytes=len(dropped),
    )
    draft = draft_of(payload, log.end.root, caused_by=last.id)
    events = [*log.events, *marked, journal.append(draft, durable=True)]
    return ReopenedEpisode(journal, events, len(dropped), log.from_waypoint)


def _damage_marks(folder: Folder, log: _Log, dropped: bytes) -> Iterator[tuple[Draft, bytes]]:
    """Yield the damaged intent and its line, unless it was already repeated, because its call may have happened."""
    last = log.events[-1]
    lost = identify_lost(dropped, (log.end.head, last.prev))
    if lost is None or lost.intent is None:
        return
    with closing(blobs.BlobFolder(folder)) as kept:
        was = event_of(lost.intent, lost.line, BlobReader(kept.get), log.end.rules)
    if (was.event_type, was.run_id, was.step_id) != (last.event_type, last.run_id, last.step_id):
        run_id = was.run_id or log.end.root
        draft = Draft(
            was.event_type or "", was.phase, run_id, was.payload, was.step_id, was.agent_id, last.id
        )
        yield draft, lost.line


def _truncate_tail(journal: Journal, log: _Log) -> bytes:
    """Truncate the torn tail, after saving it in `events.torn`. Return the bytes truncated since
    the last `run.recovered` (rule 4)."""
    try:
        kept = journal.folder.read(TORN, limit=_MAX_TORN)
    except UnreadableFile as error:
        if error.reason != "missing":
            raise refusals.unreadable(journal.directory, error.message, file=TORN) from error
        kept = b""
    recorded = sum(map(_dropped_bytes, log.events))
    if log.tail:
        if kept[recorded:] != log.tail:
            kept += log.tail
            journal.replace(TORN, kept)
        journal.cut(log.end.size)
    return kept[recorded:]


def _dropped_bytes(event: Event) -> int:
    """Return the number of truncated bytes that an event records."""
    if event.event_type != RunRecovered.event.name:
        return 0
    return read_record(RunRecovered, event.payload).dropped_bytes or 0
