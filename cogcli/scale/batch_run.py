"""The use case of a batch: it checks the input, finds or makes the batch, and runs what has no result yet
(docs/reference/batch.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Final

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import ensure_key
from cogcli.base.errors import UsageError
from cogcli.declarations.batch_records import BatchHeader
from cogcli.declarations.options import RunOptions
from cogcli.run.given_inputs import RequestedRun, prepare_given_for_inputs
from cogcli.scale.batch_folder import SUMS, BatchFolder
from cogcli.scale.batch_header import describe_batch, find_generation, require_output
from cogcli.scale.batch_request import BatchRequest, BatchResult, PreparedBatch
from cogcli.scale.batch_session import BatchSession
from cogcli.scale.cluster.address import require_executor
from cogcli.scale.coordinator import BatchObserver, StopSignals
from cogcli.scale.input_lines import InputLineCheck, open_input, read_lines
from cogcli.scale.output import RowWriter
from cogcli.scale.rates import find_rates
from cogcli.scale.retry import read_selection
from cogcli.scale.spool import STDIN, open_line_file
from cogcli.scale.tables import require_reader

TakeSignals = Callable[[], AbstractContextManager[StopSignals]]
"""A context manager that returns the switch which signals press."""
_OWN_TAGS: Final = ("batch", "line", "try", "input", "retry_of")


def run_batch(
    settings: Settings,
    given: RequestedRun,
    request: BatchRequest,
    writer: RowWriter,
    observer: BatchObserver,
    take_signals: TakeSignals,
) -> BatchResult:
    """Run the input lines that have no result yet, and return the totals of the batch. `writer` receives the rows for
    stdout. `take_signals` is called before the first line runs; earlier signals need no clean-up. Raise UsageError for
    invalid input, UnusableEnvironment, and the errors of `prepare_given`.
    """
    with ExitStack() as opened:
        batch = _prepare_batch(settings, given, request, opened)
        folder, header = _open_batch(settings, batch, request, opened)
        ledger = folder.open_ledger(request.shard)
        opened.callback(ledger.close)
        batch = batch._replace(file=batch.file.place(folder))
        run = BatchSession(settings, batch, request, folder, header, ledger)
        stop = opened.enter_context(take_signals())
        return run.run(writer, observer, stop)


def _prepare_batch(
    settings: Settings, given: RequestedRun, request: BatchRequest, opened: ExitStack
) -> PreparedBatch:
    """Check the specs of the skill and each line of the input, and return the batch."""
    _refuse_own_tags(given.request.options)
    require_reader(request.output)
    require_executor(request.executor)
    catalog = open_registry(settings).reach(given.request.skill_id, packs=given.request.pack_refs)
    prepared = prepare_given_for_inputs(catalog, given, settings.environ)
    rates = find_rates(catalog, request.rates)
    fields = prepared.skill.inputs
    path = request.input
    if path != STDIN:
        path = settings.require_inside(os.path.abspath(path))
    file = open_line_file(settings.runs_dir, path, request.input, request.stdin, fields)
    opened.callback(file.discard)
    retry = None
    if request.retry_failed:
        retry = read_selection(settings, request.retry_failed)
    first = InputLineCheck(
        fields, file.shown, header_lines=file.header_lines, stops=request.invalid == "stop",
        check=None if retry is None else retry.check,
    )  # fmt: skip
    with open_input(file.path) as lines:
        digest = first.read(read_lines(lines))
    return PreparedBatch(prepared, digest, file, retry, rates)


def _refuse_own_tags(options: RunOptions) -> None:
    """Raise UsageError if the user sets a tag that a batch sets itself."""
    for name in _OWN_TAGS:
        if name in options.tags:
            text = f"`--tag {name}`: a batch sets this tag itself"
            raise UsageError("usage.value", text, hint="choose another name for the tag")


def _open_batch(
    settings: Settings, batch: PreparedBatch, request: BatchRequest, opened: ExitStack
) -> tuple[BatchFolder, BatchHeader]:
    """Return the folder and the header of the batch, creating them if necessary."""
    runs_dir, key = settings.runs_dir, ensure_key(settings.environ)
    header = find_generation(settings, describe_batch(batch, request), batch, request, key)
    require_output(settings, header, request, key)
    folder = opened.enter_context(BatchFolder.make(runs_dir, header.batch_id))
    header = folder.create_header(header, key)
    if not folder.folder.holds(SUMS):
        folder.folder.replace(SUMS, "".join(f"{sum}\n" for sum in batch.digest.blocks).encode())
    return folder, header
