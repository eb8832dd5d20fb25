"""Reading a log: ours or another tool's, finished or being written.

1. A line without its newline is not committed: whoever reads a run in progress sees a prefix.
2. A last line that is no JSON is torn as well; one anywhere else is a finding, and reading stops before it. So does it
   before a line that is JSON but no event, or does not fit its checksum, even at the end: no torn write leaves one.
3. Only the fields of the shared format are expected. A member of a wrong type counts as absent; unknown
   phases and types are kept.
4. Blobs are resolved: folds see values.
5. A log whose first line has neither `seq` nor `prev` is another tool's. Its last line needs no newline: whole JSON is
   committed there, since no torn write leaves it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import orjson

from cogcli.core.errors import EnvironmentRefusal
from cogcli.core.files import FileRefused
from cogcli.core.strict_json import JsonRefused
from cogcli.core.strict_json import loads as strict_loads
from cogcli.episode import blobs
from cogcli.episode.findings import Finding
from cogcli.episode.folder import TEMPORARY, Folder
from cogcli.episode.large_values import expand
from cogcli.episode.layout import BALLAST, BLOBS, EVENTS, LEARN
from cogcli.episode.lock import is_locked
from cogcli.episode.rules import FIRST, rules_of
from cogcli.events.checksum import Checksums, is_like_whole, valid_prefix
from cogcli.events.envelope import Event, from_json

NO_NEWLINE: Final = "what ends it is no newline: it was damaged"
LONGEST_LINE: Final = 8 * 1024 * 1024
"""Our own lines end at 1 MiB; other tools may not know that limit."""

_SKILL: Final = re.compile(rb'"skill":\{"id":"([a-z0-9_]+(?:\.[a-z0-9_]+)+)"')


class Lines:
    """The committed lines of a stream of bytes, numbered from 1, without their newlines.

    Once iterated: `torn` is what follows the last newline, `too_long` the number of a line that stopped the reading.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.torn = b""
        self.too_long = 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        first = rest = b""
        number = 0
        for chunk in self._chunks:
            *whole, rest = (rest + chunk if rest else chunk).split(b"\n")
            for line in whole:
                number += 1
                first = first or line
                yield number, line
            if len(rest) > LONGEST_LINE:
                self.too_long = number + 1
                return
        if rest and is_foreign_line(first or rest) and is_foreign_line(rest):
            yield number + 1, rest
            rest = b""
        self.torn = rest


def is_foreign_line(line: bytes) -> bool:
    """Whether a line is a whole event of another tool's log."""
    try:
        value = parse_line(line)
    except JsonRefused:
        return False
    return is_unchained(value)


def is_unchained(first: dict[str, Any]) -> bool:
    """Whether a log with this first line is another tool's."""
    return "seq" not in first and "prev" not in first


class EventLog:
    """An iterable of (line number, event). Once iterated: `torn` bytes were left out, `stopped` says why it ended,
    `unresolved` counts the blobs that are missing, altered or cannot be read.

    Iterating raises EnvironmentRefusal `episode.unreadable` where there is no log to open.
    """

    def __init__(self, source: Folder | Path | bytes) -> None:
        self._source = source
        self._lines = Lines(())
        self.torn = 0
        self.stopped: Finding | None = None
        self.unresolved = 0

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        source = self._source
        if isinstance(source, bytes):
            yield from self._events([source], _no_blob)
        elif isinstance(source, Path):
            with open_episode(source) as folder:
                yield from self._in(folder)
        else:
            yield from self._in(source)

    def _in(self, folder: Folder) -> Iterator[tuple[int, Event]]:
        with closing(blobs.BlobFolder(folder)) as kept:

            def get(digest: str) -> bytes | None:
                data = kept.get(digest)
                self.unresolved += data is None
                return data

            try:
                yield from self._events(folder.chunks(EVENTS), get)
            except FileRefused as error:
                raise no_log_error(folder, error) from error

    def _events(self, chunks: Iterable[bytes], get_blob: blobs.Get) -> Iterator[tuple[int, Event]]:
        self._lines = Lines(chunks)
        lines = iter(self._lines)
        checksums = Checksums()
        number = 0
        rules = FIRST
        for number, line in lines:
            try:
                value = parse_line(line)
            except JsonRefused as error:
                self._end(number, line, lines, error.message)
                return
            if problem := checksums.problem(line, value):
                self.stopped = _bad_line(number, problem[1])
                return
            if number == 1:
                rules = rules_of(value.get("payload"))
            yield number, event_of(value, line, get_blob, rules)
        self._look_at_tail(number + 1)

    def _look_at_tail(self, number: int) -> None:
        if self._lines.too_long:
            self.stopped = _bad_line(self._lines.too_long, f"longer than {LONGEST_LINE:,} bytes")
        elif is_torn_tail(self._lines.torn):
            self.torn = len(self._lines.torn)
        else:
            self.stopped = _bad_line(number, NO_NEWLINE)

    def _end(self, number: int, line: bytes, rest: Iterator[tuple[int, bytes]], why: str) -> None:
        more = next(rest, None) is not None
        if more or self._lines.too_long or not is_torn(line):
            self.stopped = _bad_line(number, why)
        else:
            self.torn = len(line) + 1 + len(self._lines.torn)


