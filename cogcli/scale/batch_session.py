"""One session of a batch: from its ledger on, until every line ended or sending stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from cogcli.app.limits import find_ledger_id
from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import ensure_key
from cogcli.app.settings.user_dirs import state_home
from cogcli.app.verify_episodes import trusted_of
from cogcli.base.errors import ABORTED, NO, UnusableEnvironment
from cogcli.base.files import write_atomic
from cogcli.declarations.batch_records import BatchHeader, BatchSummary, ShardCommand
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import disk_refusal
from cogcli.scale.batch_folder import SUMS, BatchFolder
from cogcli.scale.batch_request import STDOUT, BatchRequest, BatchResult, PreparedBatch
from cogcli.scale.cluster.address import address_of, is_dask
from cogcli.scale.cluster.arrivals import ReceivedAnswers
from cogcli.scale.cluster.dask_workers import ClusterSettings, DaskWorkers
from cogcli.scale.cluster.facts import find_identity
from cogcli.scale.coordinator import BatchObserver, Coordinator, Rows, StopSignals
from cogcli.scale.executor import Executor
from cogcli.scale.identity import BatchKey, LineTask
from cogcli.scale.in_process import InProcessExecutor
from cogcli.scale.input_lines import open_input, read_checked_lines
from cogcli.scale.keeping import BatchKeeper, RetainedShard, uses_archives
from cogcli.scale.ledger import Ledger, LedgerEntry, SentLine
from cogcli.scale.line_archive import LineArchive
from cogcli.scale.line_result import result_from_entry, result_from_episode, row_of
from cogcli.scale.line_runner import LineRunner
from cogcli.scale.line_set import LineSet
from cogcli.scale.local_workers import LocalWorkers
from cogcli.scale.output import (
    PART,
    ContinuedRows,
    OrderedRows,
    PartFile,
    RowWriter,
    UnorderedRows,
)
from cogcli.scale.rates import ServiceRates, is_limited, open_rates
from cogcli.scale.sent_lines import DispatchedLines, GuardedExecutor, may_repeat_calls
from cogcli.scale.tables import kind_of_file, write_table
from cogcli.scale.totals import Totals

SUMMARY: Final = ".summary.json"
_MOST_AHEAD: Final = 1_000_000


class BatchSession:
    """One session of a batch. It begins when the ledger is locked, and ends when every line has ended or no more lines
    are submitted.
    """

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
        self._lines = batch.count_lines(request.shard)
        self._part: PartFile | None = None
        self._archive = LineArchive(Path(settings.runs_dir), header.batch_id)
        self._keeper = self._open_keeper()
        self._unrecorded: dict[int, str] = {}
        """The places of archived lines whose end the ledger lacks."""
        self._sent_before: dict[int, SentLine] = {}
        """The lines that earlier sessions sent to workers without the files of the batch."""

    def _open_keeper(self) -> BatchKeeper | None:
        """Return the keeper that stores episodes in archives; None if episodes stay in folders."""
        request = self._request
        if not uses_archives(request.keep, self._header.input.lines):
            return None
        shard = RetainedShard(
            request.shard, self._key, self._totals, self._ledger, self._header.input.lines, self._selects,
            is_durable=self._batch.prepared.request.options.durability != "none",
        )  # fmt: skip
        return BatchKeeper(Path(self._settings.runs_dir), self._folder, request.keep, shard)

    def run(self, writer: RowWriter, observer: BatchObserver, stop: StopSignals) -> BatchResult:
        """Run the lines that have no result, and return the totals."""
        for line in self._ledger.read_lines():
            if line.ended is not None:
                self._totals.apply(line.ended)
            if line.sent is not None:
                self._sent_before[line.sent.line] = line.sent
            if self._keeper is not None:
                self._keeper.replay(line)
        was_complete = self._totals.done.count == self._lines
        has_output = self._request.output != STDOUT and os.path.lexists(self._request.output)
        was_limited = False
        if not (was_complete and has_output):
            self._drop_part_of_other_order()
            self._write_command()  # before `OUT.part` exists, so that it is known to be that of this batch
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
            stopped_by=stop.signals[0] if stop.signals else "",
        )

    def _run_lines(self, rows: Rows, observer: BatchObserver, stop: StopSignals) -> bool:
        """Run the lines without a result, and finish the output. Return whether `--max-failures` stopped them."""
        self._restore_rows(rows)
        keeper = self._keeper
        if keeper is not None:
            self._unrecorded = keeper.find_unrecorded_lines()
            keeper.remove_moved_folders()
        executor = self._open_executor(observer, stop)
        started, before = time.monotonic(), self._totals.ended
        observer.begin(self._lines, before)
        coordinator = Coordinator(
            executor, self._ledger, rows, self._totals, observer, stop,
            limit=self._request.max_failures, flush=self._sync_ledger, rates=self._open_rates(), keeper=keeper,
        )  # fmt: skip
        try:
            coordinator.run(self._pending_tasks())
        finally:
            executor.close()
        if keeper is not None:
            keeper.move(all=True)
            keeper.close()
        seconds, ended = time.monotonic() - started, self._totals.ended - before
        if self._totals.ended == self._lines:
            self._finish_output(executor, ended / seconds if ended and seconds else None)
        return coordinator.was_limited

    def _exit_code(self, stop: StopSignals, *, was_limited: bool) -> int:
        if self._totals.ended < self._lines and stop.signals:
            return ABORTED[stop.signals[0]]
        return NO if was_limited else self._totals.exit_code

    def _open_rates(self) -> ServiceRates:
        catalog = self._batch.prepared.catalog
        parts = self._request.shard.parts
        return open_rates(state_home(self._settings.environ), catalog, self._batch.rates, parts)

    @property
    def _counts_calls(self) -> bool:
        """Return whether lines may have to wait for a service, so that their calls are counted."""
        catalog = self._batch.prepared.catalog
        services = catalog.services.values()
        return bool(self._batch.rates) or any(is_limited(each, catalog) for each in services)

    def _open_executor(self, observer: BatchObserver, stop: StopSignals) -> Executor:
        if is_dask(self._request.executor):
            return self._open_cluster(observer, stop)
        executor = self._open_local()
        may_doubt = bool(self._sent_before) or self._batch.retry is not None
        return GuardedExecutor(executor, self._open_sent_lines()) if may_doubt else executor

    def _open_local(self) -> Executor:
        if self._request.jobs > 1:
            return LocalWorkers(self._first_frame(), self._settings.environ, self._request.jobs)
        runner = self._open_runner(archives=self._keeper is not None)
        return InProcessExecutor(runner.run, runner.close)

    def _open_runner(self, *, archives: bool) -> LineRunner:
        return LineRunner(
            self._settings.copy_for_run(),
            self._batch.prepared,
            self._key,
            self._request.in_doubt,
            counts_calls=self._counts_calls,
            archives=archives,
        )

    def _open_sent_lines(self) -> DispatchedLines:
        return DispatchedLines(
            self._key,
            Path(self._settings.runs_dir),
            {
                line: sent
                for line, sent in self._sent_before.items()
                if line not in self._totals.done
            },
            self._ledger.append_sent,
            is_repeatable=may_repeat_calls(self._batch.prepared.catalog),
            in_doubt=self._request.in_doubt,
        )

    def _open_cluster(self, observer: BatchObserver, stop: StopSignals) -> Executor:
        """Return the executor on Dask workers."""
        folder = Path(os.path.abspath(self._folder.folder.path))
        sent = self._open_sent_lines()
        where = ClusterSettings(
            address=address_of(self._request.executor),
            jobs=self._request.jobs,
            folder=os.fspath(folder),
            continues=f"cogcli resume {self._key.id}",
            identity=partial(find_identity, self._settings),
            sent=sent,
            arrivals=ReceivedAnswers(folder, sent, trusted_of(self._settings)),
            run_here=self._open_runner(archives=False).run,
            is_stopping=lambda: bool(stop.signals),
        )
        return DaskWorkers(where, self._first_frame(), self._batch.prepared, observer.note)

    def _first_frame(self) -> Json:
        """Return the frame from which a worker finds the same skill with the same settings."""
        given = self._batch.prepared.request
        return {
            "flags": dict(self._settings.flags),
            "base": self._settings.base,
            "batch": self._key.id,
            "part": self._request.shard.name,
            "created_ms": self._key.created_ms,
            "skill": given.skill_id,
            "options": given.options.json,
            "specs": self._header.specs,
            "ledger": find_ledger_id(self._settings, self._batch.prepared.catalog),
            "in_doubt": self._request.in_doubt,
            "counts_calls": self._counts_calls,
            "archives": self._keeper is not None,
        }

    def _pending_tasks(self) -> Iterator[LineTask]:
        """Yield a task for each line of the shard that has no final result."""
        sums = self._read_sums()
        lines = read_checked_lines(
            partial(open_input, self._batch.file.path), sums, self._header.batch_id
        )
        for number, data in lines:
            if self._selects(number) and number not in self._totals.done:
                retry = self._batch.retry
                task = LineTask(number, 1, data) if retry is None else retry.task(number, data)
                yield task._replace(at=self._unrecorded.get(number, ""))

    def _selects(self, line: int) -> bool:
        """Return whether a line belongs to this shard. With `--retry-failed`, it must also be a selected line."""
        retry = self._batch.retry
        return self._request.shard.has(line) and (retry is None or retry.has(line))

    def _read_sums(self) -> list[str]:
        return self._folder.folder.read(SUMS, limit=1 << 30).decode("ascii", "replace").split()

    def _drop_part_of_other_order(self) -> None:
        """Remove an unfinished output if its rows have another order; the rows are written again. Raise
        UnusableEnvironment.
        """
        before = self._folder.find_command(self._request.shard)
        if before is None or before.order == self._request.order or self._request.output == STDOUT:
            return
        part = self._request.output + PART
        try:
            os.unlink(part)
        except FileNotFoundError:
            return
        except OSError as error:
            raise disk_refusal(part, error) from error

    def _write_command(self) -> None:
        command = ShardCommand(
            pid=os.getpid(),
            host=os.uname().nodename if hasattr(os, "uname") else "this host",
            output=self._request.output,
            order="done" if self._request.order == "done" else "input",
            jobs=self._request.jobs,
            executor=self._request.executor,
            keep=self._request.keep,
            rates=dict(self._request.rates),
        )
        key = ensure_key(self._settings.environ)
        self._folder.write_command(self._request.shard, command, key)

    # -- output --------------------------------------------------------------------------------------------------------

    def _open_rows(self, writer: RowWriter) -> Rows:
        """Return the writer of rows, to `OUT.part` or to stdout. The writer skips rows that earlier runs have
        written.
        """
        request = self._request
        if request.output != STDOUT:
            writer = self._part = PartFile(request.output + PART, self._has_entry)
        ordered: OrderedRows | UnorderedRows = UnorderedRows(writer)
        if request.order == "input":
            place = os.fspath(self._folder.folder.path)
            ordered = OrderedRows(writer, request.shard, place, _MOST_AHEAD)
        written = LineSet() if self._part is None else self._part.written
        shard = request.shard
        for line in range(1 + shard.place, self._header.input.lines + 1, shard.parts):
            if line in written or not self._selects(line):
                ordered.skip(line)
        return ordered if self._part is None else ContinuedRows(self._part, ordered)

    def _has_entry(self, line: int) -> bool:
        return line in self._totals.done or line in self._totals.pending

    def _sync_ledger(self) -> None:
        if self._part is not None:
            self._part.flush()

    def _restore_rows(self, rows: Rows) -> None:
        """Write the rows of ended lines that the output lacks."""
        seen = LineSet()
        for entry in self._folder.read_ledger(self._request.shard):
            if entry.is_final and seen.add(entry.line) and self._lacks_row(entry.line):
                rows.add(entry.line, self._build_row(entry))

    def _lacks_row(self, line: int) -> bool:
        """Return whether a line has ended and its row is not in the output."""
        part = self._part
        return part is None or line not in part.written or line in part.pending

    def _build_row(self, entry: LedgerEntry) -> bytes:
        """Return the row of an entry, built from its episode."""
        if entry.error is not None or entry.episode is None:
            return result_from_entry(entry).row
        directory = self._archive.path_of(entry.at, entry.episode)
        try:
            found = result_from_episode(directory, entry.line, entry.attempt, entry.input_hash)
        except UnusableEnvironment as error:
            return row_of(entry, None, {"code": error.code, "message": error.message})
        return found.row

    def _finish_output(self, executor: Executor, rate: float | None) -> None:
        """Rename the part file to the name of the output, and write the summary."""
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
        summary = self._build_summary(executor, rate)
        text = orjson.dumps(summary.json, option=orjson.OPT_INDENT_2) + b"\n"
        write_atomic(output + SUMMARY, text)

    def _build_summary(self, executor: Executor, rate: float | None) -> BatchSummary:
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
            archives=[] if self._keeper is None else self._keeper.digests(),
        )
