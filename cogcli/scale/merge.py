"""`batch merge`: one result file from several, by line (docs/reference/batch.md#merge).

1. Shards must be all the parts of one batch; a gap or an overlap is refused.
2. Of other files a later row wins: those of failed lines that ran again.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import orjson

from cogcli.base.errors import UsageError
from cogcli.base.files import UnreadableFile, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.batch_records import BatchSummary
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import disk_refusal
from cogcli.scale.batch_folder import Shard
from cogcli.scale.batch_session import SUMMARY
from cogcli.scale.input_lines import open_input
from cogcli.scale.latency import LatencyBuckets
from cogcli.scale.line_set import LineSet
from cogcli.scale.output import ResultRow, create_temporary, read_rows, removed_on_error
from cogcli.scale.shard_words import parse_shard
from cogcli.scale.totals import FIRST_LINES

_MOST_FILES: Final = 1 << 16
_OFFSET_BITS: Final = 46
_LARGEST_SUMMARY: Final = 16 * 1024 * 1024


class ResultFile(NamedTuple):
    """A result file with its summary, if it has one next to it."""

    path: str
    summary: BatchSummary | None

    @property
    def shard(self) -> Shard:
        """The shard that the summary names; by default all lines."""
        return Shard() if self.summary is None else parse_shard(self.summary.shard, {})


class MergedResults(NamedTuple):
    """The figures of a merge."""

    lines: int
    by_status: Json
    by_code: Json


def read_result_file(path: str) -> ResultFile:
    """Return a result file with its summary. A summary that cannot be read counts as none."""
    try:
        json = orjson.loads(read_regular(path + SUMMARY, limit=_LARGEST_SUMMARY))
        return ResultFile(path, read_record(BatchSummary, json, whole=True))
    except (UnreadableFile, ValueError):
        return ResultFile(path, None)


def merge_results(files: Sequence[ResultFile], output: str) -> MergedResults:
    """Write the rows of all files to `output`, in the order of lines, and its summary.

    Raise UsageError `batch.parts`, UnusableEnvironment `batch.rows` or `env.disk`.
    """
    if len(files) > _MOST_FILES:
        raise UsageError("usage.value", f"{len(files)} files, at most {_MOST_FILES} are merged")
    _require_complete_batch(files)
    places = _index_rows(files)
    counts = _RowCounts()
    try:
        temporary, handle = create_temporary(output)
        with removed_on_error(temporary), os.fdopen(handle, "wb") as target:
            for row in _rows_in_order(files, places):
                counts.add(row)
                target.write(row)
            target.flush()
            os.fsync(target.fileno())
            os.replace(temporary, output)
    except OSError as error:
        raise disk_refusal(output, error) from error
    merged = MergedResults(len(places), counts.named(counts.statuses), counts.named(counts.codes))
    summary = _build_summary(files, merged)
    write_atomic(output + SUMMARY, orjson.dumps(summary, option=orjson.OPT_INDENT_2) + b"\n")
    return merged


def _require_complete_batch(files: Sequence[ResultFile]) -> None:
    """Raise UsageError unless the files of shards are all the shards of one batch, each once."""
    shards = [file for file in files if file.shard.parts > 1]
    if not shards:
        return
    _require_one_batch(shards)
    counts = Counter(file.shard for file in shards)
    twice = [shard.name for shard, count in counts.items() if count > 1]
    if twice:
        raise parts_error(f"shard {twice[0]} appears twice", ", ".join(twice))
    missing = _find_missing_shards(counts)
    if missing:
        raise parts_error("some shards are missing", "missing " + ", ".join(missing[:10]))


def _require_one_batch(shards: Sequence[ResultFile]) -> None:
    """Raise UsageError if the summaries of the shards name several batches."""
    batches = sorted({file.summary.batch_id for file in shards if file.summary is not None})
    if len(batches) > 1:
        raise parts_error("the shards are of several batches", ", ".join(batches))


def _find_missing_shards(present: Collection[Shard]) -> list[str]:
    """Return the names of the shards that are missing among the given ones, for each number of parts."""
    missing: list[str] = []
    for parts in sorted({shard.parts for shard in present}):
        shards = [Shard(place, parts) for place in range(parts)]
        missing += [shard.name for shard in shards if shard not in present]
    return missing


def parts_error(what: str, found: str) -> UsageError:
    """Return the error for result files that are not all the parts of one batch."""
    expected = "the results of all shards of one batch, each once"
    return UsageError("batch.parts", what, expected=expected, found=found)


def _index_rows(files: Sequence[ResultFile]) -> array[int]:
    """Return by line, from 1, the file and offset of its row. Raise UsageError for a gap or an overlap."""
    places: array[int] = array("Q")
    sharded = LineSet()
    for number, file in enumerate(files):
        offset = 0
        for line, row in read_rows(file.path):
            _require_part(file, line, sharded)
            if line > len(places):
                places.frombytes(bytes(8 * (line - len(places))))
            places[line - 1] = number << _OFFSET_BITS | offset + 1
            offset += len(row)
    if 0 in places:
        line = places.index(0) + 1
        raise parts_error(f"no file has a result for line {line}", f"{len(places)} lines")
    return places


def _require_part(file: ResultFile, line: int, sharded: LineSet) -> None:
    shard = file.shard
    if shard.parts > 1 and not (shard.has(line) and sharded.add(line)):
        raise parts_error(
            f"`{file.path}` has line {line}, which is not one of its shard", shard.name
        )


def _rows_in_order(files: Sequence[ResultFile], places: array[int]) -> Iterator[bytes]:
    opened: dict[int, BinaryIO] = {}
    try:
        for place in places:
            number = place >> _OFFSET_BITS
            if number not in opened:
                opened[number] = open_input(os.path.realpath(files[number].path))
            file = opened[number]
            file.seek((place & (1 << _OFFSET_BITS) - 1) - 1)
            row = file.readline()
            yield row if row.endswith(b"\n") else row + b"\n"
    finally:
        for file in opened.values():
            file.close()


class _RowCounts:
    """The statuses and codes of rows, with the first lines of each."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self._first: dict[str, list[int]] = {}

    def add(self, row: bytes) -> None:
        """Count a row."""
        value = orjson.loads(row)
        found = read_record(ResultRow, value)
        status, code = str(found.status), str(found.error.code or "")
        self.statuses[status] += 1
        if code:
            self.codes[code] += 1
        for name in filter(None, (status, code)):
            first = self._first.setdefault(name, [])
            if len(first) < FIRST_LINES:
                first.append(value["line"])

    def named(self, counter: Counter[str]) -> Json:
        """Return the counts, the most frequent first, with the first lines of each."""
        found = sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))
        return {name: {"count": count, "lines": self._first[name]} for name, count in found}


