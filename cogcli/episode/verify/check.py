"""Has anything in an episode been altered? (docs/reference/episode.md#verify)

Pure over the bytes read; nothing is written. Without a signature it can say that an episode is consistent, not that it
is authentic: whoever may write every file may write all of them anew. It says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import orjson

from cogcli.core.files import FileRefused
from cogcli.core.strict_json import JsonRefused
from cogcli.episode import blobs
from cogcli.episode.findings import Finding, FindingSeverity
from cogcli.episode.folder import Folder
from cogcli.episode.large_values import digest_of
from cogcli.episode.layout import EVENTS, MANIFEST, is_renamed
from cogcli.episode.log_fold import LogFold
from cogcli.episode.log_reader import (
    NO_NEWLINE,
    Lines,
    event_of,
    is_torn,
    is_torn_tail,
    nothing_began_error,
    open_episode,
    parse_line,
    unreadable,
)
from cogcli.episode.project import state_bytes
from cogcli.episode.rules import FIRST, rules_of
from cogcli.episode.verify.authenticity import NO_TRUST, Trusted, head_findings, signature_findings
from cogcli.episode.verify.documents import DocumentCheck, LogReading, ProjectedState
from cogcli.episode.verify.files import EpisodeFiles
from cogcli.episode.verify.foreign import ForeignFiles, foreign_findings, is_foreign
from cogcli.episode.verify.lines import LineCheck
from cogcli.episode.verify.ordering import OrderingCheck
from cogcli.episode.vocabulary import PROJECTION
from cogcli.events.envelope import Event

MOST: Final = 100
"""Findings of one code that are told one by one."""
_MARK: Final = b'"event_type":"run.state_projection"'


def verify(directory: Path, trusted: Trusted = NO_TRUST) -> list[Finding]:
    """Everything found in an episode: files first, the log in order, the documents, what stands behind them.

    Raises EnvironmentRefusal `episode.unreadable` where there is no log to open.
    """
    with open_episode(directory) as folder:
        try:
            return _capped(_verified(folder, trusted))
        except FileRefused as error:
            name = Path(error.path).name
            if name == EVENTS and (stub := nothing_began_error(folder)):
                raise stub from error
            refusal = unreadable(directory, error.message, file=name)
            refusal.next = ()  # that would be to verify it
            if error.reason == "not-regular":
                refusal.hint = "an episode holds regular files only: put the file itself there"
            raise refusal from error


def is_clean(findings: Iterable[Finding]) -> bool:
    """Whether nothing was altered."""
    return all(finding.severity != "error" for finding in findings)


def _verified(folder: Folder, trusted: Trusted) -> Iterator[Finding]:
    foreign = is_foreign(folder)
    inventory: EpisodeFiles | ForeignFiles = ForeignFiles(folder) if foreign else EpisodeFiles(folder)
    yield from inventory.findings
    reading = _Reading(folder, set(inventory.blobs()), trusted.head)
    intact = True
    for finding in reading.findings():
        intact = intact and finding.severity != "error"
        yield finding
    if is_renamed(folder.path.name, reading.lines.episode):
        message = (
            f"the folder is named `{folder.path.name}`, its log is that of `{reading.lines.episode:.80}`"
        )
        yield Finding("episode.renamed", "error", EVENTS, 1, message)
    if isinstance(inventory, ForeignFiles):
        yield from foreign_findings(folder, inventory, reading.lines.episode, reading.evidence)
    else:
        yield from DocumentCheck(folder, inventory.files, reading.log(intact=intact)).check()
    yield from signature_findings(folder, trusted.key, foreign=foreign)
    if trusted.head is not None:
        lines = reading.lines
        yield from head_findings(trusted.head, reading.head_at, lines.count, lines.head)


class _Reading:
    """One pass over the log, and before it one that only looks for projections."""

    def __init__(self, folder: Folder, kept: set[str], head: str | None) -> None:
        self._folder = folder
        self._head = head
        self.head_at = 0
        """The line that the hash kept elsewhere is of."""
        self._kept = kept
        self._repairs: list[str] = []
        self.lines = LineCheck()
        self._rules = FIRST
        self._story = OrderingCheck()
        self._account = LogFold(self._repairs.append)
        self._content = sha256()
        self._size = 0
        self._states: list[ProjectedState] = []
        self._readable = True
        self.evidence: Event | None = None
        self._last_timestamp = ""

    def log(self, *, intact: bool) -> LogReading:
        """What the pass gave."""
        return LogReading(
            account=self._account,
            events=self.lines.count,
            head=self.lines.head,
            sha256=self._content.hexdigest(),
            size=self._size,
            last_timestamp=self._last_timestamp,
            states=self._states[::-1],
            readable=self._readable,
            intact=intact,
        )

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the log."""
        projections = _last_projections(self._folder)
        lines = Lines(self._chunks())
        kept = blobs.BlobFolder(self._folder)
        numbered = iter(lines)
        for number, raw in numbered:
            try:
                value = parse_line(raw)
            except JsonRefused as error:
                yield from self._unread(number, raw, error.message, numbered)
                return
            yield from self.lines.check(number, raw, value)
            if self.lines.head == self._head:
                self.head_at = number
            if number == 1:
                self._rules = rules_of(value.get("payload"))
            named: dict[str, None] = {}
            event = event_of(value, raw, _noting(kept.get, named), self._rules)
            self._last_timestamp = event.timestamp
            yield from self._missing_blobs(number, named, event)
            if self.lines.chained:
                yield from self._story.check(number, event)
            yield from self._fold(number, event, projections)
        kept.close()
        yield from self.lines.end()
        yield from self._tail(lines)

    def _chunks(self) -> Iterator[bytes]:
        for chunk in self._folder.chunks(EVENTS):
            self._content.update(chunk)
            self._size += len(chunk)
            yield chunk

    def _fold(self, number: int, event: Event, projections: list[int]) -> Iterator[Finding]:
        if event.event_type == PROJECTION:
            self.evidence = event
            if number in projections and self.lines.chained:
                yield from self._at_projection(number, event)
        elif event.phase == "terminate":
            self.evidence = None  # what it told is over
        self._account.feed(event)
        if self._repairs:
            severity: FindingSeverity = "error" if self.lines.chained else "info"
            for repair in self._repairs:
                yield Finding("projection.repaired", severity, EVENTS, number, repair)
            self._repairs.clear()

    def _at_projection(self, number: int, event: Event) -> Iterator[Finding]:
        named: dict[str, None] = {}

        def note(text: bytes) -> str:
            named[digest := digest_of(text)] = None
            return digest

        document = self._account.projection.result(note)
        data = state_bytes(document, self._account.projection.rules)
        self._states.append(ProjectedState(data, tuple(named)))
        told = event.payload if type(event.payload) is dict else {}
        expected = {
            "status": document["outcomes"]["status"],
            "outcomes": document["outcomes"],
            "links": document["links"],
        }
        for key, value in expected.items():
            if orjson.dumps(told.get(key)) != orjson.dumps(value):
                message = f"its {key} are not what the log says at this point"
                yield Finding("projection.differs", "error", EVENTS, number, message)

    def _missing_blobs(self, number: int, named: Iterable[str], event: Event) -> Iterator[Finding]:
        if event.event_type == "run.started" and type(event.payload) is dict:
            pins = event.payload.get("pins")
            specs = pins.get("specs_blob") if type(pins) is dict else None
            named = [*named, specs] if type(specs) is str else named
        for digest in named:
            if digest not in self._kept:
                message = (
                    f"names {digest:.80}, which is not there" if digest else "names more than an event holds"
                )
                yield Finding("blob.missing", "error", EVENTS, number, message)

    def _unread(
        self, number: int, raw: bytes, why: str, rest: Iterator[tuple[int, bytes]]
    ) -> Iterator[Finding]:
        """A line that is no event; what follows is only counted, for the hash of the whole."""
        if next(rest, None) is None and is_torn(raw) and not self._folder.holds(MANIFEST):
            yield _torn(number, len(raw) + 1, "info")
            return
        self._readable = False
        for _ in rest:
            pass
        yield Finding("line.broken", "error", EVENTS, number, f"no event can be read here: {why}")

    def _tail(self, lines: Lines) -> Iterator[Finding]:
        number = self.lines.count + 1
        if lines.too_long:
            self._readable = False
            yield Finding("line.broken", "error", EVENTS, lines.too_long, "longer than any event")
        elif not is_torn_tail(lines.torn):
            yield Finding("line.broken", "error", EVENTS, number, f"no event can be read here: {NO_NEWLINE}")
        elif lines.torn:
            sealed = self._folder.holds(MANIFEST)
            yield _torn(number, len(lines.torn), "error" if sealed else "info")
        if not self.lines.count:
            yield Finding("log.empty", "info", EVENTS, 1, "no event was committed")


