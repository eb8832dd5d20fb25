"""The events of a log of any tool, finished or being written.

1. Lines are read by the rules of `log_lines`. Reading also stops before a line that is JSON but not an event, or does
   not fit its checksum, even at the end: no torn write leaves one.
2. Only the fields of the shared format are required. A member of a wrong type counts as absent; unknown phases and
   types are kept.
3. Blobs are resolved: folds see values.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import CogcliError
from cogcli.base.files import UnreadableFile
from cogcli.declarations.envelope import DEFAULTS, TYPES, Event, from_json
from cogcli.declarations.value_types import Json
from cogcli.episode import blobs, refusals
from cogcli.episode.folder import Folder
from cogcli.episode.large_values import BlobReader
from cogcli.episode.layout import EVENTS, Finding, is_renamed
from cogcli.episode.log_lines import FIRST, Lines, rules_of_line

if TYPE_CHECKING:
    from pathlib import Path

Warn = Callable[[CogcliError], None]
"""Takes the warning about a damaged or renamed log."""


class EventLog:
    """The events of an episode as an iterable of (line number, event). The source is a path, an open folder, or the
    bytes of a log (then without blobs).

    With `wait` a growing log is followed until no run holds its lock: `wait` is called whenever the log has no new
    events. A run that pauses, ends or dies releases the lock. After iteration, `torn` is the number of omitted bytes
    and `stopped` the reason of an early end. `unresolved` counts the blobs that are missing, altered or unreadable.
    Iterating raises UnusableEnvironment `episode.unreadable` without a log.
    """

    def __init__(
        self, source: Folder | Path | bytes, wait: Callable[[], None] | None = None
    ) -> None:
        self._source = source
        self._wait = wait
        self.torn = 0
        self.stopped: Finding | None = None
        self.unresolved = 0

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        source = self._source
        if isinstance(source, bytes):
            yield from self._iterate_events([source], BlobReader(no_blob))
        elif isinstance(source, Folder):
            yield from self._iterate_folder(source)
        else:
            with refusals.open_episode(source) as folder:
                yield from self._iterate_folder(folder)

    def _iterate_folder(self, folder: Folder) -> Iterator[tuple[int, Event]]:
        with closing(blobs.BlobFolder(folder)) as kept:

            def get(digest: str) -> bytes | None:
                data = kept.get(digest)
                self.unresolved += data is None
                return data

            try:
                yield from self._iterate_events(folder.chunks(EVENTS, self._wait), BlobReader(get))
            except UnreadableFile as error:
                raise refusals.no_log_error(folder, error) from error

    def _iterate_events(
        self, chunks: Iterable[bytes], reader: BlobReader
    ) -> Iterator[tuple[int, Event]]:
        lines, rules = Lines(chunks), FIRST
        for batch in lines.batches(sound=True):
            if batch[0][0] == 1:
                rules = rules_of_line(batch[0][2])
            blobs_of_batch = reader if len(batch) == 1 else None  # no other line names a blob
            yield from [
                (number, event_of(value, line, blobs_of_batch, rules))
                for number, line, value in batch
            ]
        self.torn = lines.torn
        if lines.refused and not lines.torn:
            why = f"no event can be read here: {lines.refused.why}"
            self.stopped = Finding("line.broken", "error", EVENTS, lines.refused.number, why)


def iterate_events(
    directory: Path,
    warn: Warn | None = None,
    *,
    whole: bool = False,
    wait: Callable[[], None] | None = None,
) -> Generator[Event, None, None]:
    """Yield the events of an episode up to the end of its log or its first damaged line. `wait` is
    as in `EventLog`.

    A damaged line, or a first event other than `run.started`, is a warning. With `whole` it is an error, because the
    events after the damage are unknown; so is an event without one of its blobs, which has other values than it had.
    Raise UnusableEnvironment `episode.unreadable`, also for a log without events.
    """
    log, first = EventLog(directory, wait), None
    for number, event in log:
        if first is None:
            first = event
            _require_beginning(directory, event, warn, whole)
        if whole and log.unresolved:
            text = f"a large value of {event.event_type} is missing or altered"
            raise refusals.unreadable(directory, text, file=EVENTS, line=number)
        yield event
    if log.stopped is not None:
        broken = refusals.unreadable(
            directory, log.stopped.message, file=EVENTS, line=log.stopped.line
        )
        if first is None or whole:
            raise broken
        if warn:
            broken.message += "; only the events before it are read"
            warn(broken)
    elif first is None:
        raise refusals.no_beginning_error(directory, None)


def _require_beginning(directory: Path, first: Event, warn: Warn | None, whole: bool) -> None:
    if not first.phase:
        raise refusals.unreadable(
            directory, "no event of a run: it has no phase", file=EVENTS, line=1
        )
    if first.phase != "start":
        headless = refusals.no_beginning_error(directory, first)
        if whole:
            raise headless
        if warn:
            warn(headless)
    if warn and is_renamed(directory.name, first.episode_id):
        warn(refusals.renamed_folder_error(directory, first.episode_id))


# -- one event ---------------------------------------------------------------------------------------------------------


def no_blob(digest: str) -> None:
    """Return None for any digest. This is the `Get` for a log that is read without its blobs."""


def event_of(
    value: Json, line: bytes = b"", reader: BlobReader | None = None, rules: int = FIRST
) -> Event:
    """Return the event of a parsed line of a log that follows `rules`, without members of a wrong type.

    Blob references are resolved only if both `line`, the text that was parsed, and `reader` are given.
    """
    event = from_json(value)
    # A log has few kinds of lines, so most types were checked before.
    if (types := tuple(map(type, event))) not in _sound:
        wrong: Json = {
            name: DEFAULTS.get(name)
            for name, found in zip(Event._fields, types, strict=True)
            if name != "payload" and found not in (TYPES[name], type(DEFAULTS.get(name)))
        }
        event = event._replace(**wrong)
        if not wrong:
            _sound.add(types)
    if reader is not None and blobs.may_refer(line) and type(event.payload) is dict:
        old = rules <= FIRST
        payload = event.payload
        payload = (
            blobs.resolve(payload, reader.get) if old else reader.expand_payload(payload, rules)
        )
        event = event._replace(payload=payload)
    return event


_sound: Final[set[tuple[type, ...]]] = set()
