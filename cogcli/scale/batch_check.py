"""`verify ba_...`: are ledger, episodes and output of a batch unaltered, and do they agree?
(docs/reference/batch.md#verify)
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import find_key
from cogcli.app.verify_episodes import trusted_of, verify_episode
from cogcli.base.errors import CogcliError, ServiceResolutionError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system import encode_ulid
from cogcli.declarations.batch_records import BatchHeader, BatchTags
from cogcli.declarations.reading import read_record
from cogcli.episode.archive.access import open_archives
from cogcli.episode.archive.locator import open_cached_archive
from cogcli.episode.layout import Finding, FindingSeverity, error_finding, is_own_id
from cogcli.scale.batch_folder import HEADER, LINES, SUMS, BatchFolder, Shard, read_header
from cogcli.scale.batch_request import STDOUT
from cogcli.scale.identity import BatchKey, LineTask, created_ms_of, line_hash
from cogcli.scale.input_lines import open_input, read_checked_lines
from cogcli.scale.ledger import LedgerEntry, archive_location
from cogcli.scale.line_archive import LineArchive
from cogcli.scale.line_result import read_tags, result_from_entry, result_from_episode
from cogcli.scale.line_set import LineSet
from cogcli.scale.output import read_rows
from cogcli.scale.table_check import TableRows
from cogcli.scale.tables import kind_of_file, require_reader

MOST_FINDINGS: Final = 100
_OF_LINE: Final = 21
"""Characters of an episode's id that the time of its batch and its line determine."""


def check_batch(settings: Settings, batch_id: str) -> list[Finding]:
    """Return the findings about a batch, at most 100. Raise UsageError `batch.unknown`, or UnusableEnvironment
    `batch.damaged` for a header that cannot be read.
    """
    found: list[Finding] = []
    with BatchFolder.open(settings.runs_dir, batch_id) as batch:
        for finding in _BatchCheck(settings, batch).findings():
            found.append(finding)
            if len(found) >= MOST_FINDINGS:
                break
    return found


class _ExpectedRows:
    """The lines that must have a row in the output, according to the ledger, with 8 bytes of the hash of each row."""

    def __init__(self, lines: int) -> None:
        self._ended = LineSet()
        self._final = LineSet()
        self._hashes = array("Q", bytes(8 * (lines + 1)))

    def record_row(self, entry: LedgerEntry, row: bytes | None) -> bool:
        """Record the row of an entry. `row` is None if it cannot be rebuilt.

        Return False if an earlier entry of the line counts instead.
        """
        if entry.line in self._final:
            return False
        self._ended.add(entry.line)
        if entry.is_final:
            self._final.add(entry.line)
        self._hashes[entry.line] = 0 if row is None else _row_hash(row)
        return True

    def problem(self, line: int, row: bytes) -> str:
        """Return a message about a wrong row of the output; empty if the row matches the ledger."""
        if line not in self._ended:
            return "has a row, and no entry in the ledger"
        expected = self._hashes[line]
        return (
            "has a row that differs from its episode" if expected not in (0, _row_hash(row)) else ""
        )

    def first_missing(self, seen: LineSet) -> int:
        """Return the first line that has an entry but no row; 0 if every entry has one."""
        lines = range(1, len(self._hashes))
        return next((line for line in lines if line in self._ended and line not in seen), 0)


def _row_hash(row: bytes) -> int:
    """Return the first 8 bytes of a row's hash, as a number."""
    return int.from_bytes(sha256(row).digest()[:8]) or 1


class _Try(NamedTuple):
    """The number of a line's try, and the batch in which the try ran."""

    key: BatchKey
    attempt: int


class _KnownLines:
    """Values derived from the input lines: each line's hash, and the last part of its episode id."""

    def __init__(self, key: BatchKey, tries: Mapping[int, _Try] = MappingProxyType({})) -> None:
        """`tries` maps lines that ran again to their tries. All other lines ran for the first time."""
        self._key = key
        self._tries = tries
        self._hashes = array("Q", [0])
        self._parts = array("Q", [0])

    def add(self, line: int, data: bytes) -> None:
        """Add the next input line."""
        key, attempt = self._tries.get(line, _Try(self._key, 1))
        self._hashes.append(int(line_hash(data), 16))
        self._parts.append(key.line_id_suffix(LineTask(line, attempt, data)))

    def problem(self, entry: LedgerEntry) -> str:
        """Return how an entry differs from its line; empty if it does not."""
        if entry.input_hash != f"{self._hashes[entry.line]:016x}":
            return "the hash is not that of the line"
        if entry.episode is None:
            return ""
        key, attempt = self._tries.get(entry.line, _Try(self._key, 1))
        expected = key.episode_id_of(entry.line, self._parts[entry.line])
        if entry.episode == expected and entry.attempt == attempt:
            return ""
        return f"the episode of try {attempt} of the line is {expected}"


