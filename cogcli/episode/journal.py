"""The journal writes the log (docs/reference/episode.md#writing), also on a full disk
(docs/reference/episode.md#disk-full). Rules of the code alone:

1. Under durability `process` the caller passes `durable` where the page requires a sync.
2. The first sync also puts the directory and its own entry on disk.
3. After a failed write or sync every later append is refused with the same error.
4. A value that is secret only by the name of its key is masked in the log alone. The returned event holds it, so that
   the run continues with its values.
5. Large values are in their blobs before the line that names them, and are synced with it, not before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NoReturn, NotRequired, TypedDict

import orjson

from cogcli.base.canonical import digest
from cogcli.base.errors import InternalError, UnusableEnvironment
from cogcli.base.file_lock import lock
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.base.step_path import StepPath
from cogcli.base.system import Clock, IdSource
from cogcli.declarations.checksum import add_sum
from cogcli.declarations.envelope import Draft, Event, mask_payload, to_json
from cogcli.declarations.event_line import EventLine
from cogcli.declarations.options import DURABILITIES
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.shared_events import RecordedPermissions
from cogcli.declarations.value_types import Json
from cogcli.episode.agreement import scan_log
from cogcli.episode.blobs import MAX_LINE, SPILL, BlobFolder, may_refer, spill
from cogcli.episode.checkpoint import NOTHING, CheckpointWriter, EventRange, TrustedEvents
from cogcli.episode.disk_reserve import FULL, DiskReserve
from cogcli.episode.folder import Folder, disk_errors, disk_refusal, fdatasync, write_all
from cogcli.episode.large_values import SMALL, ValueShortener
from cogcli.episode.layout import BALLAST, BLOBS, CHECKPOINT, EVENTS, LEARN, WAYPOINT
from cogcli.episode.log_lines import FIRST, LATEST, first_link
from cogcli.episode.log_reader import EventLog
from cogcli.episode.refusals import altered_error

if TYPE_CHECKING:
    from pathlib import Path

if TYPE_CHECKING:  # signing is for those who sign
    from cogcli.episode.signing import Sign

_VOUCHED_FIRST: Final = frozenset(("start", "governance", "runtime"))
"""Phases whose events may carry a permission, or begin and end a period in which a process writes. A checkpoint
announces each, and each event of a gate, so that no crash leaves an unvouched permission in the log."""
_CHANGED: Final = "another process changed the file while the run wrote it"
_CHECKPOINT_EVERY: Final = 16
"""A killed run has at most so many events that no checkpoint covers. A record for each would slow a step by 3 %."""
_STANDING_LEVELS: Final = frozenset(("elevated", "privileged"))


class _PolicyPermissions(Record):
    """The policy flags of a run that permit calls."""

    shadow: bool = False


class _StartPermissions(Record):
    """The members of a run's first event that permit calls."""

    options: RecordedPermissions
    policy: _PolicyPermissions


def has_standing_permissions(started: Mapping[str, Any]) -> bool:
    """Return whether the first event of a run permits later calls with any inputs."""
    start = read_record(_StartPermissions, started)
    has_level = start.options.trust_level in _STANDING_LEVELS
    return has_level or bool(start.options.confirmed_capabilities) or start.policy.shadow


def remove_unbegun(folder: Folder) -> None:
    """Remove an episode without a committed event, as far as possible. The caller holds the lock."""
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileNotFoundError), folder.sub(BLOBS) as kept:
            kept.remove_files()
            folder.remove_directory(BLOBS)
        for name in (EVENTS, LEARN, BALLAST, CHECKPOINT, WAYPOINT):
            with contextlib.suppress(FileNotFoundError):
                folder.unlink(name)
        os.rmdir(folder.place)


class _LogChanged(OSError):
    """Raised if the log on disk differs from the written lines."""


class End(NamedTuple):
    """The end of a log, with the data that the next event needs."""

    sequence: int
    head: str
    timestamp: str
    size: int
    prior: str
    """The hash of the line before the last."""
    root: str
    """The run that the log begins with."""
    rules: int
    """The rules that the log follows (`episode.rules`)."""


class JournalPorts(TypedDict):
    """The ports of a journal, which `store` and `reopen` pass through."""

    clock: Clock
    ids: IdSource
    redactor: Redactor
    durability: NotRequired[str]
    sign: NotRequired[Sign | None]
    owner: NotRequired[bytes | None]


