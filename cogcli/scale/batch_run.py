"""The use case of a batch: it checks the input, finds or makes the batch, and runs what has no result yet
(docs/reference/batch.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import orjson

from cogcli import __version__
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import ensure_key
from cogcli.base.canonical import digest_of
from cogcli.base.errors import ABORTED, NO, EnvironmentRefusal, UsageError
from cogcli.base.files import write_atomic
from cogcli.declarations.batch_records import BatchHeader, BatchInput, BatchSummary, ShardCommand
from cogcli.declarations.options import OPTIONS, RunOptions
from cogcli.declarations.value_types import Json
from cogcli.run.given_inputs import GivenRun, prepare_given_for_inputs
from cogcli.run.prepare import PreparedRun
from cogcli.scale.batch_folder import (
    SUMS,
    BatchFolder,
    Shard,
    batches_with_output,
    read_header,
)
from cogcli.scale.coordinator import BatchObserver, Coordinator, Rows, StopSwitch
from cogcli.scale.executor import Executor
from cogcli.scale.identity import BatchKey, LineTask, batch_id_of
from cogcli.scale.in_process import InProcessExecutor
from cogcli.scale.input_lines import (
    FirstPass,
    InputDigest,
    open_input,
    read_checked_lines,
    read_lines,
)
from cogcli.scale.ledger import Ledger, LedgerEntry
from cogcli.scale.line_result import LineResult, result_from_entry, result_from_episode, row_of
from cogcli.scale.line_runner import LineRunner
from cogcli.scale.local_workers import LocalWorkers
from cogcli.scale.output import (
    PART,
    ContinuedRows,
    LineSet,
    OrderedRows,
    PartFile,
    RowWriter,
    UnorderedRows,
)
from cogcli.scale.pacing import FailureLimit
from cogcli.scale.spool import STDIN, LineFile, open_line_file
from cogcli.scale.tables import kind_of_file, require_reader, write_table
from cogcli.scale.totals import Totals
from cogcli.specs.spec_snapshot import document_of

STDOUT: Final = "-"
SUMMARY: Final = ".summary.json"
_MOST_AHEAD: Final = 1_000_000
_WITHOUT_EFFECT: Final = ("trace_id", "max_workers", "durability")
"""Options that change no result: a batch is continued under other ones."""
_OWN_TAGS: Final = ("batch", "line", "try", "input", "retry_of")


class BatchRequest(NamedTuple):
    """The flags of a batch."""

    input: str
    """A path, or `-` for stdin."""
    stdin: BinaryIO | None = None
    output: str = STDOUT
    """The real path of the output; `-` for stdout."""
    name: str = ""
    jobs: int = 1
    shard: Shard = Shard()
    order: str = "input"
    invalid: str = "stop"
    max_failures: FailureLimit | None = None
    in_doubt: str = ""
    force: bool = False


class BatchResult(NamedTuple):
    """The end of a batch, or of this part of its work."""

    batch_id: str
    totals: Totals
    lines: int
    exit_code: int
    output: str
    is_complete: bool
    """Whether every line of the shard has a result."""
    was_complete: bool
    """Whether nothing was left to do."""


class PreparedBatch(NamedTuple):
    """A batch whose skill and input passed all checks."""

    prepared: PreparedRun
    digest: InputDigest
    file: LineFile


def run_batch(
    settings: Settings,
    given: GivenRun,
    request: BatchRequest,
    writer: RowWriter,
    observer: BatchObserver,
    stop: StopSwitch,
) -> BatchResult:
    """Run the lines of an input that have no result yet, and return the totals of the batch. `writer` gets the rows
    for stdout.

    Raise the errors of `prepare_given`, UsageError for problems of the input, and EnvironmentRefusal.
    """
    with ExitStack() as opened:
        batch = _prepare_batch(settings, given, request, opened)
        folder, header = _open_batch(settings, batch, request, opened)
        ledger = folder.open_ledger(request.shard)
        opened.callback(ledger.close)
        batch = batch._replace(file=batch.file.place(folder))
        run = _BatchRun(settings, batch, request, folder, header, ledger)
        return run.run(writer, observer, stop)


def _prepare_batch(
    settings: Settings, given: GivenRun, request: BatchRequest, opened: ExitStack
) -> PreparedBatch:
    """Check the closure of the skill, then each line of the input."""
    _refuse_own_tags(given.request.options)
    require_reader(request.output)
    catalog = open_registry(settings).reach(given.request.skill_id, pack=given.request.pack_ref)
    prepared = prepare_given_for_inputs(catalog, given, settings.environ)
    fields = prepared.skill.inputs
    path = request.input
    if path != STDIN:
        path = settings.inside(os.path.abspath(path))
    file = open_line_file(settings.runs_dir, path, request.input, request.stdin, fields)
    opened.callback(file.discard)
    first = FirstPass(
        fields, file.shown, header_lines=file.header_lines, stops=request.invalid == "stop"
    )
    with open_input(file.path) as lines:
        digest = first.read(read_lines(lines))
    return PreparedBatch(prepared, digest, file)


def _refuse_own_tags(options: RunOptions) -> None:
    for name in _OWN_TAGS:
        if name in options.tags:
            text = f"`--tag {name}`: a batch sets this tag itself"
            raise UsageError("usage.value", text, hint="choose another name for the tag")


# -- the batch of a command --------------------------------------------------------------------------------------------


def _open_batch(
    settings: Settings, batch: PreparedBatch, request: BatchRequest, opened: ExitStack
) -> tuple[BatchFolder, BatchHeader]:
    """Return the batch of the command, which is made unless it exists."""
    runs_dir, key = settings.runs_dir, ensure_key(settings.environ)
    header = _find_generation(settings, _describe_batch(batch, request), request, key)
    _require_output(settings, header, request)
    folder = opened.enter_context(BatchFolder.make(runs_dir, header.batch_id))
    header = folder.create_header(header, key)
    if not folder.folder.holds(SUMS):
        folder.folder.replace(SUMS, "".join(f"{sum}\n" for sum in batch.digest.blocks).encode())
    return folder, header


def _describe_batch(batch: PreparedBatch, request: BatchRequest) -> BatchHeader:
    """Return the header of the batch without its id."""
    given = batch.prepared.request
    options = given.options.json
    return BatchHeader(
        schema_version="batch/1",
        batch_id="",
        created_ms=time.time_ns() // 1_000_000,
        name=request.name or request.output,
        generation=0,
        skill=given.skill_id,
        specs=digest_of(document_of(batch.prepared.catalog)),
        options={name: options[name] for name in OPTIONS if name in options},
        input=BatchInput(
            path=STDIN if request.input == STDIN else os.path.realpath(request.input),
            sha256=batch.digest.sha256,
            bytes=batch.digest.bytes,
            lines=batch.digest.lines,
        ),
        invalid="record" if request.invalid == "record" else "stop",
        pins={"cogcli": __version__, "specs": dict(sorted(batch.prepared.catalog.pins.items()))},
        mac="",
    )


def _with_generation(header: BatchHeader, generation: int) -> BatchHeader:
    """Return the header with the id of a generation."""
    options = {name: value for name, value in header.options.items() if name not in _WITHOUT_EFFECT}
    identifying: Json = {
        "skill": header.skill,
        "specs": header.specs,
        "options": {**options, "invalid": header.invalid},
        "input": header.input.sha256,
        "name": header.name,
        "generation": generation,
        "retry": header.retry,
    }
    return header.replace(batch_id=batch_id_of(identifying), generation=generation)


def _find_generation(
    settings: Settings, header: BatchHeader, request: BatchRequest, key: bytes
) -> BatchHeader:
    """Return the header of the newest generation; with `--force`, of the next one if it is complete."""
    runs_dir = settings.runs_dir
    found = _with_generation(header, 0)
    if not _exists(runs_dir, found):
        return found
    while _exists(runs_dir, after := _with_generation(header, found.generation + 1)):
        found = after
    with BatchFolder.open(runs_dir, found.batch_id) as folder:
        folder.read_header(key)
        totals = Totals()
        for entry in folder.read_ledger(request.shard) if request.force else ():
            totals.apply(entry)
    is_complete = totals.done.count == request.shard.count_lines(found.input.lines)
    return after if request.force and is_complete else found


def _exists(runs_dir: str, header: BatchHeader) -> bool:
    try:
        with BatchFolder.open(runs_dir, header.batch_id) as folder:
            return folder.folder.holds("batch.json")
    except UsageError:
        return False


def _require_output(settings: Settings, header: BatchHeader, request: BatchRequest) -> None:
    """Raise UsageError if the output is another file of the user's, or of another unfinished batch."""
    output = request.output
    if output == STDOUT:
        return
    others = [
        id
        for id in batches_with_output(settings.runs_dir, output)
        if id != header.batch_id and os.path.lexists(output + PART)
    ]
    if others and not _exists(settings.runs_dir, header):
        raise _changed_error(settings, others[-1], header, output)
    is_own = header.batch_id in batches_with_output(settings.runs_dir, output)
    if os.path.lexists(output) and not is_own and not request.force:
        shown = settings.display_path(output)
        raise UsageError(
            "output.exists",
            f"`{shown}` exists",
            hint="--force overwrites it; -o names another file",
        )