def _noting(get: blobs.Get, named: dict[str, None]) -> blobs.Get:
    """`get`, with every blob that is asked for added to `named`."""

    def noted(digest: str) -> bytes | None:
        named[digest] = None
        return get(digest)

    return noted


def _torn(number: int, size: int, severity: FindingSeverity) -> Finding:
    message = f"{size} bytes that were not committed"
    return Finding("line.torn", severity, EVENTS, number, message)


def _last_projections(folder: Folder) -> list[int]:
    """The numbers of the last two lines that are projection evidence."""
    found: list[int] = []
    for number, raw in Lines(folder.chunks(EVENTS)):
        if _MARK in raw and _is_projection(raw):
            found = [*found[-1:], number]
    return found


def _is_projection(raw: bytes) -> bool:
    try:
        return parse_line(raw).get("event_type") == PROJECTION
    except JsonRefused:
        return False


def _capped(findings: Iterator[Finding]) -> list[Finding]:
    """The findings, the many of one code cut short."""
    seen: Counter[str] = Counter()
    told: list[Finding] = []
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= MOST:
            told.append(finding)
    for code, count in seen.items():
        if count > MOST:
            last = next(finding for finding in reversed(told) if finding.code == code)
            told.append(last._replace(message=f"and {count - MOST:,} more of this kind", line=0))
    return told
