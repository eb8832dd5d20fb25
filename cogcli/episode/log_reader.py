"""Reading a log: ours or another tool's, finished or being written.

1. Lines are read as `log_lines` says. Reading also stops before a line that is JSON but no event, or does not fit its
   checksum, even at the end: no torn write leaves one.
2. Only the fields of the shared format are expected. A member of a wrong type counts as absent; unknown
   phases and types are kept.
3. Blobs are resolved: folds see values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from cogcli.core.files import FileRefused
from cogcli.episode import blobs
from cogcli.episode.findings import Finding
from cogcli.episode.folder import Folder
from cogcli.episode.large_values import expand
from cogcli.episode.layout import EVENTS
from cogcli.episode.log_lines import Lines
from cogcli.episode.log_rules import FIRST, rules_of
from cogcli.episode.refusals import no_log_error, open_episode
from cogcli.events.checksum import Checksums
from cogcli.events.envelope import Event, from_json


class EventLog:
    """The events of an episode's directory, by path or open, or of a log's bytes, then without blobs: an iterable of
    (line number, event).

    Once iterated: `torn` bytes were left out, `stopped` says why it ended, `unresolved` counts the blobs that are
    missing, altered or cannot be read. Iterating raises EnvironmentRefusal `episode.unreadable` where there is no log
    to open.
    """

    def __init__(self, source: Folder | Path | bytes) -> None:
        self._source = source
        self.torn = 0
        self.stopped: Finding | None = None
        self.unresolved = 0

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        source = self._source
        if isinstance(source, bytes):
            yield from self._events([source], no_blob)
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
        lines, checksums, rules = Lines(chunks), Checksums(), FIRST
        for number, line, value in lines.objects():
            if problem := checksums.problem(line, value):
                self.stopped = _bad_line(number, problem[1])
                return
            if number == 1:
                rules = rules_of(value.get("payload"))
            yield number, event_of(value, line, get_blob, rules)
        self.torn = lines.torn
        if lines.refused and not lines.torn:
            self.stopped = _bad_line(lines.refused.number, lines.refused.why)


def _bad_line(number: int, why: str) -> Finding:
    return Finding("line.broken", "error", EVENTS, number, f"no event can be read here: {why}")


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


def no_blob(digest: str) -> None:
    """A `Get` for a log that is read without its blobs."""
