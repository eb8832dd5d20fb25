"""The pass of `verify` over a log of any tool: its findings, and the documents that follow from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from operator import itemgetter
from typing import Final

import orjson

from cogcli.base.canonical import digest
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.envelope import Event, from_json, row_of
from cogcli.declarations.events import WaypointSet
from cogcli.declarations.reading import read_record, read_record_at_once
from cogcli.declarations.record import Record
from cogcli.declarations.shared_events import SharedActivity
from cogcli.declarations.value_types import Json
from cogcli.episode import blobs
from cogcli.episode.action_log import DocumentText
from cogcli.episode.folder import Folder
from cogcli.episode.large_values import BlobReader
from cogcli.episode.layout import EVENTS, MANIFEST, Finding, FindingSeverity, error_finding
from cogcli.episode.log_fold import LogFold, decision_files
from cogcli.episode.log_lines import FIRST, LineObject, Lines, first_link, parse_line, rules_of_line
from cogcli.episode.log_reader import event_of
from cogcli.episode.projection import (
    evidence_outcomes,
    is_snapshot,
    snapshot_outcomes,
    state_text,
)
from cogcli.episode.verify.answers import SignedAnswers
from cogcli.episode.verify.lines import LineCheck
from cogcli.episode.verify.ordering import OrderingCheck
from cogcli.episode.waypoint import WaypointFold

LONGEST_SHOWN: Final = 200
"""Characters of a value in a finding."""
_MARK: Final = b'"event_type":"run.state_projection"'
_WAYPOINT_MARK: Final = b'"event_type":"run.waypoint"'
NumberedFindings = list[tuple[int, Finding]]
"""Findings, each with the line at which it was found."""


class _PinnedBlob(Record):
    """The member of a run's pins that contains the digest of the blob of its specs."""

    specs_blob: str | None = None


class _PinningStart(Record):
    """The pins of a start event."""

    pins: _PinnedBlob


class ProjectedState(NamedTuple):
    """The expected `state.json`, the blobs to which it refers, and the documents of an agent's run by name."""

    text: DocumentText
    blobs: tuple[str, ...]
    decision: dict[str, bytes]
    events: int
    """The number of its events: those before its evidence."""
    snapshot: bool
    """Whether it was written while its run was alive."""


class EventReading:
    """Makes events from the lines of one log, and finds the blobs that they name and that do not exist."""

    def __init__(self, folder: blobs.BlobFolder, kept: set[str]) -> None:
        """Prepare the reading. `kept` are the digests of the existing blobs."""
        self._folder = folder
        self._kept = kept
        self._named: dict[str, None] = {}
        self._reader = BlobReader(self._read_blob)
        self._rules = FIRST

    def _read_blob(self, digest: str) -> bytes | None:
        self._named[digest] = None
        return self._folder.get(digest)

    def read(self, batch: list[LineObject], found: NumberedFindings) -> list[Event]:
        """Return the events of lines. Add the findings about their blobs to `found`."""
        events = []
        if batch[0][0] == 1:
            self._rules = rules_of_line(batch[0][2])
        reader = self._reader if len(batch) == 1 else None  # no other line names a blob
        for number, raw, value in batch:
            event = event_of(value, raw, reader, self._rules)
            if self._named or event.phase == "start":
                found += [(number, each) for each in self._find_missing(number, event)]
            events.append(event)
        return events

    def _find_missing(self, number: int, event: Event) -> Iterator[Finding]:
        named = [*self._named]
        self._named.clear()
        if event.phase == "start":
            specs = read_record(_PinningStart, event.payload).pins.specs_blob
            named += [] if specs is None else [specs]
        for name in named:
            if name not in self._kept:
                message = (
                    f"names {name:.80}, which is not there"
                    if name
                    else "names more than an event holds"
                )
                yield error_finding("blob.missing", EVENTS, number, message)


class _RecordedEvidence(Record):
    """The outcomes in the evidence of a projection. The other members are compared with the expected ones by name."""

    outcomes: Json


