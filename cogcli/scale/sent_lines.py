"""The lines that left for workers without the files of the batch (docs/reference/batch.md#apart).

1. Such a line may have run there, and nothing here shows it. It may run elsewhere only if every capability that the
   skill reaches may be called twice.
2. Otherwise its worker is queried. If that worker is gone, the line is in doubt: it waits for a person.
3. An episode that is here decides as always: by its claim.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cogcli.base.errors import NO, PENDING, CogcliError
from cogcli.declarations.value_types import Json
from cogcli.episode.archive.access import open_archives
from cogcli.scale.executor import Completion, Executor, LineEnded
from cogcli.scale.identity import BatchKey, LineTask
from cogcli.scale.ledger import SentLine
from cogcli.scale.line_result import unsealed_result
from cogcli.specs.catalog import Catalog

IN_DOUBT: Final = "effect.in-doubt"
_REPEATABLE: Final = ("none", "idempotent")


def may_repeat_calls(catalog: Catalog) -> bool:
    """Return whether every capability that a skill reaches may be called twice with the same key."""
    return all(each.effect in _REPEATABLE for each in catalog.capabilities.values())


class DispatchedLines:
    """The lines of a batch that were sent to workers."""

    def __init__(
        self,
        key: BatchKey,
        runs_dir: Path,
        before: dict[int, SentLine],
        write: Callable[[SentLine], None],
        *,
        is_repeatable: bool,
        in_doubt: str = "",
    ) -> None:
        """`before` are the lines of earlier sessions. `write` writes an entry to disk."""
        self.is_repeatable = is_repeatable
        self._key = key
        self._runs_dir = runs_dir
        self._before = before
        self._now: dict[int, SentLine] = {}
        self._write = write
        self._in_doubt = in_doubt
        self._archives = open_archives(runs_dir)

    def key_of(self, task: LineTask) -> BatchKey:
        """Return the key of the batch that the episode of a line belongs to."""
        return task.origin or self._key

    def directory_of(self, task: LineTask) -> Path:
        """Return the directory of a line's episode, which may not exist yet."""
        return self._runs_dir / self.key_of(task).episode_id(task)

    def is_here(self, task: LineTask) -> bool:
        """Return whether the episode of a line began here or was received."""
        directory = self.directory_of(task)
        if os.path.lexists(directory):
            return True
        return self._archives is not None and self._archives.has(directory.name)

    def note(self, task: LineTask, worker: str) -> None:
        """Record that a line is sent to a worker. Raise UnusableEnvironment `env.disk`."""
        episode = self.directory_of(task).name
        sent = SentLine(task.line, task.attempt, episode, worker)
        self._write(sent)
        self._now[task.line] = sent

    def forget(self, task: LineTask) -> None:
        """Record that a line has a result."""
        self._now.pop(task.line, None)

    def find(self, task: LineTask) -> SentLine | None:
        """Return the record of a sent line that may not run elsewhere. Return None if the line may run anywhere."""
        if self.is_repeatable:
            return None
        sent = self._now.get(task.line)
        if sent is None and self._in_doubt != "rerun":
            sent = self._before.get(task.line)
            if sent is None and task.origin is not None:
                sent = SentLine(task.line, task.attempt, "", "of an earlier batch")
        is_same = sent is not None and (sent.attempt == task.attempt or task.origin is not None)
        return sent if is_same else None

    def judge(self, task: LineTask) -> Completion | None:
        """Return the completion of a line in doubt. Return None if the line may run where the files are."""
        sent = self.find(task)
        if sent is None or self.is_here(task):
            return None
        return self.end_in_doubt(task, sent)

    def end_in_doubt(
        self, task: LineTask, sent: SentLine, refusal: CogcliError | None = None
    ) -> Completion:
        """Return the completion of a line whose worker is gone, or whose answer was refused. Unless a person decided,
        the line waits.
        """
        why = "is gone" if refusal is None else "gave no answer that is accepted"
        error: Json = {
            "code": IN_DOUBT if refusal is None else refusal.code,
            "message": f"line {task.line} was sent to worker {sent.worker}, which {why}: what it did is not known",
            "hint": "look at what the line does, then run the same command with --in-doubt rerun or fail",
        }
        status, code = "pending", PENDING
        if self._in_doubt in ("skip", "fail") and task.line not in self._now:
            status, code = "error", NO
        episode = self.directory_of(task).name
        return LineEnded(task, unsealed_result(task, episode, status, code, error))


class GuardedExecutor:
    """An executor whose lines run where the files of the batch are. Lines in doubt do not run."""

    def __init__(self, executor: Executor, sent: DispatchedLines) -> None:
        self._executor = executor
        self._sent = sent
        self._judged: list[Completion] = []
        self.name = executor.name
        self.workers = executor.workers

    @property
    def free(self) -> int:
        """The number of lines that can be submitted now."""
        return self._executor.free

    @property
    def running(self) -> int:
        """The number of submitted lines without a completion."""
        return self._executor.running + len(self._judged)

    def submit(self, task: LineTask) -> None:
        """Queue a line."""
        judged = self._sent.judge(task)
        if judged is None:
            self._executor.submit(task)
        else:
            self._judged.append(judged)

    def completed(self, seconds: float) -> list[Completion]:
        """Return the completions since the last call, or wait for the first."""
        judged, self._judged = self._judged, []
        return judged or self._executor.completed(seconds)

    def cancel(self) -> list[LineTask]:
        """Remove and return the submitted lines that no worker has begun."""
        return self._executor.cancel()

    def close(self) -> None:
        """Stop all workers immediately."""
        self._executor.close()