def _bad_line(number: int, why: str) -> Finding:
    return Finding("line.broken", "error", EVENTS, number, f"no event can be read here: {why}")


def is_torn(line: bytes) -> bool:
    """Whether a refused last line may be what a torn write left: JSON that was never an event is none, nor is what
    ends as a whole line does."""
    try:
        orjson.loads(line)
    except ValueError:
        return not is_like_whole(line)
    return False


def is_torn_tail(tail: bytes) -> bool:
    """Whether what follows the last newline may be what a torn write left: a beginning of a line, and NULs where blocks
    never came to the disk. A whole line, and then something else, had a newline that was altered."""
    whole = valid_prefix(tail)
    return not whole or not tail[whole:].strip(b"\0")


def parse_line(line: bytes) -> dict[str, Any]:
    """The object of one line, strictly. Raises JsonRefused.

    A line that we wrote gives the same bytes again, which no repeated key or odd number survives; any other line
    is read by the strict parser.
    """
    try:
        value = orjson.loads(line)
        known = orjson.dumps(value) == line
    except (ValueError, TypeError):
        known = False
    if not known:
        value = strict_loads(line, max_bytes=LONGEST_LINE, max_nodes=1_000_000)
    if type(value) is not dict:
        raise JsonRefused("json.type", "an event is an object")
    return value


def event_of(value: dict[str, Any], line: bytes, get_blob: blobs.Get, rules: int) -> Event:
    """The event of a parsed line of a log that follows `rules`: members of a wrong type left out, blobs resolved."""
    event = from_json(value)
    if not _well_typed(event):
        event = _tidied(event)
    if blobs.MARK in line and type(event.payload) is dict:
        resolve = expand if rules > FIRST else blobs.resolve
        event = event._replace(payload=resolve(event.payload, get_blob))
    return event


def _well_typed(event: Event) -> bool:
    return (
        type(event.id) is str
        and type(event.timestamp) is str
        and type(event.episode_id) is str
        and type(event.phase) is str
        and (event.event_type is None or type(event.event_type) is str)
        and (event.run_id is None or type(event.run_id) is str)
        and (event.trace_id is None or type(event.trace_id) is str)
        and (event.step_id is None or type(event.step_id) is str)
        and (event.agent_id is None or type(event.agent_id) is str)
        and (event.caused_by is None or type(event.caused_by) is str)
        and (event.metrics is None or type(event.metrics) is dict)
        and (event.seq is None or type(event.seq) is int)
        and type(event.evidence_ids) in (list, tuple)
        and (event.prev is None or type(event.prev) is str)
    )


_TEXTS: Final = ("event_type", "run_id", "trace_id", "step_id", "agent_id", "caused_by", "prev", "clock")


def _tidied(event: Event) -> Event:
    fixed: dict[str, Any] = {
        name: value if type(value := getattr(event, name)) is str else ""
        for name in ("id", "timestamp", "episode_id", "phase")
    }
    fixed |= {name: value if type(value := getattr(event, name)) is str else None for name in _TEXTS}
    fixed["seq"] = event.seq if type(event.seq) is int else None
    fixed["metrics"] = event.metrics if type(event.metrics) is dict else None
    fixed["evidence_ids"] = event.evidence_ids if type(event.evidence_ids) is list else ()
    return event._replace(**fixed)


def read_events(source: Folder | Path | bytes) -> EventLog:
    """The events of an episode's directory, by path or open, or of a log's bytes (then without blobs)."""
    return EventLog(source)


def _no_blob(digest: str) -> None:
    return None