def _build_summary(files: Sequence[ResultFile], merged: MergedResults) -> Json:
    """Return the summary of a merge: the counts of its rows. If each file has a summary, their sums are included."""
    summaries = [file.summary for file in files if file.summary is not None]
    sums = _sum_summaries(summaries) if len(summaries) == len(files) else dict.fromkeys(_SUMS)
    return {
        "schema_version": "cogcli.batch/1",
        "merged": [_describe_file(file) for file in files],
        "lines": merged.lines,
        "by_status": merged.by_status,
        "by_code": merged.by_code,
        **sums,
        "cost": None,
    }


_COUNTS: Final = ("calls", "retries", "tokens")
_SUMS: Final = ("ms", *_COUNTS)


def _sum_summaries(summaries: Sequence[BatchSummary]) -> Json:
    """Return the latencies and the counts of all these summaries together: the members `_SUMS`."""
    latencies = LatencyBuckets()
    for each in summaries:
        latencies.merge(each.ms)
    counts = {name: sum(getattr(each, name) for each in summaries) for name in _COUNTS}
    return {"ms": latencies.summary().json, **counts}


def _describe_file(file: ResultFile) -> Json:
    """Return a file of a merge. Its members are null if its summary is missing."""
    summary = file.summary
    names = ("batch_id", "shard", "ledger_head")
    return {
        "file": Path(file.path).name,
        **{name: getattr(summary, name) if summary else None for name in names},
    }
