"""`checkpoint.jsonl`: the events of a log for which its writer vouches (docs/reference/episode.md#checkpoint).

1. A record names an episode, a number of events and the hash of the last of them. A MAC with the user's key, or a
   signature, covers all of it. The chain binds every earlier line to that hash.
2. `next` is the hash of the line that is about to be written. A record is written before such a line: a crash between
   the two leaves a record that fits the log without the line, and so does damage to the newest line.
3. The file has two slots of equal size. A record goes to the slot that does not hold the latest one, so that a write
   that is cut short leaves the record before. At a pause and at the end only the last record stays, in the
   first slot.
4. Events that were in the log when a process took it up, and that no known record covered, are `unvouched` in every
   later record.
5. If a record cannot be written, the run continues without it. An episode without a record is unknown, never wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import orjson

from cogcli.base.canonical import digest
from cogcli.base.errors import CogcliError
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.base.strict_json import loads as strict_loads
from cogcli.declarations.envelope import from_json
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import Folder, fdatasync, write_all
from cogcli.episode.layout import CHECKPOINT, EVENTS, is_digest
from cogcli.episode.log_lines import Lines, first_link

if TYPE_CHECKING:
    from cogcli.episode.signing import Sign

SCHEMA: Final = "checkpoint/1"
KEY_BYTES: Final = 32
SLOT: Final = 2048
"""Bytes of a record with its padding and newline."""
MAX_RANGES: Final = 16
"""Ranges of unvouched events in a record. Of more, neighbors become one range."""
_PERSON: Final = b"cogcli/checkpt/1"
_MAX_EVENTS: Final = 1 << 53

EventRange = tuple[int, int]
"""The first and the last `seq` of a range."""


class Checkpoint(NamedTuple):
    """One record."""

    episode_id: str
    events: int
    head: str
    """The hash of the line before `events`; for 0 the `prev` of the first line."""
    following: str
    """`next`: the hash of the line about to be written; at a pause and at the end, of the last line."""
    unvouched: tuple[EventRange, ...]
    manifest: str
    """The hash of the manifest that is about to be written; empty before the end."""
    given: int
    """The `seq` before which the user granted all permissions again, knowing the head of the log."""
    mac: str = ""
    signature: Mapping[str, object] | None = None
    slot: int = 0

    def to_payload(self) -> Json:
        """Return the members that the MAC and the signature cover."""
        return {
            "schema_version": SCHEMA,
            "episode_id": self.episode_id,
            "events": self.events,
            "head": self.head,
            "next": self.following or None,
            "unvouched": [list(each) for each in self.unvouched],
            "manifest": self.manifest or None,
            "given": self.given,
        }


class TrustedEvents(NamedTuple):
    """The events of a log that known records vouch for."""

    ranges: tuple[EventRange, ...] = ()
    """The vouched events, in order, not adjacent."""
    given: int = 0
    manifest: str = ""
    """The hash of the manifest that the latest record names. Empty if it names none."""
    differs: str = ""
    """The difference between the log and a known record: the log was truncated or altered afterwards. Empty if they
    agree.
    """
    slot: int = 1
    """The slot of the latest record; the next record goes to the other one."""

    def covers(self, sequence: int | None) -> bool:
        """Return whether an event is vouched for."""
        return sequence is not None and any(
            first <= sequence <= last for first, last in self.ranges
        )

    def allows(self, sequence: int | None) -> bool:
        """Return whether a permission that this event records is valid."""
        return self.covers(sequence) or (sequence is not None and sequence < self.given)

    def missing(self, count: int) -> tuple[EventRange, ...]:
        """Return the unvouched ranges among the first `count` events."""
        found, begin = [], 0
        for first, last in self.ranges:
            if first > begin:
                found.append((begin, first - 1))
            begin = last + 1
        if begin < count:
            found.append((begin, count - 1))
        return tuple(found)


NOTHING: Final = TrustedEvents()


def compute_mac(key: bytes, record: Checkpoint) -> str:
    """Return the MAC of a record under a user's key, in hex."""
    return blake2b(
        orjson.dumps(record.to_payload()), key=key, digest_size=32, person=_PERSON
    ).hexdigest()


# -- reading -----------------------------------------------------------------------------------------------------------


