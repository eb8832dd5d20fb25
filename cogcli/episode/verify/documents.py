"""The comparison of the documents of an episode with its log, byte for byte.

1. `state.json` is the projection at the last `run.state_projection`, whose outcomes and links it repeats. Before an
   episode is sealed it may be the projection before that one. While the run is alive it may be a later one, too.
2. `learn.jsonl`, `summary.json` and the manifest are derived again and compared. A run that has not terminated has an
   empty `learn.jsonl` and no other document but `state.json`.
3. The manifest names every existing file once, and no other file.
4. In a sealed episode every file must exist. Without a manifest the episode is unfinished: information, not an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import zip_longest
from typing import Final

from cogcli.base.files import UnreadableFile
from cogcli.base.strict_json import InvalidJson
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.episode.action_log import DocumentText
from cogcli.episode.blobs import parse
from cogcli.episode.document_bytes import to_bytes
from cogcli.episode.folder import Folder
from cogcli.episode.layout import (
    BLOBS,
    CONTEXT,
    DECISION,
    EVENTS,
    FILES,
    LEARN,
    MANIFEST,
    STATE,
    SUMMARY,
    WAYPOINT,
    Finding,
    describe_content,
    error_finding,
    is_blob_name,
)
from cogcli.episode.learn import learn_lines
from cogcli.episode.manifest import (
    NamedEpisode,
    StoredManifest,
    build_manifest,
    entry,
    measure,
    with_signature,
)
from cogcli.episode.signing import is_signature
from cogcli.episode.summary import summary_of
from cogcli.episode.verify.log_reading import LogReading
from cogcli.episode.waypoint import MAX_BYTES

_LIMIT: Final = 1 << 30
_UNEXPECTED: Final = 16 * 1024 * 1024
"""The bytes by which a document may be too large and still be read, to find where it differs."""
_ALIVE: Final = "cannot be compared while the run is alive"
_SHOWN: Final = 120
"""The length of a line of a document in a finding."""


class FileEntry(Record):
    """A file as a manifest lists it. A member of a wrong type is absent, and fits no file."""

    name: str
    sha256: str | None = None
    size_bytes: int | None = None


class DocumentCheck:
    """Compares the documents of one episode with its log."""

    def __init__(self, folder: Folder, files: dict[str, int], log: LogReading) -> None:
        self._folder = folder
        self._files = files
        self._log = log
        self._sealed = MANIFEST in files
        self._ended = log.fold.projection.terminated
        self._expected: dict[str, DocumentText] = {}

    def check(self) -> Iterator[Finding]:
        """Yield the findings about the documents."""
        if self._log.readable:
            yield from self._check_state()
            yield from self._check_decision()
            yield from self._check_ending()
            yield from self._check_waypoint()
        if self._sealed:
            yield from self._check_manifest()
        else:
            yield self._check_unsealed()

    def _check_waypoint(self) -> Iterator[Finding]:
        """Yield a finding about a waypoint that no resume can use. It is not an error, since a waypoint is a cache."""
        if not self._folder.holds(WAYPOINT):
            return
        digest = ""
        with suppress(UnreadableFile):
            if self._folder.size(WAYPOINT) <= MAX_BYTES:
                digest, _ = measure(self._folder, WAYPOINT)
        if digest not in self._log.waypoints:
            message = "is none that the log names: a resume reads the whole log instead"
            yield Finding("waypoint.unused", "info", WAYPOINT, 0, message)

    def _check_unsealed(self) -> Finding:
        """Return the finding about a missing manifest: an error if the run has ended and no process is about to
        write it.
        """
        if not self._ended:
            return Finding("episode.unsealed", "info", MANIFEST, 0, "the run has not ended")
        if self._folder.is_locked(EVENTS):
            return Finding("episode.unsealed", "info", MANIFEST, 0, "the run is being sealed")
        message = "the run has ended, but the episode is not sealed: `verify --repair` seals it"
        return error_finding("episode.unsealed", MANIFEST, 0, message)

    # -- documents ----------------------------------------------------------------------------------------------------

    def _check_state(self) -> Iterator[Finding]:
        states = self._log.states
        if not states:
            if STATE in self._files:
                message = "no event of the log says that it was written"
                yield error_finding("state.unproven", STATE, 1, message)
            elif self._sealed:
                yield error_finding("file.missing", STATE, 0, "a sealed episode has one")
            return
        yield from self._check_projections(STATE, [state.text for state in states])
        if not self._has_bytes(STATE, states[0].text):
            return
        if states[0].snapshot and not self._sealed:
            yield self._snapshot_finding(states[0].events)
        for digest in states[0].blobs:
            if f"{BLOBS}/{digest[7:]}" not in self._files:
                yield error_finding("blob.missing", STATE, 0, f"names {digest}, which is not there")

    def _check_projections(self, name: str, versions: list[DocumentText]) -> Iterator[Finding]:
        """Compare a document with its versions at the last projections, the latest first."""
        expected = self._expected[name] = versions[0]
        if self._has_bytes(name, expected):
            return
        if name not in self._files:
            if self._sealed or len(self._log.states) > 1:
                yield error_finding("file.missing", name, 0, "the log says that it was written")
        elif not self._sealed and any(self._has_bytes(name, each) for each in versions[1:]):
            message = "is that of the projection before the last"
            yield Finding("state.stale", "info", name, 0, message)
        elif self._is_alive():
            yield Finding("state.stale", "info", name, 0, _ALIVE)
        else:
            yield self._difference_finding(name, expected)

    def _snapshot_finding(self, held: int) -> Finding:
        """Return the finding about a `state.json` that was written during the run."""
        later = self._log.lines.count - held - 1
        since = f"; {later} came later" if later else ""
        message = f"a snapshot: it holds the first {held} events{since}"
        return Finding("state.snapshot", "info", STATE, 0, message)

    def _is_alive(self) -> bool:
        """Return whether a process writes the episode while it is read."""
        return not self._sealed and self._folder.is_locked(EVENTS)

    def _check_decision(self) -> Iterator[Finding]:
        """Compare the documents that only an agent's run has."""
        states = self._log.states
        for name in (CONTEXT, DECISION):
            if states and name in states[0].decision:
                found = [state.decision[name] for state in states if name in state.decision]
                yield from self._check_projections(name, [DocumentText(data) for data in found])
            elif name in self._files and not self._sealed:
                message = "no event of the log says that it was written"
                yield error_finding("file.early", name, 1, message)

    def _check_ending(self) -> Iterator[Finding]:
        if not self._ended:
            yield from self._early_documents()
            return
        fold = self._log.fold
        for name, data in ((LEARN, learn_lines(fold)), (SUMMARY, to_bytes(summary_of(fold)))):
            expected = self._expected[name] = DocumentText(data)
            if name not in self._files or (name == LEARN and not self._files[name]):
                if self._sealed:
                    yield error_finding("file.missing", name, 0, "a sealed episode has one")
            elif not self._has_bytes(name, expected):
                yield self._difference_finding(name, expected)

    def _early_documents(self) -> Iterator[Finding]:
        """Yield documents of the end of a run that has not ended."""
        if self._files.get(LEARN):
            yield error_finding("learn.early", LEARN, 1, "the run has not ended")
        for name in (SUMMARY, MANIFEST):
            if name in self._files:
                yield error_finding("file.early", name, 1, "the run has not ended")

    def _has_bytes(self, name: str, text: DocumentText) -> bool:
        """Return whether a file has exactly these bytes."""
        if self._files.get(name) != text.size:
            return False
        try:
            return text.equals(self._folder.chunks(name))
        except UnreadableFile:
            return False

    def _difference_finding(self, name: str, expected: DocumentText) -> Finding:
        size = self._files[name]
        if size > expected.size + _UNEXPECTED:  # it is not read, however large it is
            code = f"{name.partition('.')[0]}.differs"
            return error_finding(
                code, name, 0, "does not match the log",
                expected=describe_content(expected.sha256, expected.size), found=describe_content("", size),
            )  # fmt: skip
        try:
            return _build_difference(name, self._folder.chunks(name), expected.chunks())
        except UnreadableFile:
            return error_finding("file.unreadable", name, 0, "cannot be read")

    def _read_file(self, name: str) -> bytes | None:
        if name not in self._files:
            return None
        try:
            return self._folder.read(name, limit=_LIMIT)
        except UnreadableFile:
            return None

    # -- the manifest -------------------------------------------------------------------------------------------------

    def _check_manifest(self) -> Iterator[Finding]:
        data = self._read_file(MANIFEST)
        if data is None:
            yield error_finding("file.unreadable", MANIFEST, 0, "cannot be read")
            return
        findings: list[Finding] = []
        try:
            manifest = parse(data)
        except InvalidJson as error:
            findings.append(
                error_finding("manifest.syntax", MANIFEST, error.line or 1, error.message)
            )
            manifest = {}
        else:
            manifest = manifest if type(manifest) is dict else {}
            if other := self._other_episode(manifest):
                line = data[: data.find(b'"episode_id"')].count(b"\n") + 1
                yield error_finding(
                    "episode.other", MANIFEST, line, f"it is the manifest of {other:.80}"
                )
                return
            entries: dict[str, FileEntry] = {}
            stored = read_record(StoredManifest, manifest)
            findings += self._check_listed_files(stored.files, entries)
            findings += self._check_content(stored.chain, entries)
        yield from findings
        # One extra or missing file makes the whole manifest differ: that is one finding, not two. Both together may be
        # an altered name.
        codes = {finding.code for finding in findings if finding.file != MANIFEST}
        if self._log.readable and self._log.intact and len(codes) != 1:
            yield from self._check_manifest_bytes(data, manifest)

    def _other_episode(self, manifest: Json) -> str:
        """Return the episode that a manifest copied from elsewhere names."""
        named, ended = read_record(NamedEpisode, manifest).episode_id, self._ended
        return named if ended and named is not None and named != ended.episode_id else ""

    def _check_listed_files(
        self, listed: object, entries: dict[str, FileEntry]
    ) -> Iterator[Finding]:
        if type(listed) is not list:
            yield error_finding("manifest.files", MANIFEST, 1, "lists no files")
            return
        for item in listed:
            file = read_record(FileEntry, item)
            if not _can_be_listed(file.name):
                message = "lists something that is not a file of an episode"
                yield error_finding("manifest.files", MANIFEST, 1, message)
                return
            if file.name in entries:
                yield error_finding("manifest.files", MANIFEST, 1, f"lists `{file.name}` twice")
            entries[file.name] = file
        for name in sorted(entries.keys() - self._files.keys()):
            expected = named_content(entries[name])
            message = "the manifest names it"
            yield error_finding(
                "file.missing", name, 0, message, expected=expected, found="no such file"
            )
        for name in sorted(self._files.keys() - entries.keys() - {MANIFEST}):
            yield error_finding("file.extra", name, 0, "the manifest does not name it")

    def _check_content(self, chain: object, entries: dict[str, FileEntry]) -> Iterator[Finding]:
        """Yield a finding for each altered file that only the manifest vouches for."""
        for name, file in entries.items():
            if name in self._expected or name.startswith(f"{BLOBS}/") or name not in self._files:
                continue
            if name == EVENTS:
                vouched = not self._log.intact or chain == self._log.chain
                found, line = (self._log.sha256, self._log.size), self._log.lines.count
            else:
                vouched, line = False, 0
                found = self._measure_named_file(name, file)
            if found[0] != file.sha256 and not vouched:
                expected = named_content(file)
                message = "is not the file that the manifest names"
                yield error_finding(
                    "file.altered",
                    name,
                    line,
                    message,
                    expected=expected,
                    found=describe_content(*found),
                )

    def _measure_named_file(self, name: str, file: FileEntry) -> tuple[str, int]:
        """Return digest and size of a file. The digest is empty if the size alone proves that the file differs."""
        size = self._files[name]
        if file.size_bytes is None or file.size_bytes == size:
            return self._measure_file(name)
        return "", size

    def _measure_file(self, name: str) -> tuple[str, int]:
        try:
            return measure(self._folder, name)
        except UnreadableFile:
            return "", 0

    def _expected_entry(self, name: str) -> Json:
        """Return the expected entry of a file: derived from the log if possible, else from the file on disk."""
        if name in self._expected:
            expected = self._expected[name]
            return entry(name, expected.sha256, expected.size)
        if name == EVENTS:
            return entry(name, self._log.sha256, self._log.size)
        if name.startswith(f"{BLOBS}/"):
            return entry(name, name[len(BLOBS) + 1 :], self._files[name])
        return entry(name, *self._measure_file(name))

    def _check_manifest_bytes(self, data: bytes, manifest: Json) -> Iterator[Finding]:
        log = self._log
        expected = build_manifest(
            episode_id=self._ended.episode_id if self._ended else "",
            created_at=log.last_timestamp,
            files=[self._expected_entry(name) for name in sorted(self._files) if name != MANIFEST],
            chain=self._log.chain,
            pins=log.fold.pins,
        )
        if is_signature(read_record(StoredManifest, manifest).signature):
            expected = with_signature(expected, manifest)
        if data != (whole := to_bytes(expected)):
            yield _build_difference(
                MANIFEST, [data], [whole], "is not what the log and the files say"
            )


