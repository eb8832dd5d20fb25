"""The documents of a batch: its header, how a shard was last run, and the summary of its results
(docs/reference/batch.md#files).
"""

from __future__ import annotations

from typing import Literal

from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Count, Digest, Json, Number


class BatchInput(Record):
    """The input of a batch."""

    path: str
    """The real path of the file; `-` for stdin."""
    sha256: str
    """The hash of its lines as JSON."""
    bytes: int
    lines: int


class BatchHeader(Record):
    """The document `batch.json`: the identity of a batch, and the time when it began."""

    schema_version: Literal["batch/1"]
    batch_id: str
    created_ms: int
    name: str
    generation: int
    skill: str
    specs: str
    """The digest of the specs that the skill can reach."""
    options: Json
    """The options of a run that change results, and those of the batch."""
    input: BatchInput
    invalid: Literal["stop", "record"]
    retry: Json | None = None
    """The result file whose failed lines run again."""
    pins: Json
    mac: str


class BatchTags(Record):
    """The tags of a line's episode."""

    batch: str
    line: str
    input: str


class ShardCommand(Record):
    """The command of a shard's last run, for `resume` and for the message about a busy batch."""

    pid: int
    host: str
    output: str
    """The real path of the output; `-` for stdout."""
    order: Literal["input", "done"]
    jobs: int
    keep: str
    rates: dict[str, float] = {}
    executor: str = "local"
    """The words of `--executor`."""
    mac: str = ""


class EndedLine(Record):
    """A line of a ledger: the end of one try of a line of the input. In the file `attempt` is named `try`."""

    kind: Literal["ended"]
    line: Count
    attempt: Count
    h: str
    """The first 16 hex digits of the line's SHA-256."""
    ep: str | None
    """The episode; null if nothing ran."""
    status: str
    exit_code: Count
    ms: Number
    tokens: Count
    cost: Number | None
    at: str
    """The place of the episode: `folder`, or `ARCHIVE:OFFSET`."""
    code: str | None = None
    calls: Count | None = None
    retries: Count | None = None
    error: Json | None = None
    """The error of a line whose episode is not sealed."""
    prev: Digest
    sum: str


class MovedLine(Record):
    """A line of a ledger: the move of an episode from its folder to an archive. `attempt` is named `try` here, too."""

    kind: Literal["moved"]
    line: Count
    attempt: Count
    ep: str
    at: str
    """`ARCHIVE:OFFSET`."""
    prev: Digest
    sum: str


class DispatchedLine(Record):
    """A line of a ledger: a line of the input left for a worker that may run it. `attempt` is named `try` here, too."""

    kind: Literal["sent"]
    line: Count
    attempt: Count
    ep: str
    worker: str
    """The id of the worker, which no other process ever has."""
    prev: Digest
    sum: str


class LatencySummary(Record):
    """Milliseconds of the lines: quantiles from buckets of 2 %, and the buckets themselves."""

    p50: Number | None
    p90: Number | None
    p99: Number | None
    max: Number | None
    buckets: dict[str, Count]


class BatchSummary(Record):
    """`OUT.summary.json`: the results of a batch or of one of its shards."""

    schema_version: Literal["cogcli.batch/1"]
    batch_id: str
    skill: str
    shard: str
    lines: Count
    by_status: Json
    by_code: Json
    ms: LatencySummary
    calls: Count
    retries: Count
    tokens: Count
    cost: Number | None = None
    rate: Number | None
    executor: str
    workers: Count
    pins: Json
    ledger_head: str
    archives: list[str]
