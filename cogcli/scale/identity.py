"""The ids of a batch and of the runs of its lines. They follow from what runs, so that the same command finds its
batch, and a line its episode (docs/reference/batch.md#ids).
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from cogcli.base.canonical import canonical
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.system import encode_ulid
from cogcli.declarations.value_types import Json

MOST_LINES: Final = (1 << 40) - 1
_BATCH_ID: Final = re.compile(r"ba_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def is_batch_id(text: str) -> bool:
    """Return whether a text is the id of a batch."""
    return _BATCH_ID.fullmatch(text) is not None


def batch_id_of(identifying: Json) -> str:
    """Return the id of the batch that these values identify: skill, specs, options, input, name, generation."""
    digest = sha256(canonical(identifying)).digest()
    return f"ba_{encode_ulid(int.from_bytes(digest[:6]), int.from_bytes(digest[6:16]))}"


def line_hash(data: bytes) -> str:
    """Return the first 16 hex digits of the hash of a line."""
    return sha256(data).hexdigest()[:16]


_DIGITS: Final = str.maketrans(
    "0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdefghijklmnopqrstuv"
)
"""Crockford's digits of base 32, and those of Python."""
_TIME: Final = slice(3, 13)


class BatchKey(NamedTuple):
    """The part of a batch from which the ids of its episodes follow."""

    id: str
    created_ms: int

    def _line_digest(self, purpose: bytes, task: LineTask) -> bytes:
        numbers = b"%b\0%b\0%d\0%d\0" % (purpose, self.id.encode(), task.line, task.attempt)
        return sha256(numbers + task.data).digest()

    def episode_id(self, task: LineTask) -> str:
        """Return the id of the line's episode. Ids of a batch sort by line."""
        return self.episode_id_of(task.line, self.line_id_suffix(task))

    def line_id_suffix(self, task: LineTask) -> int:
        """Return the low 40 bits of the line's episode id: a hash of its attempt number and its bytes."""
        return int.from_bytes(self._line_digest(b"episode", task)[:5])

    def episode_id_of(self, line: int, part: int) -> str:
        """Return the id of the episode of a line with this part."""
        return f"ep_{encode_ulid(self.created_ms, line << 40 | part)}"

    def run_id(self, task: LineTask) -> str:
        """Return the id of the line's run. The idempotency keys of its calls follow from it."""
        return f"run_{self._line_digest(b'run', task)[:8].hex()}"

    def trace_id(self, task: LineTask) -> str:
        """Return the trace id of the line's run."""
        return self._line_digest(b"trace", task)[:16].hex()

    def tags(self, task: LineTask) -> dict[str, str]:
        """Return the tags that the first event of the line's run records."""
        tags = {
            "batch": self.id,
            "line": str(task.line),
            "try": str(task.attempt),
            "input": line_hash(task.data),
        }
        return {**tags, "retry_of": task.retry_of} if task.retry_of else tags


def created_ms_of(episode_id: str) -> int:
    """Return the time in the id of an episode, in milliseconds."""
    return int(episode_id[_TIME].translate(_DIGITS), 32)


def line_of_episode(key: BatchKey, episode_id: str) -> int:
    """Return the line in the id of an episode; 0 for an id that no line of the batch has."""
    if episode_id[_TIME] != f"{key.episode_id_of(0, 0)}"[_TIME]:
        return 0
    return int(episode_id[_TIME.stop :].translate(_DIGITS), 32) >> 40


class LineTask(NamedTuple):
    """One line to run: its number from 1, which try it is, and its bytes."""

    line: int
    attempt: int
    data: bytes
    retry_of: str = ""
    """The episode that this try repeats. Empty for a first try."""
    origin: BatchKey | None = None
    """The earlier batch whose episode of the line is resumed. None for a line of the batch itself."""
    at: str = ""
    """The place of its episode in an archive that a killed process wrote it to, before the ledger had its end."""
