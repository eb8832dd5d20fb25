"""Has anything in an episode been altered? (docs/reference/episode.md#verify)

Pure over the bytes read; nothing is written. Without a signature it can say that an episode is consistent, not that it
is authentic: whoever may write every file may write all of them anew. It says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import orjson

from cogcli.core.canonical import digest
from cogcli.core.files import FileRefused
from cogcli.core.jsonvalue import object_of
from cogcli.core.strict_json import JsonRefused
from cogcli.episode import blobs
from cogcli.episode.findings import Finding, FindingSeverity, error_finding
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, MANIFEST, is_renamed
from cogcli.episode.log_fold import LogFold
from cogcli.episode.log_lines import FIRST, Lines, parse_line, rules_of
from cogcli.episode.log_reader import event_of
from cogcli.episode.project import state_bytes
from cogcli.episode.refusals import nothing_began_error, open_episode, unreadable
from cogcli.episode.verify.authenticity import NO_TRUST, Trusted, head_findings, signature_findings
from cogcli.episode.verify.documents import DocumentCheck, LogReading, ProjectedState
from cogcli.episode.verify.files import EpisodeFiles, ForeignFiles
from cogcli.episode.verify.foreign import foreign_findings, is_foreign
from cogcli.episode.verify.lines import LineCheck
from cogcli.episode.verify.ordering import OrderingCheck
from cogcli.events.envelope import Event
from cogcli.events.types import row_of

MOST: Final = 100
"""Findings of one code that are listed one by one."""
_MARK: Final = b'"event_type":"run.state_projection"'


def verify(directory: Path, trusted: Trusted = NO_TRUST) -> list[Finding]:
    """All findings in an episode: files first, the log in order, the documents, then what vouches for them.

    Raises EnvironmentRefusal `episode.unreadable` where there is no log to open.
    """
    with open_episode(directory) as folder:
        try:
            return _capped(_verified(folder, trusted))
        except FileRefused as error:
            name = Path(error.path).name
            if name == EVENTS and (began_nothing := nothing_began_error(folder)):
                raise began_nothing from error
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
        yield error_finding("episode.renamed", EVENTS, 1, message)
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
        """The line that has the hash kept elsewhere."""
        self._kept = kept
        self._repairs: list[str] = []
        self.lines = LineCheck()
        self._rules = FIRST
        self._ordering = OrderingCheck()
        self._log_fold = LogFold(self._repairs.append)
        self._content = sha256()
        self._size = 0
        self._states: list[ProjectedState] = []
        self._readable = True
        self.evidence: Event | None = None
        self._last_timestamp = ""

    def log(self, *, intact: bool) -> LogReading:
        """What the pass gave."""
        return LogReading(
            fold=self._log_fold,
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
        chunks = self._chunks()
        lines = Lines(chunks)
        with closing(blobs.BlobFolder(self._folder)) as kept:
            for number, raw, value in lines.objects():
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
                    yield from self._ordering.check(number, event)
                yield from self._fold(number, event, projections)
        for _ in chunks:
            pass  # what follows a refused line is only counted, for the hash of the whole
        if not (lines.refused and lines.refused.ended):
            yield from self.lines.end()
        yield from self._tail(lines)

    def _chunks(self) -> Iterator[bytes]:
        for chunk in self._folder.chunks(EVENTS):
            self._content.update(chunk)
            self._size += len(chunk)
            yield chunk

    def _fold(self, number: int, event: Event, projections: list[int]) -> Iterator[Finding]:
        if row_of(event.event_type).projected:
            self.evidence = event
            if number in projections and self.lines.chained:
                yield from self._at_projection(number, event)
        elif event.phase == "terminate":
            self.evidence = None  # it was of the run before its end
        self._log_fold.apply(event)
        if self._repairs:
            severity: FindingSeverity = "error" if self.lines.chained else "info"
            for repair in self._repairs:
                yield Finding("projection.repaired", severity, EVENTS, number, repair)
            self._repairs.clear()

    def _at_projection(self, number: int, event: Event) -> Iterator[Finding]:
        named: dict[str, None] = {}

        def note(text: bytes) -> str:
            named[name := digest(text)] = None
            return name

        document = self._log_fold.projection.result(note)
        data = state_bytes(document, self._log_fold.projection.rules)
        self._states.append(ProjectedState(data, tuple(named)))
        recorded = object_of(event.payload)
        expected = {
            "status": document["outcomes"]["status"],
            "outcomes": document["outcomes"],
            "links": document["links"],
        }
        for key, value in expected.items():
            if orjson.dumps(recorded.get(key)) != orjson.dumps(value):
                message = f"its {key} are not what the log says at this point"
                yield error_finding("projection.differs", EVENTS, number, message)

    def _missing_blobs(self, number: int, named: Iterable[str], event: Event) -> Iterator[Finding]:
        if event.phase == "start":
            specs = object_of(object_of(event.payload).get("pins")).get("specs_blob")
            named = [*named, specs] if type(specs) is str else named
        for name in named:
            if name not in self._kept:
                message = (
                    f"names {name:.80}, which is not there" if name else "names more than an event holds"
                )
                yield error_finding("blob.missing", EVENTS, number, message)

    def _tail(self, lines: Lines) -> Iterator[Finding]:
        """What follows the last line that could be read."""
        sealed = self._folder.holds(MANIFEST)
        if lines.refused and (sealed or not lines.torn):
            self._readable = not (lines.refused.ended or lines.too_long)
            why = f"no event can be read here: {lines.refused.why}"
            message = "longer than any event" if lines.too_long else why
            yield error_finding("line.broken", EVENTS, lines.refused.number, message)
        elif lines.torn:
            message = f"{lines.torn} bytes that were not committed"
            severity: FindingSeverity = "error" if sealed else "info"
            yield Finding("line.torn", severity, EVENTS, self.lines.count + 1, message)
        if not lines.count:
            yield Finding("log.empty", "info", EVENTS, 1, "no event was committed")


def _noting(get: blobs.Get, named: dict[str, None]) -> blobs.Get:
    """`get`, with every blob that is asked for added to `named`."""

    def noted(digest: str) -> bytes | None:
        named[digest] = None
        return get(digest)

    return noted


def _last_projections(folder: Folder) -> list[int]:
    """The numbers of the last two lines that are projection evidence."""
    found: list[int] = []
    for number, raw in Lines(folder.chunks(EVENTS)):
        if _MARK in raw:
            with suppress(JsonRefused):
                if row_of(parse_line(raw).get("event_type")).projected:
                    found = [*found[-1:], number]
    return found


def _capped(findings: Iterator[Finding]) -> list[Finding]:
    """The findings, the many of one code cut short."""
    seen: Counter[str] = Counter()
    listed: list[Finding] = []
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= MOST:
            listed.append(finding)
    for code, count in seen.items():
        if count > MOST:
            last = next(finding for finding in reversed(listed) if finding.code == code)
            listed.append(last._replace(message=f"and {count - MOST:,} more of this kind", line=0))
    return listed