class _BatchCheck:
    """The check of one batch."""

    def __init__(self, settings: Settings, batch: BatchFolder) -> None:
        self._settings = settings
        self._batch = batch
        self._runs_dir = Path(settings.runs_dir)
        self._trusted = trusted_of(settings)
        self._lines: _KnownLines | None = None
        self._archives = open_archives(self._runs_dir)
        self._archive = LineArchive(self._runs_dir, batch.batch_id)

    def findings(self) -> Iterator[Finding]:
        """Yield the findings of header, ledgers, episodes and outputs."""
        header = read_header(self._batch.folder)
        yield from self._check_origin(header)
        if header.batch_id != self._batch.batch_id:
            yield error_finding(
                "batch.damaged", HEADER, 0, "the header is that of another batch",
                expected=self._batch.batch_id, found=header.batch_id,
            )  # fmt: skip
        for shard in self._batch.shards():
            yield from self._check_shard(header, shard)

    def _check_origin(self, header: BatchHeader) -> Iterator[Finding]:
        """Yield the findings about header and input. The input file is read only if the user's own process wrote the
        header.
        """
        try:
            self._batch.read_header(find_key(self._settings.environ))
            self._lines = self._read_lines(header)
        except CogcliError as error:
            if error.code == "batch.foreign":
                yield _build_finding(error.code, "warning", HEADER, error.message)
                return
            text = f"ids were not compared with the input: {error.message}"
            yield _build_finding("batch.input-changed", "warning", HEADER, text)

    def _read_lines(self, header: BatchHeader) -> _KnownLines:
        """Return the values derived from the input. Raise CogcliError if the input is missing or was changed."""
        folder = self._batch.folder
        path = os.fspath(folder.path / LINES) if folder.holds(LINES) else header.input.path
        sums = folder.read(SUMS, limit=1 << 30).decode("ascii", "replace").split()
        key = BatchKey(header.batch_id, header.created_ms)
        known = _KnownLines(key, self._find_tries(key) if header.retry else {})
        for line, data in read_checked_lines(partial(open_input, path), sums, header.batch_id):
            known.add(line, data)
        return known

    def _find_tries(self, key: BatchKey) -> dict[int, _Try]:
        """Return the tries of the lines that ran again: of this batch, or of the one whose waiting run was resumed."""
        found: dict[int, _Try] = {}
        for shard in self._batch.shards():
            for entry in self._batch.read_ledger(shard):
                if entry.episode is not None and is_own_id(entry.episode):
                    found[entry.line] = _Try(self._key_of(key, entry), entry.attempt)
        return found

    def _key_of(self, key: BatchKey, entry: LedgerEntry) -> BatchKey:
        """Return the batch that the episode of an entry belongs to; this one if the episode names none."""
        created_ms = created_ms_of(entry.episode or "")
        if created_ms == key.created_ms:
            return key
        with suppress(CogcliError):
            tags = read_record(BatchTags, read_tags(self._path_of(entry)))
            return BatchKey(tags.batch, created_ms)
        return key

    def _check_shard(self, header: BatchHeader, shard: Shard) -> Iterator[Finding]:
        """Yield the findings about the ledger, the episodes and the output of a shard."""
        output = self._find_output(shard)
        with ExitStack() as opened:
            table = None
            if kind_of_file(output):
                table = opened.enter_context(closing(TableRows(header.input.lines)))
            expected = _ExpectedRows(header.input.lines)
            yield from self._check_ledger(header, shard, expected, table)
            if table is not None:
                yield from self._check_table(output, table)
            elif output:
                yield from self._check_output(output, expected)

    def _check_ledger(
        self, header: BatchHeader, shard: Shard, expected: _ExpectedRows, table: TableRows | None
    ) -> Iterator[Finding]:
        """Yield the findings about a ledger and its episodes. Add the rows that the output must have to `expected` and
        `table`.
        """
        reading = self._batch.read_ledger(shard)
        for entry in reading:
            yield from self._check_entry(header, shard, entry, reading.count)
            if entry.line <= header.input.lines:
                row = self._rebuild_row(entry)
                if expected.record_row(entry, row) and table is not None:
                    table.note(entry.line, row)
        if reading.fault:
            yield error_finding("batch.damaged", shard.ledger, 0, reading.fault)

    def _check_entry(
        self, header: BatchHeader, shard: Shard, entry: LedgerEntry, number: int
    ) -> Iterator[Finding]:
        """Yield the findings about one entry: its line, the id of its episode, and the episode."""
        if not (entry.line <= header.input.lines and shard.has(entry.line)):
            text = f"line {entry.line} is no line of the shard {shard.name}"
            yield error_finding("batch.damaged", shard.ledger, number, text)
            return
        if self._lines and (problem := self._lines.problem(entry)):
            text = f"line {entry.line}: {problem}"
            yield error_finding("batch.damaged", shard.ledger, number, text)
        if entry.episode is None:
            return
        expected = f"ep_{encode_ulid(header.created_ms, entry.line << 40)}"[:_OF_LINE]
        if not header.retry and not entry.episode.startswith(expected):
            text = f"the episode is not one of line {entry.line}"
            yield error_finding(
                "batch.damaged", shard.ledger, number, text, expected=expected, found=entry.episode
            )
        yield from self._check_episode(shard, entry, number)

    def _check_episode(self, shard: Shard, entry: LedgerEntry, number: int) -> Iterator[Finding]:
        """Yield a finding if an entry does not match its episode."""
        directory = self._path_of(entry)
        is_archived = self._archives is not None and self._archives.has(directory.name)
        if not directory.is_dir() and not is_archived:
            text = f"`{directory.name}` does not exist: it was removed"
            yield _build_finding("episode.missing", "warning", shard.ledger, text, number)
            return
        try:
            verified = verify_episode(directory, self._trusted)
            for each in verified.findings:
                if each.severity == "error":
                    yield each._replace(file=f"{directory.name}/{each.file}")
                    return
            if (
                entry.is_final
                and entry.error is None
                and not self._matches_episode(entry, directory)
            ):
                text = f"the entry of line {entry.line} differs from `{directory.name}`"
                yield error_finding("batch.damaged", shard.ledger, number, text)
        except CogcliError as error:
            yield error_finding(error.code, directory.name, 0, error.message)

    def _matches_episode(self, entry: LedgerEntry, directory: Path) -> bool:
        """Return whether an entry matches its episode and the place of the episode. Raise CogcliError for a damaged
        episode.
        """
        found = result_from_episode(directory, entry.line, entry.attempt, entry.input_hash)
        return found.placed(entry.at).entry == entry and not self._is_missing_in_archive(entry)

    def _is_missing_in_archive(self, entry: LedgerEntry) -> bool:
        """Return whether the entry's archive exists but has no such episode at its place."""
        path = self._archive.directory / entry.archive
        if not entry.archive or not path.is_file():
            return False
        with open_cached_archive(path) as archive:
            place = archive.find(entry.episode or "")
        return place is None or archive_location(path.name, place.offset) != entry.at

    def _path_of(self, entry: LedgerEntry) -> Path:
        """Return the path of an episode: its folder, its place in the archive of the entry, or in another one."""
        path = self._archive.path_of(entry.at, entry.episode or "")
        is_gone = path.parent != self._runs_dir and not path.parent.is_file()
        return self._runs_dir / path.name if is_gone else path

    # -- output --------------------------------------------------------------------------------------------------------

    def _find_output(self, shard: Shard) -> str:
        """Return the path of a shard's result file; empty if the file does not exist."""
        command = self._batch.find_command(shard)
        if command is None or command.output == STDOUT or not os.path.lexists(command.output):
            return ""
        return command.output

    def _check_table(self, output: str, table: TableRows) -> Iterator[Finding]:
        """Yield the findings about a table."""
        name = self._settings.display_path(output)
        try:
            require_reader(output)
            for number, text in table.problems(output):
                yield error_finding("batch.rows", name, number, text)
        except ServiceResolutionError as error:
            yield _build_finding(error.code, "warning", name, f"not compared: {error.message}")
        except CogcliError as error:
            yield error_finding(error.code, name, error.line, error.message)

    def _check_output(self, output: str, expected: _ExpectedRows) -> Iterator[Finding]:
        """Yield the findings about the output: it has the row of each entry, and no other."""
        name = self._settings.display_path(output)
        seen = LineSet()
        try:
            for number, (line, row) in enumerate(read_rows(output), 1):
                problem = expected.problem(line, row) if seen.add(line) else "has two rows"
                if problem:
                    yield error_finding("batch.rows", name, number, f"line {line} {problem}")
        except CogcliError as error:
            yield error_finding("batch.rows", name, error.line, error.message)
        missing = expected.first_missing(seen)
        if missing:
            yield error_finding("batch.rows", name, 0, f"line {missing} has no row")

    def _rebuild_row(self, entry: LedgerEntry) -> bytes | None:
        """Return the row of an entry, rebuilt from its episode. Return None if the episode is not readable."""
        if entry.error is not None or entry.episode is None:
            return result_from_entry(entry).row
        try:
            directory = self._path_of(entry)
            return result_from_episode(directory, entry.line, entry.attempt, entry.input_hash).row
        except CogcliError:
            return None


def _build_finding(
    code: str, severity: FindingSeverity, file: str, message: str, line: int = 0
) -> Finding:
    return Finding(code, severity, file, line, message)