class Journal:
    """The log of one run in progress; only its coordinator appends. An EventSink."""

    def __init__(
        self,
        folder: Folder,
        *,
        episode_id: str,
        trace_id: str,
        resumed: tuple[int, End] | None = None,
        vouched: TrustedEvents = NOTHING,
        clock: Clock,
        ids: IdSource,
        redactor: Redactor,
        durability: str = "process",
        sign: Sign | None = None,
        owner: bytes | None = None,
    ) -> None:
        """Start a log in an empty directory, which the journal then owns. Raise OSError.

        `resumed` is the descriptor of an existing log, opened for appending and locked, with the log's end.
        `vouched` is the result of its checkpoints.
        """
        if durability not in DURABILITIES:
            raise ValueError(f"durability is {' or '.join(DURABILITIES)}")
        self.episode_id = episode_id
        self.trace_id = trace_id
        self.folder = folder
        self.sign = sign
        """The function that signs the manifest; None to leave it unsigned."""
        self._clock, self._ids, self._redactor = clock, ids, redactor
        self._each = durability == "power"
        self._syncs = durability != "none"
        self._blobs = BlobFolder(folder)
        self._shortener: ValueShortener | None = None
        """Replaces large values; None before the first large value."""
        self._failed: OSError | None = None
        self._final = False
        """Whether no event may follow: a sync failed, or a part of a line could not be cut off."""
        self._placed = False
        self._announces_each = False
        self._unused = "", ""
        """The time and the id of an event that `append_line` left to `append`. Empty if they were not read."""
        with contextlib.ExitStack() as opened:
            if resumed is None:
                fd = folder.create(EVENTS, os.O_WRONLY | os.O_APPEND)
                end = End(0, first_link(episode_id), "", 0, "", "", FIRST)
                opened.callback(os.close, fd)
                lock(fd, wait=True)
            else:
                fd, end = resumed
            self._reserve = DiskReserve(folder, anew=resumed is not None)
            if resumed is None:
                os.close(folder.create(LEARN, os.O_WRONLY))
            opened.pop_all()
        self._fd = fd
        (
            self._sequence,
            self._head,
            self._timestamp,
            self._size,
            self._prior,
            self._root,
            self._rules,
        ) = end
        self.vouched = vouched
        """The result of the checkpoints when the log was opened."""
        self._found = end.sequence
        self.found_head = end.head
        """The hash of the last line when the log was opened."""
        self._checkpoints = CheckpointWriter(
            folder, episode_id, owner, sign, vouched=vouched, count=end.sequence
        )

    @property
    def directory(self) -> Path:
        """The directory of the episode."""
        return self.folder.path

    def append(self, draft: Draft, *, durable: bool = False) -> Event:
        """Write an event and return it for the state of the run (rule 4). Raise UnusableEnvironment `env.disk`."""
        version = self._redactor.version  # before the search, because any thread may add a secret
        payload = self._mask_payload(draft.payload, version)
        event = self._append_masked(draft, payload, durable, version)
        if payload is draft.payload:
            return event
        return event._replace(payload=self._redactor.mask_known(draft.payload))

    def _mask_payload(self, payload: Json, version: object) -> Json:
        """Return the payload with secrets masked; the same object if it has none. The elements of a long list are
        searched only once, even if many events contain the list.
        """
        if self._shortener is not None:
            unknown = self._shortener.leave_out_clean(payload, version)
            if unknown is not payload and mask_payload(unknown, self._redactor) is unknown:
                return payload
        return mask_payload(payload, self._redactor)

    def append_derived(self, draft: Draft, *, vouched: bool = True) -> Event:
        """Append a durable event that is derived from the log and therefore already masked. Unless `vouched`, no
        checkpoint vouches for it.
        """
        if not vouched:
            self._checkpoints.exclude_event(self._sequence)
        return self._append_masked(draft, draft.payload, True)

    def append_snapshot(self, draft: Draft) -> Event:
        """Append the evidence of a snapshot like `append_derived`, but without a sync."""
        return self._append_masked(draft, draft.payload, False)

    def _append_masked(
        self, draft: Draft, payload: Json, durable: bool, version: object = None
    ) -> Event:
        """Append an event whose payload contains none of the secrets of this version."""
        last = self._is_last(draft)
        if self._failed is not None and not (last and self._use_reserve()):
            raise self._disk_error(self._failed)
        if not self._sequence and draft.phase == "start":
            payload = self._add_rules(payload)
        event = self._placed_event(draft, payload)
        line = self._event_line(event, version)
        is_announced = durable or self._announces_each or self._is_vouched_first(draft)
        is_first = not self._sequence
        self._commit_line(line, event.timestamp, is_announced=is_announced, last=last)
        if is_first:
            self._root = draft.run_id
        if self._each or (durable and self._syncs):
            self.sync()
        return event

    def _commit_line(
        self, line: bytes, timestamp: str, *, is_announced: bool, last: bool = False
    ) -> None:
        head = f"sha256:{sha256(line).hexdigest()}"
        line += b"\n"
        if is_announced:
            self._checkpoints.announce(self._sequence, self._head, head)
        try:
            write_all(self._fd, line)
        except OSError as error:
            self._write_after(error, line, last=last)
        self._size += len(line)
        self._sequence += 1
        self._timestamp = timestamp
        self._prior, self._head = self._head, head

    def line_of(self, draft: Draft) -> EventLine | None:
        """Return the line that later events share except for some members, for `append_line`.

        Return None if one of its constants has to be masked or looks like a blob reference.
        """
        if mask_payload(draft.payload, self._redactor) is not draft.payload:
            return None
        line = EventLine(self._build_event(draft, draft.payload, 0, "", "", None))
        return None if may_refer(orjson.dumps(line.members)) else line

    @property
    def secrets_version(self) -> object:
        """An object that is replaced whenever another secret becomes known. The constants of a line are then
        checked again.
        """
        return self._redactor.version

    def append_line(
        self, line: EventLine, values: tuple[object, ...], names: tuple[str, ...]
    ) -> str | None:
        """Append an event of a step, given its line with all variable members, and return its id. Raise
        UnusableEnvironment `env.disk`.

        `values` are those that may contain a secret. `names` are ids, references and targets of the skill, which are
        never JSON. Return None without appending if the event needs `append`. That is so if a value must be masked, may
        be a blob, is large or is not JSON. It is also so if an earlier write failed, every event is synced, or the
        clock went back.
        """
        if self._failed is not None or self._each or self._rules != LATEST:
            return None
        if not self._redactor.is_clean(values, names):
            return None
        timestamp = self._clock.now()
        if timestamp < self._timestamp:
            self._unused = timestamp, ""
            return None
        identifier = f"ev_{self._ids.ulid()}"
        members = line.members
        members["seq"], members["id"], members["timestamp"] = self._sequence, identifier, timestamp
        members["prev"] = self._head
        try:
            text = orjson.dumps(members)
        except TypeError:
            text = b""
        if not 0 < len(text) <= SMALL or may_refer(text):
            self._unused = timestamp, identifier
            return None
        is_announced = self._announces_each or self._is_vouched_phase(line.phase)
        self._commit_line(add_sum(text), timestamp, is_announced=is_announced)
        return identifier

    def _is_last(self, draft: Draft) -> bool:
        """Return whether an event ends or pauses the root run. Space for it is reserved on a full disk."""
        is_end = draft.phase == "terminate" or draft.event_type == "run.paused"
        return is_end and draft.run_id == self._root

    def _add_rules(self, payload: Json) -> Json:
        """Return the payload of the first event, with the rules of the log added."""
        self._rules = LATEST
        if has_standing_permissions(payload):
            self.announce_each()
        return {**payload, "rules": LATEST}

    def announce_each(self) -> None:
        """Announce each event in a checkpoint from now on.

        If the run is killed, events forged after its end cannot use the permissions of its first event.
        """
        self._announces_each = True

    def _is_vouched_phase(self, phase: str) -> bool:
        """Return whether a checkpoint announces the next event because of its phase or number."""
        return phase in _VOUCHED_FIRST or not self._sequence % _CHECKPOINT_EVERY

    def _is_vouched_first(self, draft: Draft) -> bool:
        """Return whether a checkpoint announces an event: one that may contain a permission, and every n-th event."""
        if self._is_vouched_phase(draft.phase):
            return True
        return draft.step_id is not None and StepPath(draft.step_id).in_call

    def _placed_event(self, draft: Draft, payload: Json) -> Event:
        (timestamp, identifier), self._unused = self._unused, ("", "")
        timestamp, clamped = timestamp or self._clock.now(), None
        if timestamp < self._timestamp:
            timestamp, clamped = self._timestamp, "clamped"
        identifier = identifier or f"ev_{self._ids.ulid()}"
        return self._build_event(draft, payload, self._sequence, identifier, timestamp, clamped)

    def _build_event(
        self, draft: Draft, payload: Json, seq: int, identifier: str, timestamp: str, clamped: str | None
    ) -> Event:  # fmt: skip
        return Event(
            seq, identifier, timestamp, self.episode_id, draft.run_id, self.trace_id,
            draft.phase, draft.event_type, payload, *draft[4:], self._head, clamped,
        )  # fmt: skip

    def _event_line(self, event: Event, version: object = None) -> bytes:
        try:
            if self._shortener is not None:
                event = event._replace(payload=self._shortener.recall(event.payload, version))
            text = orjson.dumps(to_json(event))
            if len(text) > (SMALL if self._rules > FIRST else SPILL) or may_refer(text):
                short = event._replace(payload=self._shorten_payload(event.payload, version))
                text = orjson.dumps(to_json(short))
        except TypeError as error:
            raise InternalError(
                "internal", f"event {event.event_type} holds no JSON: {error}"
            ) from error
        except UnusableEnvironment as error:
            self._failed = (
                error.__cause__ if isinstance(error.__cause__, OSError) else OSError(str(error))
            )
            raise
        line = add_sum(text)
        if len(line) >= MAX_LINE:  # its newline counts
            raise InternalError(
                "internal", f"event {event.event_type} is longer than {MAX_LINE:,} bytes"
            )
        return line

    def _shorten_payload(self, payload: Json, version: object) -> Json:
        """Return the payload with its large values in blobs."""
        if self._rules == FIRST:
            return spill(payload, self._blobs.put)
        if self._shortener is None:
            self._shortener = ValueShortener(self._blobs.put, self._rules)
            self._shortener.recall({}, version)
        return self._shortener.shorten(payload)

    def _write_after(self, error: OSError, line: bytes, *, last: bool) -> None:
        """Write a line whose first write failed. Raise UnusableEnvironment unless it is the last line and the reserve
        has space for it.
        """
        self._truncate_partial_line(error)
        if not (last and self._use_reserve()):
            self._raise_refusal(error)
        try:
            write_all(self._fd, line)
        except OSError as again:
            self._truncate_partial_line(again)
            self._raise_refusal(again)

    def _truncate_partial_line(self, error: OSError) -> None:
        """Remove the bytes that a failed write left in the log."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self._final = True
        self._failed = error

    @property
    def head(self) -> str:
        """The hash of the last line."""
        return self._head

    @property
    def count(self) -> int:
        """The number of events."""
        return self._sequence

    @property
    def size(self) -> int:
        """The size of the log in bytes."""
        return self._size

    @property
    def stored(self) -> int:
        """The total bytes of blobs stored so far."""
        return self._blobs.stored

    @property
    def chain(self) -> Json:
        """The member `chain` of a manifest: the number of events and the hash of the last one."""
        return {"events": self._sequence, "head": self._head}

    @property
    def unvouched(self) -> tuple[EventRange, ...]:
        """The ranges of events of other processes that no checkpoint covers."""
        return self._checkpoints.unvouched

    @property
    def has_vouched(self) -> bool:
        """Whether a checkpoint covers any event of the log."""
        return sum(last - first + 1 for first, last in self.unvouched) < self._sequence

    def vouch(self, manifest: bytes = b"") -> None:
        """Write the checkpoint of a pause, or of the end with the manifest that will be written next."""
        named = digest(manifest) if manifest else ""
        self._checkpoints.settle(
            self._sequence - 1, self._prior, self._head, named, sync=self._each
        )

    def is_allowed(self, sequence: int | None) -> bool:
        """Return whether the permission that an event records is valid.

        It is if this process wrote the event, a checkpoint vouches for it, or the user renewed the permission.
        """
        return self.vouched.allows(sequence) or (sequence is not None and sequence >= self._found)

    @property
    def allows_all(self) -> bool:
        """Whether the permissions of all events are valid."""
        missing = self.vouched.missing(self._found)
        return all(last < self.vouched.given for _, last in missing)

    def renew_permissions(self) -> None:
        """Record that the user renewed the permissions of all events so far."""
        self._checkpoints.renew_permissions(self._sequence)

    @property
    def stopped_by_full_disk(self) -> bool:
        """Whether only the end of the run can still be written."""
        return self._failed is not None and self._failed.errno in FULL and not self._final

    def _use_reserve(self) -> bool:
        """Free the reserve for the end of the run, and return whether there was any."""
        if not self.stopped_by_full_disk or not self._reserve.free():
            return False
        self._failed = None
        return True

    def sync(self) -> None:
        """Sync all events to disk, unless durability is `none`. Raise UnusableEnvironment `env.disk`."""
        if self._failed is not None:
            raise self._disk_error(self._failed)
        if not self._syncs:
            return
        try:
            found = os.fstat(self._fd)
            if not found.st_nlink:
                raise OSError("the file was removed")
            if found.st_size != self._size:
                raise _LogChanged(_CHANGED)
            self._blobs.sync()
            fdatasync(self._fd)
            if not self._placed:
                self.folder.sync_with_parent()
                self._placed = True
        except OSError as error:
            self._final = True
            self._raise_refusal(error)

    def _raise_refusal(self, error: OSError) -> NoReturn:
        self._failed = error
        raise self._disk_error(error) from error

    def _disk_error(self, error: OSError) -> UnusableEnvironment:
        """Return the error of a log that can no longer be written, for this reason."""
        if isinstance(error, _LogChanged):
            return altered_error(self.directory, f"{EVENTS}: {error}")
        return disk_refusal(self.folder.place_of(EVENTS), error)

    def require_unchanged(self) -> None:
        """Raise UnusableEnvironment `episode.altered` unless the log on disk equals the written lines."""
        try:
            log = scan_log(self.folder)
        except UnreadableFile as error:
            raise altered_error(self.directory, f"{EVENTS} {error.message}") from error
        if log.fault or (log.events, log.head, log.size) != (
            self._sequence,
            self._head,
            self._size,
        ):
            self._final = True
            self._raise_refusal(
                _LogChanged(
                    f"{_CHANGED}, {log.fault or 'its last line is not the one written last'}"
                )
            )

    def put_blob(self, data: bytes) -> str:
        """Store a document as a blob with known secrets masked, sync it, and return `sha256:...`."""
        with contextlib.suppress(UnicodeDecodeError):
            data = self._redactor.mask_text(data.decode()).encode()
        return self._blobs.put(data)

    def put_large(self, text: bytes) -> str:
        """Store the JSON of a value from the log, which is masked already, and return `sha256:...`."""
        return self._blobs.put(text)

    def cut(self, size: int) -> None:
        """Truncate the log to its committed lines, and sync it. Raise UnusableEnvironment."""
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            self._final = True
            self._raise_refusal(error)
        self.sync()

    def replace(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Atomically replace the content of one of the episode's files with `data`. Raise UnusableEnvironment
        `env.disk`.
        """
        self.folder.replace(name, data, sync=self._syncs)

    def remove(self, name: str) -> None:
        """Remove a file of the episode, if it exists. Raise UnusableEnvironment `env.disk`."""
        with disk_errors(self.folder.place_of(name)), contextlib.suppress(FileNotFoundError):
            self.folder.unlink(name)

    def replace_unsynced(self, name: str, data: bytes | Iterable[bytes]) -> None:
        """Replace a file like `replace`, but without a sync. After a power loss it may be the earlier one, or empty."""
        self.folder.replace(name, data, sync=False)

    def events(self) -> EventLog:
        """Return the log on disk so far."""
        return EventLog(self.folder)

    def history(self) -> Iterator[Event]:
        """Return the events on disk so far."""
        return (event for _, event in self.events())

    def free_reserve(self) -> None:
        """Free the reserve before the end is written. Raise UnusableEnvironment `env.disk`."""
        with disk_errors(self.folder.place_of(BALLAST)):
            self._reserve.remove()

    def discard(self) -> bool:
        """Close the journal, and remove the episode if it has no committed event. Return whether it was removed."""
        if self._sequence or self._size:
            return False
        remove_unbegun(self.folder)
        self.close()
        return True

    def close(self) -> None:
        """Release the lock and the disk reserve; may be called twice."""
        if self._fd >= 0:
            self._reserve.free()
            os.close(self._fd)
            self._fd = -1
            self._blobs.close()
            self._checkpoints.close()
            self.folder.close()