def _can_be_listed(name: str) -> bool:
    """Return whether an episode may have a file of this name, other than the manifest itself."""
    folder, _, blob = name.rpartition("/")
    return is_blob_name(blob) if folder == BLOBS else name in FILES and name != MANIFEST


def named_content(file: FileEntry) -> str:
    """Return size and hash of a file, as the manifest lists them."""
    return describe_content(f"{file.sha256 or '':.80}", file.size_bytes)


def _build_difference(
    name: str,
    found: Iterable[bytes],
    expected: Iterable[bytes],
    message: str = "does not match the log",
) -> Finding:
    code = f"{name.partition('.')[0]}.differs"
    mine, theirs = _DocumentLines(expected), _DocumentLines(found)
    line, (wanted, there) = _first_difference(mine, theirs)
    return error_finding(
        code, name, line, message, expected=mine.describe(line, wanted), found=theirs.describe(line, there)
    )  # fmt: skip


class _DocumentLines:
    """The lines of a document that arrives in chunks; after reading also its size and hash."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._content = sha256()
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        rest = b""
        for chunk in self._measure_chunks():
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
        yield rest

    def _measure_chunks(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._content.update(chunk)
            self._size += len(chunk)
            yield chunk

    def describe(self, number: int, line: bytes | None) -> str:
        """Return size, hash and one line of the document."""
        for _ in self._measure_chunks():
            pass
        text = "" if line is None else line.decode("utf-8", "replace").strip()
        shown = f"line {number}: {text[:_SHOWN]}" if text else f"line {number} does not exist"
        return f"{describe_content(self._content.hexdigest(), self._size)}; {shown}"


def _first_difference(
    left: Iterable[bytes], right: Iterable[bytes]
) -> tuple[int, tuple[bytes | None, bytes | None]]:
    """Return the line, from 1, on which two documents begin to differ, and that line of each."""
    number = 0
    for number, (a, b) in enumerate(zip_longest(left, right), 1):
        if a != b:
            return number, (a, b)
    return number, (None, None)
