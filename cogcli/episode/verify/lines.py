"""The check of each line of a log by itself and against its neighbors (docs/reference/episode.md#events).

Beyond the page: all lines name one episode and one trace, and have no further keys but `x-...`. For the log of another
tool (docs/reference/episode.md#foreign) only that, the ids and `caused_by` are checked, if the keys exist; a chained
line further down is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.checksum import Checksums, has_valid_checksum
from cogcli.declarations.envelope import OPTIONAL, PHASES, TYPES, Event
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import MAX_LINE
from cogcli.episode.layout import EVENT_ID, EVENTS, TIMESTAMP, Finding, error_finding, is_trace_id
from cogcli.episode.log_lines import first_link, is_unchained
from cogcli.episode.verify.event_ids import EventIds

_PHASES: Final = frozenset(PHASES)
_OWN_CHECKS: Final = ("seq", "id", "timestamp", "prev", "sum", "clock")
_SHAPES: Final = 1000
"""The number of sound shapes that are kept. Ours are few; a foreign log may have one per line."""
Faults = Iterator[tuple[str, str]]
"""The code and the message of each fault of a line."""
_METRICS: Final = frozenset(("started_at", "completed_at", "duration_ms"))


class _LineMembers(NamedTuple):
    """The members of a line, which may have any type; None for one that is not there."""

    seq: object
    id: object
    timestamp: object
    prev: object
    episode_id: object
    trace_id: object
    phase: object
    caused_by: object
    clock: object
    metrics: object


class LineCheck:
    """Checks the lines of a log in order. `chained` is known after the first."""

    def __init__(self) -> None:
        self.chained = True
        self.count = 0
        self.head = ""
        self.ids = EventIds()
        self._checksums = Checksums()
        self._broken_at = 0
        self.episode: object = None
        """The id that the lines name."""
        self._trace: object = None
        self._has_sound_trace = False
        self._timestamp = ""
        self._unknown_phases: set[str] = set()
        self._sequence = 0
        """The `seq` that the next line must have. A gap is one finding: later lines are counted from there."""
        self._sound: set[tuple[object, ...]] = set()
        """Keys and types of sound lines."""
        self._usual: set[tuple[object, ...]] = set()
        """Those of lines with a checksum and without a `clock`, if the log is chained and has a sound trace."""

    def check(self, number: int, raw: bytes, line: Json) -> Iterable[Finding]:
        """Return the findings about one line. Consume them before the next line is checked."""
        if self._is_sound(raw, line):
            return ()
        found = _LineMembers._make(map(line.get, _LineMembers._fields))
        return self._check_members(number, raw, line, found)

    def _is_sound(self, raw: bytes, line: Json) -> bool:
        """Return whether a line certainly has no finding, and register such a line.

        Nearly every line passes, and this test takes a third of the time of the checks that explain a fault.
        """
        if (
            (*line, *map(type, line.values())) in self._usual
            and line["prev"] == self.head
            and line["seq"] == self._sequence
            and (timestamp := line["timestamp"]) >= self._timestamp
            and TIMESTAMP.fullmatch(timestamp) is not None
            and len(raw) < MAX_LINE
            and ((cause := line.get("caused_by")) is None or cause in self.ids)
            and ((metrics := line.get("metrics")) is None or metrics.keys() <= _METRICS)
            and line["phase"] in _PHASES
            and line["episode_id"] == self.episode
            and line["trace_id"] == self._trace
            and has_valid_checksum(raw)
            and EVENT_ID.fullmatch(line["id"]) is not None
            and self.ids.add_next(line["id"])
        ):
            self._sequence += 1
            self._timestamp = timestamp
            self.count += 1
            self.head = f"sha256:{sha256(raw).hexdigest()}"
            return True
        return False

    def skip_to(self, count: int, head: str, events: Iterable[Event]) -> None:
        """Continue after `count` lines. `head` is the hash of the last one. `events` are those of the skipped lines to
        which later lines may refer.
        """
        self.count = self._sequence = count
        self.head = head
        for event in events:
            self.ids.add(event.id)
            self._timestamp = event.timestamp

    def _count_line(self, raw: bytes) -> None:
        self.count += 1
        self.head = f"sha256:{sha256(raw).hexdigest()}"

    def _check_members(
        self, number: int, raw: bytes, line: Json, found: _LineMembers
    ) -> Iterator[Finding]:
        if not self.count:
            self.chained = not is_unchained(line)
            self.episode, self._trace = found.episode_id, found.trace_id
            self._has_sound_trace = type(self._trace) is str and is_trace_id(self._trace)
            self.head = first_link(self.episode) if type(self.episode) is str else ""
        if self.chained:
            if found.prev != self.head:
                # The altered line is the one whose hash the next line names differently.
                self._broken_at = number
                yield _broken_chain(number, found.prev, self.head)
            if problem := self._checksums.problem(raw, line):
                yield _build_error(problem[0], number, f"the line {problem[1]}")
            for code, message in self._check_own_line(raw, line, found):
                yield _build_error(code, number, message)
        elif "seq" in line or "prev" in line:
            yield _build_error("chain.mixed", number, "a chained line in an unchained log")
        yield from self._check_neighbors(number, found)
        self._count_line(raw)

    def end(self) -> Iterator[Finding]:
        """Yield the finding about the last line: no later one shows whether it or the line before was altered."""
        if self.count > 1 and self._broken_at == self.count:
            yield _build_error(
                "chain.broken", self.count, f"its `prev` is not the hash of line {self.count - 1}"
            )

    # -- our own lines ------------------------------------------------------------------------------------------------

    def _check_own_line(self, raw: bytes, line: Json, found: _LineMembers) -> Faults:
        sequence, event_id = found.seq, found.id
        if type(sequence) is not int or sequence != self._sequence:
            yield "seq.wrong", f"seq is {sequence!r:.30}, expected {self._sequence}"
        self._sequence = (sequence if type(sequence) is int else self._sequence) + 1
        if not (type(event_id) is str and EVENT_ID.fullmatch(event_id)):
            yield "id.invalid", f"id {event_id!r:.60} is none of ours"
        if len(raw) >= MAX_LINE:
            yield "line.long", f"{len(raw) + 1:,} bytes, at most {MAX_LINE:,} are allowed"
        yield from self._check_time(found)
        yield from self._check_shape(line)
        if type(found.metrics) is dict and not _has_known_metrics(found.metrics):
            yield "event.key", "`metrics` holds more than started_at, completed_at and duration_ms"

    def _check_shape(self, line: Json) -> Faults:
        """Return the problems of keys and types. A shape that was valid once is not checked again."""
        shape = (*line, *map(type, line.values()))
        if shape not in self._sound:
            problems = list(_key_problems(line))
            yield from problems
            if not problems and len(self._sound) < _SHAPES:
                self._sound.add(shape)
                if self._has_sound_trace and _has_usual_types(line):
                    self._usual.add(shape)

    def _check_time(self, found: _LineMembers) -> Faults:
        timestamp, clock = found.timestamp, found.clock
        if type(timestamp) is not str or not TIMESTAMP.fullmatch(timestamp):
            yield (
                "time.invalid",
                f"timestamp {timestamp!r:.40} is no RFC 3339 in UTC with microseconds",
            )
            return
        if timestamp < self._timestamp:
            yield "time.back", f"timestamp {timestamp} is before that of the line before"
        self._timestamp = timestamp
        if clock is not None and clock != "clamped":
            yield "event.key", f"`clock` is {clock!r:.40}, expected `clamped`"

    # -- any line -----------------------------------------------------------------------------------------------------

    def _check_neighbors(self, number: int, found: _LineMembers) -> Iterator[Finding]:
        yield from self._check_identity(number, found)
        yield from self._check_membership(number, found)
        phase = found.phase
        if type(phase) is str and phase not in _PHASES and phase not in self._unknown_phases:
            self._unknown_phases.add(phase)
            yield Finding(
                "phase.unknown", "info", EVENTS, number, f"phase `{phase:.40}` is not known here"
            )

    def _check_identity(self, number: int, found: _LineMembers) -> Iterator[Finding]:
        """Yield a finding for a repeated id, or for a cause that is not an earlier event."""
        event_id, cause = found.id, found.caused_by
        if type(event_id) is str:
            if event_id in self.ids:
                yield _build_error("id.repeated", number, f"id `{event_id:.60}` was given before")
            self.ids.add(event_id)
        if type(cause) is str and (cause not in self.ids or cause == event_id):
            yield _build_error(
                "cause.unknown", number, f"caused_by `{cause:.60}` names no earlier event"
            )

    def _check_membership(self, number: int, found: _LineMembers) -> Iterator[Finding]:
        """Yield a finding if the line belongs to another episode or trace than the lines before it."""
        episode, trace = found.episode_id, found.trace_id
        if not self.chained:
            # Other tools need not repeat the members of an earlier line.
            self.episode, self._trace = self.episode or episode, self._trace or trace
            episode, trace = episode or self.episode, trace or self._trace
        if episode != self.episode:
            yield _build_error("episode.other", number, f"another episode's event: {episode!r:.80}")
        if trace != self._trace or (self.chained and type(trace) is str and not is_trace_id(trace)):
            yield _build_error(
                "trace.other", number, f"trace_id is {trace!r:.80}, expected {self._trace!r:.80}"
            )


def _has_usual_types(line: Json) -> bool:
    """Return whether the members that `_key_problems` passes over have their usual types."""
    usual = all(type(line.get(key)) is TYPES[key] for key in _OWN_CHECKS if key != "clock")
    return usual and "clock" not in line


def _has_known_metrics(metrics: Any) -> bool:
    known: bool = metrics.keys() <= _METRICS
    return known


def _key_problems(line: Json) -> Faults:
    for key, kind in TYPES.items():
        if key in _OWN_CHECKS or (key in OPTIONAL and key not in line):
            continue
        if type(found := line.get(key)) is not kind:
            yield "event.key", f"`{key}` is {found!r:.40}, expected {_WORDS[kind]}"
    for key in line:
        if key not in TYPES and not key.startswith("x-"):
            yield "event.key", f"key `{key:.60}` is none of an event's"


_WORDS: Final[dict[type, str]] = {str: "text", dict: "an object", list: "a list"}


def _broken_chain(number: int, prev: object, head: str) -> Finding:
    """Return the finding of a line whose `prev` is not `head`. It is at the line before, if there is one."""
    message = f"its hash is not the one that line {number} names: one of them was altered"
    if number == 1:
        message = "its `prev` is not that of an episode's first line"
    line = max(number - 1, 1)
    return error_finding(
        "chain.broken", EVENTS, line, message, expected=f"{prev!s:.80}", found=head
    )


def _build_error(code: str, number: int, message: str) -> Finding:
    return error_finding(code, EVENTS, number, message)