def read_checkpoints(folder: Folder) -> list[Checkpoint]:
    """Return the well-formed records of an episode. Empty if the file is missing or cannot be read."""
    try:
        data = folder.read(CHECKPOINT, limit=4 * SLOT)
    except UnreadableFile:
        return []
    found = [_parse_record(data[at : at + SLOT], at // SLOT) for at in range(0, len(data), SLOT)]
    return [record for record in found if record is not None]


def _parse_record(data: bytes, slot: int) -> Checkpoint | None:
    text = data.strip(b" \n\0")
    if not text:  # a sealed run of one active period has written only the first slot
        return None
    try:
        value = strict_loads(text, max_bytes=SLOT, max_nodes=1000)
        match value:
            case {
                "schema_version": "checkpoint/1", "episode_id": str(episode_id), "events": int(events),
                "head": str(head), "next": following, "unvouched": list(unvouched), "manifest": manifest,
                "given": int(given), "mac": mac, "signature": signature,
            } if len(value) == 10:  # fmt: skip
                ranges = tuple((int(first), int(last)) for first, last in unvouched)
                record = Checkpoint(
                    episode_id, events, head, following or "", ranges, manifest or "", given, mac or "",
                    signature, slot,
                )  # fmt: skip
            case _:
                return None
    except (InvalidJson, TypeError, ValueError):
        return None
    return record if _is_sound(record) else None


def _is_sound(record: Checkpoint) -> bool:
    """Return whether a writer can have written the values of a record. Otherwise its MAC proves nothing."""
    hashes = [each for each in (record.head, record.following, record.manifest) if each]
    return (
        _has_sound_numbers(record)
        and bool(record.head)
        and all(map(is_digest, hashes))
        and type(record.mac) is str
        and record.mac.isascii()  # `compare_digest` takes no other text
    )


def _has_sound_numbers(record: Checkpoint) -> bool:
    ends = [end for each in record.unvouched for end in each]
    for number in (record.events, record.given, *ends):
        if type(number) is not int or not 0 <= number < _MAX_EVENTS:
            return False
    in_order = all(before[1] < after[0] for before, after in pairwise(record.unvouched))
    return in_order and all(first <= last for first, last in record.unvouched)


def is_own(record: Checkpoint, owner: bytes | None) -> bool:
    """Return whether the MAC of a record was made with the user's key."""
    from hmac import compare_digest

    return (
        owner is not None
        and bool(record.mac)
        and compare_digest(compute_mac(owner, record), record.mac)
    )


def is_signed_with(record: Checkpoint, sign: Sign | None) -> bool:
    """Return whether the signature of a record equals the one that `sign` computes for it."""
    return sign is not None and record.signature == sign(record.to_payload())


def read_trusted_checkpoints(
    folder: Folder, owner: bytes | None, sign: Sign | None = None
) -> list[Checkpoint]:
    """Return the records with a MAC by the user's key or a signature by `sign`."""
    return [
        record
        for record in read_checkpoints(folder)
        if is_own(record, owner) or is_signed_with(record, sign)
    ]


def has_only_foreign_records(folder: Folder, owner: bytes | None, sign: Sign | None) -> bool:
    """Return whether an episode has records, all of them of other users."""
    return bool(read_checkpoints(folder)) and not read_trusted_checkpoints(folder, owner, sign)


def places_of(records: Iterable[Checkpoint]) -> set[int]:
    """Return the event counts at which the log's hash is needed to compare these records with it."""
    return {place for record in records for place in (record.events, record.events + 1)}


def compare(
    records: Iterable[Checkpoint], episode_id: object, heads: Mapping[int, str]
) -> TrustedEvents:
    """Return the events of a log that known records vouch for, or the difference between the log and the records.
    `heads` maps the event counts of `places_of` to chain hashes, as far as the log reaches.
    """
    ranges: list[EventRange] = []
    given, differs, slot, latest, manifest = 0, "", NOTHING.slot, -1, ""
    for record in records:
        reach = _covered_events(record, episode_id, heads)
        if reach is None:
            differs = f"it had {record.events} events, the last with the hash {record.head}, when this was recorded"
            continue
        ranges += NOTHING._replace(ranges=record.unvouched).missing(reach)
        given = max(given, record.given)
        if record.events > latest:
            slot, latest, manifest = record.slot, record.events, record.manifest
    return TrustedEvents(tuple(_merge_ranges(ranges)), given, manifest, differs, slot)


def _covered_events(record: Checkpoint, episode_id: object, heads: Mapping[int, str]) -> int | None:
    """Return the number of events that a record covers in this log; None if it belongs to another log."""
    if record.episode_id != episode_id:
        return None
    if record.following and heads.get(record.events + 1) == record.following:
        return record.events + 1
    return record.events if heads.get(record.events) == record.head else None


def _merge_ranges(ranges: Iterable[EventRange]) -> list[EventRange]:
    """Return the union of ranges."""
    union: list[EventRange] = []
    for first, last in sorted(ranges):
        if union and first <= union[-1][1] + 1:
            union[-1] = (union[-1][0], max(last, union[-1][1]))
        else:
            union.append((first, last))
    return union


def read_trusted_events(
    folder: Folder, owner: bytes | None, sign: Sign | None = None
) -> TrustedEvents:
    """Compare the known records of an episode with its log, up to the first line that breaks the chain. Raise
    UnreadableFile.
    """
    known = read_trusted_checkpoints(folder, owner, sign)
    if not known:
        return NOTHING
    episode_id = known[0].episode_id
    wanted, head = places_of(known), first_link(episode_id)
    heads = {0: head}
    for number, raw, value in Lines(folder.chunks(EVENTS)).objects(sound=True):
        event = from_json(value)
        if event.prev != head or event.episode_id != episode_id:
            break
        head = digest(raw)
        if number in wanted:
            heads[number] = head
    return compare(known, episode_id, heads)


# -- writing -----------------------------------------------------------------------------------------------------------


class CheckpointWriter:
    """Writes the checkpoint records of one log. The caller holds the lock of the log."""

    def __init__(
        self,
        folder: Folder,
        episode_id: str,
        owner: bytes | None,
        sign: Sign | None,
        *,
        vouched: TrustedEvents = NOTHING,
        count: int = 0,
    ) -> None:
        """Prepare the writer for a log. `vouched` is the result of earlier records for the `count` events already
        in the log.
        """
        self._folder = folder
        self._episode_id = episode_id
        self._owner = owner
        self._sign = sign
        self._slot = vouched.slot
        self._given = vouched.given
        self.unvouched = _merge_first_ranges(vouched.missing(count))
        self._fd = -1
        self._is_given_up = owner is None and sign is None

    def announce(self, events: int, head: str, following: str) -> None:
        """Record that the log has `events` events, and that the next line has the hash `following`."""
        self._write_record(events, head, following)

    def settle(
        self, events: int, head: str, following: str, manifest: str = "", *, sync: bool = False
    ) -> None:
        """Record the log at a pause, or at its end with the hash of its manifest, and erase the earlier record.

        `following` is the hash of the last line, as in `announce`. If that line is damaged later, the lines
        before it are still vouched for.
        """
        self._write_record(events, head, following, manifest)
        if self._slot:  # the last record belongs in the first slot: equal logs have equal files
            self._write_record(events, head, following, manifest)
        if self._fd < 0:
            return
        with suppress(OSError):
            self._write_slot(1, b" " * (SLOT - 1) + b"\n")
            if sync:
                fdatasync(self._fd)

    def renew_permissions(self, count: int) -> None:
        """Record in later records that the user renewed the permissions of the first `count` events."""
        self._given = count

    def exclude_event(self, sequence: int) -> None:
        """Mark this event as unvouched in later records."""
        self.unvouched = _merge_first_ranges(
            tuple(_merge_ranges([*self.unvouched, (sequence, sequence)]))
        )

    def close(self) -> None:
        """Release the file; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write_record(self, events: int, head: str, following: str, manifest: str = "") -> None:
        if self._is_given_up:
            return
        record = Checkpoint(
            self._episode_id, events, head, following, self.unvouched, manifest, self._given
        )
        try:
            if self._fd < 0:
                self._fd = self._open_file()
            self._write_slot(1 - self._slot, self._record_line(record))
            self._slot = 1 - self._slot
        except (OSError, CogcliError, UnreadableFile):
            self._is_given_up = True
            self.close()

    def _record_line(self, record: Checkpoint) -> bytes:
        payload = record.to_payload()
        mac = compute_mac(self._owner, record) if self._owner is not None else None
        signature = self._sign(payload) if self._sign is not None else None
        return orjson.dumps({**payload, "mac": mac, "signature": signature}).ljust(SLOT - 1) + b"\n"

    def _open_file(self) -> int:
        try:
            return self._folder.create(CHECKPOINT, os.O_WRONLY)
        except FileExistsError:
            self._folder.size(CHECKPOINT)  # raises UnreadableFile unless it is a regular file
            return self._folder.descriptor(CHECKPOINT, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))

    def _write_slot(self, slot: int, line: bytes) -> None:
        os.lseek(self._fd, slot * SLOT, os.SEEK_SET)
        write_all(self._fd, line)


def _merge_first_ranges(ranges: tuple[EventRange, ...]) -> tuple[EventRange, ...]:
    """Merge the first ranges so that at most `MAX_RANGES` remain."""
    if len(ranges) <= MAX_RANGES:
        return ranges
    joined = len(ranges) - MAX_RANGES
    return ((ranges[0][0], ranges[joined][1]), *ranges[joined + 1 :])
