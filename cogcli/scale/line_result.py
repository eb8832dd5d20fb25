"""The result of one line, and its row in the output. A row is made from what is on disk, so that it is the same
after a kill (docs/reference/batch.md#output).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import orjson

from cogcli.base.errors import ABORTED, NO, OK, CogcliError, exit_code
from cogcli.base.files import UnreadableFile
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.call_records import RunError
from cogcli.declarations.reading import read_record
from cogcli.declarations.summary_document import Summary
from cogcli.declarations.value_types import Json
from cogcli.episode.blobs import MAX_BLOB, BlobFolder, may_refer
from cogcli.episode.folder import Folder
from cogcli.episode.large_values import BlobReader
from cogcli.episode.layout import SUMMARY
from cogcli.episode.refusals import open_episode, unreadable
from cogcli.scale.identity import LineTask, line_hash
from cogcli.scale.ledger import LedgerEntry

_ERROR_MEMBERS: Final = (
    "code", "message", "hint", "step", "capability", "binding", "service", "retryable", "next",
)  # fmt: skip


class LineResult(NamedTuple):
    """The result of one try of a line: its ledger entry, its row, and the service at which it failed."""

    entry: LedgerEntry
    row: bytes
    """One line of JSON, with its newline."""
    service: str = ""
    calls: Mapping[str, int] = MappingProxyType({})
    """The calls to each service, if they are counted."""
    held: Mapping[str, float] = MappingProxyType({})
    """The pause in seconds that services requested."""

    def placed(self, at: str) -> LineResult:
        """Return the result of the same episode with its place in an archive."""
        return self._replace(entry=self.entry._replace(at=at))


def row_of(entry: LedgerEntry, outputs: object, error: Json | None) -> bytes:
    """Return the row of a line in the output."""
    row = {
        "line": entry.line,
        "status": entry.status,
        "exit_code": entry.exit_code,
        "episode_id": entry.episode,
        "outputs": outputs,
        "error": error,
    }
    return orjson.dumps(row) + b"\n"


def short_error(error: Json | None) -> Json | None:
    """Return the members of an error that a row contains."""
    if error is None:
        return None
    return {name: error[name] for name in _ERROR_MEMBERS if error.get(name) is not None}


def result_from_error(task: LineTask, episode: str | None, error: CogcliError) -> LineResult:
    """Return the result of a line that could not run, or whose episode cannot be continued."""
    json: Json = {"code": error.code, "message": error.message, "hint": error.hint}
    return unsealed_result(task, episode, "error", error.exit_code, json)


def unsealed_result(
    task: LineTask, episode: str | None, status: str, code: int, error: Json | None
) -> LineResult:
    """Return the result of a line without a sealed episode. Its ledger entry contains the error."""
    error = short_error(error)
    entry = LedgerEntry(
        task.line, task.attempt, line_hash(task.data), episode, status, code, 0,
        code=read_record(RunError, error).code, error=error,
    )  # fmt: skip
    return result_from_entry(entry)


def result_from_entry(entry: LedgerEntry) -> LineResult:
    """Return the result of a line without a sealed episode, from its ledger entry."""
    service = read_record(RunError, entry.error).service or ""
    return LineResult(entry, row_of(entry, None, entry.error), service)


def result_from_episode(directory: Path, line: int, attempt: int, input_hash: str) -> LineResult:
    """Return the result in a sealed episode. Raise UnusableEnvironment `episode.unreadable`."""
    with open_episode(directory) as folder:
        return result_from_folder(folder, line, attempt, input_hash)


def result_from_folder(folder: Folder, line: int, attempt: int, input_hash: str) -> LineResult:
    """Return the result in the open folder of a sealed episode. Raise UnusableEnvironment `episode.unreadable`."""
    json = _read_summary(folder)
    summary = read_record(Summary, json)
    error = short_error(summary.error)
    named = read_record(RunError, error)
    metrics, counts = summary.metrics, summary.counts
    entry = LedgerEntry(
        line, attempt, input_hash, folder.path.name, summary.status,
        _find_exit_code(summary.status, error),
        summary.duration_ms or 0, metrics.tokens_in + metrics.tokens_out,
        named.code, counts.calls, counts.retries,
    )  # fmt: skip
    has_outputs = summary.status in ("ok", "partial")
    row = row_of(entry, summary.outputs if has_outputs else None, error)
    return LineResult(entry, row, named.service or "")


def read_tags(directory: Path) -> Json:
    """Return the tags in the summary of a sealed episode. Raise UnusableEnvironment `episode.unreadable`."""
    with open_episode(directory) as folder:
        return read_record(Summary, _read_summary(folder)).tags


def _read_summary(folder: Folder) -> Json:
    """Return the summary of an episode with large outputs in place."""
    try:
        data = folder.read(SUMMARY, limit=MAX_BLOB)
        json: Json = orjson.loads(data)
    except (UnreadableFile, ValueError) as error:
        raise unreadable(folder.path, str(error), file=SUMMARY) from error
    if may_refer(data):
        blobs = BlobFolder(folder)
        try:
            json["outputs"] = BlobReader(blobs.get).expand_document(json["outputs"])
        finally:
            blobs.close()
    return json


def _find_exit_code(status: str, error: Json | None) -> int:
    """Return the exit code of a run, as `run` returns it."""
    if status == "ok":
        return OK
    if status == "aborted":
        return ABORTED["SIGINT"]
    return exit_code(str(error["code"])) if error and status != "partial" else NO
