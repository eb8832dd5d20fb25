"""The request of a batch, what passed its checks, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import BinaryIO, Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.run.prepare import PreparedRun
from cogcli.scale.batch_folder import Shard
from cogcli.scale.input_lines import InputDigest
from cogcli.scale.pacing import FailureLimit
from cogcli.scale.retry import RetrySelection
from cogcli.scale.spool import LineFile
from cogcli.scale.totals import Totals

STDOUT: Final = "-"


class BatchRequest(NamedTuple):
    """The flags of a batch."""

    input: str
    """A path, or `-` for stdin."""
    stdin: BinaryIO | None = None
    output: str = STDOUT
    """The real path of the output; `-` for stdout."""
    name: str = ""
    jobs: int = 1
    executor: str = "local"
    """The words of `--executor`."""
    shard: Shard = Shard()
    order: str = "input"
    keep: str = "auto"
    """The storage of episodes: a word of `--keep`."""
    invalid: str = "stop"
    max_failures: FailureLimit | None = None
    in_doubt: str = ""
    rates: Mapping[str, float] = MappingProxyType({})
    """The most calls a second by service."""
    force: bool = False
    retry_failed: str = ""
    """A result file: only its lines that did not end well run, and those that it lacks."""
    batch_id: str = ""
    """The batch to resume. Empty for the one that follows from the other members."""


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
    stopped_by: str = ""
    """The first signal. Empty without one."""


class PreparedBatch(NamedTuple):
    """A batch whose skill and input passed all checks."""

    prepared: PreparedRun
    digest: InputDigest
    file: LineFile
    retry: RetrySelection | None = None
    rates: Mapping[str, float] = MappingProxyType({})
    """The most calls a second by service, of the command and of the services."""

    def count_lines(self, shard: Shard) -> int:
        """Return how many lines of a shard this batch runs."""
        if self.retry is None:
            return shard.count_lines(self.digest.lines)
        return self.retry.count_lines(shard, self.digest.lines)
