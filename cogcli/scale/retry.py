"""`--retry-failed FILE`: the lines of a result file that run again (docs/reference/batch.md#retry).

A line that waited is resumed in its own episode. Any other line gets a new episode, whose try is one more. A line must
have the bytes that it had before: otherwise it would not be a repetition.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import orjson

from cogcli.app.settings import Settings
from cogcli.base.canonical import canonical
from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.batch_records import BatchTags
from cogcli.declarations.events import RunStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.layout import is_own_id
from cogcli.episode.log_reader import iterate_events
from cogcli.scale.batch_folder import Shard
from cogcli.scale.identity import BatchKey, LineTask, created_ms_of, line_hash
from cogcli.scale.line_set import LineSet
from cogcli.scale.output import ResultRow, read_rows, rows_error


class FailedLineTry(NamedTuple):
    """The failed try of a line."""

    episode: str
    """Empty if nothing ran."""
    attempt: int = 1
    input_hash: str = ""
    waits_in: BatchKey | None = None
    """The batch of an episode that waits."""


class RetrySelection:
    """The lines that run again, and the recorded data of their earlier tries."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._good = LineSet()
        self._tries: dict[int, FailedLineTry] = {}

    def add_good(self, line: int) -> None:
        """Record that a line succeeded."""
        self._good.add(line)
        self._tries.pop(line, None)

    def add_failed_try(self, line: int, earlier: FailedLineTry) -> None:
        """Record the failed try of a line."""
        self._good.discard(line)
        self._tries[line] = earlier

    def has(self, line: int) -> bool:
        """Return whether a line runs again."""
        return line not in self._good

    def count_lines(self, shard: Shard, lines: int) -> int:
        """Return how many lines of a shard run again."""
        if shard.parts == 1:
            return lines - self._good.count
        return sum(shard.has(line) and self.has(line) for line in range(1, lines + 1))

    def check(self, line: int, data: bytes) -> None:
        """Raise UnusableEnvironment `batch.input-changed` if a line differs from its earlier try."""
        earlier = self._tries.get(line)
        if earlier is not None and earlier.input_hash not in ("", line_hash(data)):
            raise UnusableEnvironment(
                "batch.input-changed",
                f"line {line} is not the one that {self.file} has a result for",
                hint="put the earlier line back; changed inputs are a batch of their own",
            )

    def task(self, line: int, data: bytes) -> LineTask:
        """Return the task that runs a line again."""
        earlier = self._tries.get(line)
        if earlier is None:
            return LineTask(line, 1, data)
        if earlier.waits_in is not None:
            return LineTask(line, earlier.attempt, data, origin=earlier.waits_in)
        return LineTask(line, earlier.attempt + 1, data, earlier.episode)

    def to_payload(self) -> Json:
        """Return the selection for the header."""
        tries = [[line, *self._tries[line][:3]] for line in sorted(self._tries)]
        known = [tries, sha256(self._good.to_bytes()).hexdigest()]
        return {"file": self.file, "selection": sha256(canonical(known)).hexdigest()}


def read_selection(settings: Settings, path: str) -> RetrySelection:
    """Return the lines of a result file that run again. If a line has two rows, the later one counts. Raise
    UnusableEnvironment `batch.rows`.
    """
    selection = RetrySelection(path)
    for line, row in read_rows(path):
        value = read_record(ResultRow, orjson.loads(row))
        if value.status == "ok":
            selection.add_good(line)
            continue
        episode = value.episode_id
        if episode is None:
            selection.add_failed_try(line, FailedLineTry(""))
            continue
        earlier = _read_earlier(settings, path, line, str(episode))
        waits = value.status == "pending"
        selection.add_failed_try(line, earlier if waits else earlier._replace(waits_in=None))
    return selection


def _read_earlier(settings: Settings, path: str, line: int, episode: str) -> FailedLineTry:
    """Return the try that an episode records. Raise UnusableEnvironment `batch.rows`."""
    if not is_own_id(episode):
        raise rows_error(path, f"names no episode for line {line}")
    directory = Path(settings.runs_dir) / episode
    try:
        first = next(iterate_events(directory), None)
    except CogcliError as error:
        raise rows_error(
            path, f"names `{episode}`, which cannot be read: {error.message}"
        ) from error
    found = read_record(RunStarted, first.payload).tags if first is not None else {}
    tags = read_record(BatchTags, found)
    attempt = str(found.get("try", ""))
    if tags.line != str(line) or not attempt.isdigit():
        raise rows_error(path, f"names `{episode}`, which is not the run of line {line}")
    key = BatchKey(tags.batch, created_ms_of(episode))
    return FailedLineTry(episode, int(attempt), tags.input, key)