def open_episode(path: Path) -> Folder:
    """An episode's directory. Raises EnvironmentRefusal `episode.unreadable`."""
    try:
        return Folder.open(path)
    except OSError as error:
        raise unreadable(path, error.strerror or "cannot be opened") from error


def unreadable(path: Path, why: str, *, file: str = "", line: int = 0) -> EnvironmentRefusal:
    """The error for a directory that is no readable episode; `file` of it is to blame, at `line` if that is known."""
    if not file:
        return EnvironmentRefusal("episode.unreadable", f"`{path}`: {why}", next=("cogcli ls",))
    from shlex import quote

    return EnvironmentRefusal(
        "episode.unreadable",
        f"`{path.name}`: {file}{f':{line}' if line else ''}: {why}",
        file=str(path / file),
        line=line,
        next=(f"cogcli verify {quote(str(path))}",),
    )


def no_log_error(folder: Folder, refused: FileRefused) -> EnvironmentRefusal:
    """The error for a log that cannot be opened."""
    if refused.reason == "missing" and (began_nothing := nothing_began_error(folder)):
        return began_nothing
    return unreadable(folder.path, refused.message, file=EVENTS)


def nothing_began_error(folder: Folder, *, held: bool = False) -> EnvironmentRefusal | None:
    """The error for a run that was stopped before its first event; None where there is more, or the run is alive.

    `held`: the caller holds the lock of the log itself.
    """
    for name, found in folder.entries().items():
        before = name in (EVENTS, BLOBS, BALLAST) or name.startswith(TEMPORARY)
        if not before and not (name == LEARN and not found.st_size):
            return None
    if not held and is_locked(folder):
        return None
    try:
        with closing(folder.chunks(EVENTS)) as chunks:
            begun = next(chunks, b"")
    except FileRefused as error:
        if error.reason != "missing":
            return None
        begun = b""
    if b"\n" in begun:
        return None
    skill = _SKILL.search(begun)
    again = f"run {skill[1].decode()}" if skill else "skills ls"
    return EnvironmentRefusal(
        "episode.unreadable",
        f"`{folder.path.name}`: nothing began before the run was stopped: run it again",
        hint="no step was begun, no service was called",
        next=(f"cogcli {again}",),
    )


_ASKED: Final = {
    "skill": "the skill", "inputs": "its inputs", "options": "the options", "selection": "the bindings chosen",
    "pins": "the pinned specs",
}  # fmt: skip
"""What the start event of ours tells beside the task, and a log needs that is gone on with."""


def another_tools(path: Path, first: Event) -> EnvironmentRefusal:
    """The error for another tool's episode that somebody wants to go on with, or to run again."""
    from shlex import quote

    payload = first.payload if type(first.payload) is dict else {}
    lacking = [told for name, told in _ASKED.items() if type(payload.get(name)) is not dict]
    return EnvironmentRefusal(
        "episode.foreign",
        f"`{path.name}` is another tool's, without a chain: it can be looked at, not run",
        expected=f"a log that tells {', '.join(_ASKED.values())}, each line naming the one before it",
        found=f"no `seq` and `prev`; nothing of {', '.join(lacking)}" if lacking else "no `seq` and `prev`",
        hint="run a skill of your own with what it was asked",
        file=str(path / EVENTS),
        line=1,
        next=(f"cogcli trace {quote(str(path))}",),
    )


def renamed_folder_error(path: Path, episode_id: str) -> EnvironmentRefusal:
    """The error for a folder that bears another episode's id."""
    from shlex import quote

    return EnvironmentRefusal(
        "episode.renamed",
        f"the folder is named `{path.name}`, what it holds is `{episode_id:.80}`",
        hint="give each episode its own name back",
        next=(f"cogcli verify {quote(str(path))}",),
    )


def no_beginning_error(path: Path, first: Event | None, *, held: bool = False) -> EnvironmentRefusal:
    """The error for a log that does not say what was asked: `first` is no start of a run, or there is no event."""
    if first is None:
        with open_episode(path) as folder:
            return nothing_began_error(folder, held=held) or unreadable(
                path, "no event was committed", file=EVENTS
            )
    kind = first.event_type or first.phase or "no event"
    error = unreadable(path, "the log does not begin with the start of a run: its first lines are missing",
                       file=EVENTS, line=1)  # fmt: skip
    error.expected, error.found = "run.started", kind if first.seq is None else f"{kind}, seq {first.seq}"
    return error