class LogReading:
    """One pass over the log, preceded by a pass that only searches projections. The attributes are complete once all
    findings were consumed.
    """

    def __init__(
        self, folder: Folder, kept: set[str], head: str | None, places: Collection[int] = ()
    ) -> None:
        """Prepare the pass. `kept` are the digests of the existing blobs, and `head` is a hash that was kept
        elsewhere.

        `places` are the event counts at which the hash of the chain is needed.
        """
        self._folder = folder
        self._kept = kept
        self._head = head
        self._places = places
        self.heads: dict[int, str] = {}
        """The hash of the chain at each of `places` that the log reaches."""
        self.head_at = 0
        """The line that has the hash kept elsewhere."""
        self._repairs: list[str] = []
        self.fold = LogFold(self._repairs.append)
        self.lines = LineCheck()
        self._ordering = OrderingCheck()
        self._content = sha256()
        self.size = 0
        self.states: list[ProjectedState] = []
        self.answers = SignedAnswers()
        """The documents at the last two projections, the last one first."""
        self.readable = True
        """Whether it was read to its end. If not, no document can be derived from it."""
        self.intact = True
        """Whether it has no error. If it has, the manifest cannot match, which is not another finding."""
        self.evidence: Event | None = None
        self.last_timestamp = ""
        self._waypoints = WaypointFold()
        self.waypoints: list[str] = []
        """The hashes that the last two waypoints have, the last one last."""

    @property
    def sha256(self) -> str:
        """The hash of the whole file."""
        return self._content.hexdigest()

    @property
    def chain(self) -> Json:
        """The `chain` of a manifest."""
        return {"events": self.lines.count, "head": self.lines.head}

    def findings(self) -> Iterator[Finding]:
        """Yield the findings about the log."""
        for finding in self._iterate_findings():
            self.intact = self.intact and finding.severity != "error"
            yield finding

    def _iterate_findings(self) -> Iterator[Finding]:
        projections, has_waypoints = _find_evidence(self._folder)
        chunks = self._read_chunks()
        lines = Lines(chunks)
        with closing(blobs.BlobFolder(self._folder)) as kept:
            events = EventReading(kept, self._kept)
            for batch in lines.batches():
                found = self._check_lines(batch, has_waypoints=has_waypoints)
                found += self._check_events(batch, events, projections)
                # A sort keeps the order of the findings about one line.
                yield from (finding for _, finding in sorted(found, key=itemgetter(0)))
        for _ in chunks:
            pass  # bytes after a refused line only count for the hash of the whole
        if not (lines.refused and lines.refused.ended):
            yield from self.lines.end()
        yield from self._check_tail(lines)

    def _check_lines(self, batch: list[LineObject], *, has_waypoints: bool) -> NumberedFindings:
        """Check lines by themselves, and the waypoints among them."""
        found: NumberedFindings = []
        heads = []
        lines, places = self.lines, self._places
        for number, raw, value in batch:
            heads.append(lines.head)
            for finding in lines.check(number, raw, value):
                found.append((number, finding))
            if number == 1 or number in places or lines.head == self._head:
                self._store_head(number)
        if has_waypoints and self.lines.chained:
            for before, (number, raw, value) in zip(heads, batch, strict=True):
                found += [
                    (number, each) for each in self._check_waypoint(number, raw, value, before)
                ]
        return found

    def _find_disorder(
        self, numbered: list[tuple[int, Event, SharedActivity | None]]
    ) -> NumberedFindings:
        """Return the violations of order among these events. A sound act needs only one test."""
        return [
            (number, each)
            for number, event, act in numbered
            if act is None or not self._ordering.is_sound(event, act)
            for each in self._ordering.check(number, event, act)
        ]

    def _check_events(
        self, batch: list[LineObject], reading: EventReading, projections: list[int]
    ) -> NumberedFindings:
        """Check the events of lines in their order, and fold them."""
        found: NumberedFindings = []
        events = reading.read(batch, found)
        self.last_timestamp = events[-1].timestamp
        numbered = [
            (number, event, _read_act(event))
            for (number, _, _), event in zip(batch, events, strict=True)
        ]
        for number, event, _ in numbered:
            if event.phase == "governance":
                self.answers.apply(number, event)
        if self.lines.chained:
            found += self._find_disorder(numbered)
        for number, event, act in numbered:
            if act is None:
                found += [
                    (number, each) for each in self._check_evidence(number, event, projections)
                ]
            self.fold.apply(event, act)
            if self._repairs:
                found += [(number, each) for each in self._collect_repairs(number)]
        return found

    def _store_head(self, number: int) -> None:
        """Store the hash of the chain if it is needed at this line."""
        if number == 1 and self.lines.chained and type(self.lines.episode) is str:
            self.heads[0] = first_link(self.lines.episode)
        if number in self._places:
            self.heads[number] = self.lines.head
        if self.lines.head == self._head:
            self.head_at = number

    def _read_chunks(self) -> Iterator[bytes]:
        for chunk in self._folder.chunks(EVENTS):
            self._content.update(chunk)
            self.size += len(chunk)
            yield chunk

    def _check_evidence(
        self, number: int, event: Event, projections: list[int]
    ) -> Iterator[Finding]:
        if row_of(event.event_type).projected:
            self.evidence = event
            if number in projections and self.lines.chained:
                yield from self._check_projection(number, event)
        elif event.phase == "terminate":
            self.evidence = None  # it was of the run before its end

    def _collect_repairs(self, number: int) -> list[Finding]:
        """Return the findings about the values that the fold had to repair."""
        severity: FindingSeverity = "error" if self.lines.chained else "info"
        found = [
            Finding("projection.repaired", severity, EVENTS, number, repair)
            for repair in self._repairs
        ]
        self._repairs.clear()
        return found

    def _check_projection(self, number: int, event: Event) -> Iterator[Finding]:
        named: dict[str, None] = {}

        def note(text: bytes) -> str:
            named[name := digest(text)] = None
            return name

        document = self.fold.projection.result(note)
        text = state_text(document, self.fold.projection.rules)
        snapshot = is_snapshot(event)
        state = ProjectedState(text, tuple(named), decision_files(self.fold), number - 1, snapshot)
        self.states.insert(0, state)
        recorded = read_record(_RecordedEvidence, event.payload)
        outcomes = document["outcomes"]
        # Older logs hold all actions, however many.
        whole = "actions" in recorded.outcomes
        evidence = evidence_outcomes(outcomes, whole=whole)
        expected = {
            "status": outcomes["status"],
            "outcomes": snapshot_outcomes(outcomes) if snapshot else evidence,
            "links": document["links"],
        }
        if "state" in recorded.json:  # older logs do not hold it
            expected["state"] = {"sha256": text.sha256, "size_bytes": text.size}
        for key, value in expected.items():
            wanted, found = orjson.dumps(value), orjson.dumps(recorded.json.get(key))
            if wanted != found:
                message = f"its {key} does not match the log at this point"
                yield error_finding(
                    "projection.differs", EVENTS, number, message,
                    expected=_shortened_json(wanted), found=_shortened_json(found),
                )  # fmt: skip

    def _check_waypoint(
        self, number: int, raw: bytes, value: Json, before: str
    ) -> Iterator[Finding]:
        """Apply a line, and compare a waypoint with the one derived from the lines before it."""
        event = from_json(value)
        if event.event_type == WaypointSet.event.name:
            recorded = read_record(WaypointSet, event.payload)
            expected = self._waypoints.result(str(self.lines.episode), before)
            digest = sha256(expected.to_bytes()).hexdigest() if expected else "none"
            self.waypoints = [*self.waypoints[-1:], recorded.sha256]
            if recorded.sha256 != digest:
                message = "its hash is not that of the waypoint that follows from the log"
                yield error_finding(
                    "waypoint.wrong", EVENTS, number, message, expected=digest, found=f"{recorded.sha256:.80}"
                )  # fmt: skip
        self._waypoints.apply(raw)

    def _check_tail(self, lines: Lines) -> Iterator[Finding]:
        """Yield the findings about the bytes after the last readable line."""
        sealed = self._folder.holds(MANIFEST)
        if lines.refused and (sealed or not lines.torn):
            self.readable = not (lines.refused.ended or lines.too_long)
            why = f"no event can be read here: {lines.refused.why}"
            message = "longer than any event" if lines.too_long else why
            yield error_finding("line.broken", EVENTS, lines.refused.number, message)
        elif lines.torn:
            message = f"{lines.torn} bytes that were not committed"
            severity: FindingSeverity = "error" if sealed else "info"
            yield Finding("line.torn", severity, EVENTS, self.lines.count + 1, message)
        if not lines.count:
            yield Finding("log.empty", "info", EVENTS, 1, "no event was committed")


def _find_evidence(folder: Folder) -> tuple[list[int], bool]:
    """Return the numbers of the last two lines that are projection evidence, and whether any line may be a waypoint."""
    found: list[int] = []
    has_waypoints = False
    lines = Lines(folder.chunks(EVENTS))
    for number, raw in lines.containing(_MARK, _WAYPOINT_MARK):
        if _MARK in raw:
            with suppress(InvalidJson):
                if row_of(from_json(parse_line(raw)).event_type).projected:
                    found = [*found[-1:], number]
        has_waypoints = has_waypoints or _WAYPOINT_MARK in raw
    return found, has_waypoints


def _shortened_json(value: bytes) -> str:
    """Return the JSON of a value, truncated to the length of a line."""
    text = value.decode()
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _read_act(event: Event) -> SharedActivity | None:
    """Return the members of an act that the fold and the ordering need. None for any other event."""
    return read_record_at_once(SharedActivity, event.payload) if event.phase == "act" else None