def _changed_error(settings: Settings, other: str, header: BatchHeader, output: str) -> UsageError:
    """Return the error for the output of another batch that is not finished, with what differs."""
    with BatchFolder.open(settings.runs_dir, other) as folder:
        before = read_header(folder.folder)
    pairs = {
        "the skill": (before.skill, header.skill),
        "the specs": (before.specs, header.specs),
        "the options": (before.options, header.options),
        "the input": (before.input.sha256, header.input.sha256),
        "the name": (before.name, header.name),
        "--invalid": (before.invalid, header.invalid),
    }
    differing = [name for name, (old, new) in pairs.items() if old != new]
    shown = settings.display_path(output)
    return UsageError(
        "batch.changed",
        f"`{shown}` is the output of another batch that is not finished: {', '.join(differing)} differs",
        hint=f"finish that one first, name another -o, or remove {shown}{PART}",
        next=(f"cogcli resume {other}",),
    )


# -- the run -----------------------------------------------------------------------------------------------------------


class _BatchRun:
    """One session of a batch: from its ledger on, until every line ended or sending stopped."""

    def __init__(
        self,
        settings: Settings,
        batch: PreparedBatch,
        request: BatchRequest,
        folder: BatchFolder,
        header: BatchHeader,
        ledger: Ledger,
    ) -> None:
        self._settings = settings
        self._batch = batch
        self._request = request
        self._folder = folder
        self._header = header
        self._ledger = ledger
        self._key = BatchKey(header.batch_id, header.created_ms)
        self._totals = Totals()
        self._lines = request.shard.count_lines(header.input.lines)
        self._part: PartFile | None = None

    def run(self, writer: RowWriter, observer: BatchObserver, stop: StopSwitch) -> BatchResult:
        """Run the lines without a result, and return the totals."""
        for entry in self._ledger.entries():
            self._totals.apply(entry)
        was_complete = self._totals.done.count == self._lines
        has_output = self._request.output != STDOUT and os.path.lexists(self._request.output)
        was_limited = False
        if not (was_complete and has_output):
            rows = self._open_rows(writer)
            try:
                was_limited = self._run_lines(rows, observer, stop)
            finally:
                if self._part is not None:
                    self._part.close()
        return BatchResult(
            batch_id=self._header.batch_id,
            totals=self._totals,
            lines=self._lines,
            exit_code=self._exit_code(stop, was_limited=was_limited),
            output=self._request.output,
            is_complete=self._totals.ended == self._lines,
            was_complete=was_complete,
        )

    def _run_lines(self, rows: Rows, observer: BatchObserver, stop: StopSwitch) -> bool:
        """Run the lines without a result, and finish the output. Return whether `--max-failures` stopped them."""
        self._restore(rows)
        self._write_command()
        executor = self._open_executor()
        started, before = time.monotonic(), self._totals.ended
        observer.begin(self._lines, before)
        coordinator = Coordinator(
            executor, self._ledger, rows, self._totals, observer, stop,
            limit=self._request.max_failures, flush=self._flush,
        )  # fmt: skip
        try:
            coordinator.run(self._tasks())
        finally:
            executor.close()
        seconds, ended = time.monotonic() - started, self._totals.ended - before
        if self._totals.ended == self._lines:
            self._finish(executor, ended / seconds if ended and seconds else None)
        return coordinator.was_limited

    def _exit_code(self, stop: StopSwitch, *, was_limited: bool) -> int:
        if self._totals.ended < self._lines and stop.signals:
            return ABORTED[stop.signals[0]]
        return NO if was_limited else self._totals.exit_code

    def _open_executor(self) -> Executor:
        if self._request.jobs > 1:
            return LocalWorkers(self._first_frame(), self._settings.environ, self._request.jobs)
        runner = LineRunner(
            self._settings.copy_for_run(), self._batch.prepared, self._key, self._request.in_doubt
        )
        return InProcessExecutor(runner.run)

    def _first_frame(self) -> Json:
        """Return what a worker needs to find the same skill with the same settings."""
        given = self._batch.prepared.request
        return {
            "flags": dict(self._settings.flags),
            "base": self._settings.base,
            "batch": self._key.id,
            "created_ms": self._key.created_ms,
            "skill": given.skill_id,
            "options": given.options.json,
            "specs": self._header.specs,
            "in_doubt": self._request.in_doubt,
        }

    def _tasks(self) -> Iterator[LineTask]:
        """Yield the lines of the shard without a final result."""
        sums = self._read_sums()
        lines = read_checked_lines(
            partial(open_input, self._batch.file.path), sums, self._header.batch_id
        )
        for number, data in lines:
            if self._request.shard.has(number) and number not in self._totals.done:
                yield LineTask(number, 1, data)

    def _read_sums(self) -> list[str]:
        return self._folder.folder.read(SUMS, limit=1 << 30).decode("ascii", "replace").split()

    def _write_command(self) -> None:
        command = ShardCommand(
            pid=os.getpid(),
            host=os.uname().nodename if hasattr(os, "uname") else "this host",
            output=self._request.output,
            order="done" if self._request.order == "done" else "input",
            jobs=self._request.jobs,
            keep="folders",
        )
        self._folder.write_command(self._request.shard, command)

    # -- output --------------------------------------------------------------------------------------------------------

    def _open_rows(self, writer: RowWriter) -> Rows:
        """Return what writes the rows: to `OUT.part`, or to stdout."""
        request = self._request
        if request.output != STDOUT:
            writer = self._part = PartFile(request.output + PART)
        ordered: OrderedRows | UnorderedRows = UnorderedRows(writer)
        if request.order == "input":
            place = os.fspath(self._folder.folder.path)
            ordered = OrderedRows(writer, request.shard, place, _MOST_AHEAD)
        if self._part is None:
            return ordered
        for line in range(
            1 + request.shard.place, self._header.input.lines + 1, request.shard.parts
        ):
            if line in self._part.written:
                ordered.skip(line)
        return ContinuedRows(self._part, ordered)

    def _flush(self) -> None:
        if self._part is not None:
            self._part.flush()

    def _restore(self, rows: Rows) -> None:
        """Write the rows of ended lines that the output lacks."""
        seen = LineSet()
        for entry in self._folder.read_ledger(self._request.shard):
            if entry.is_final and seen.add(entry.line) and self._lacks(entry.line):
                rows.add(entry.line, self._row(entry))

    def _lacks(self, line: int) -> bool:
        part = self._part
        return part is None or line not in part.written or line in part.pending

    def _row(self, entry: LedgerEntry) -> bytes:
        """Return the row of an entry, made from its episode."""
        if entry.error is not None or entry.episode is None:
            return result_from_entry(entry).row
        directory = Path(self._settings.runs_dir) / entry.episode
        try:
            found: LineResult = result_from_episode(
                directory, entry.line, entry.attempt, entry.input_hash
            )
        except EnvironmentRefusal as error:
            return row_of(entry, None, {"code": error.code, "message": error.message})
        return found.row

    def _finish(self, executor: Executor, rate: float | None) -> None:
        """Give the output its name, and write its summary."""
        if self._part is None:
            return
        output = self._request.output
        self._ledger.close()
        if kind_of_file(output):
            self._part.finish(self._part.path)
            write_table(self._part.path, output)
            os.unlink(self._part.path)
        else:
            self._part.finish(output)
        summary = self._summary(executor, rate)
        text = orjson.dumps(summary.json, option=orjson.OPT_INDENT_2) + b"\n"
        write_atomic(output + SUMMARY, text)

    def _summary(self, executor: Executor, rate: float | None) -> BatchSummary:
        totals = self._totals
        return BatchSummary(
            schema_version="cogcli.batch/1",
            batch_id=self._header.batch_id,
            skill=self._header.skill,
            shard=self._request.shard.name,
            lines=self._lines,
            by_status=totals.counts(totals.by_status),
            by_code=totals.counts(totals.by_code),
            ms=totals.latencies.summary(),
            calls=totals.calls,
            retries=totals.retries,
            tokens=totals.tokens,
            rate=None if rate is None else round(rate, 1),
            executor=executor.name,
            workers=executor.workers,
            pins=self._header.pins,
            ledger_head=self._ledger.head,
            archives=[],
        )
