"""The episodes that come back from workers without the files of the batch. They are foreign until they are verified.

1. A worker returns one episode for each line that began: that of the line, or the answer is refused.
2. It is written next to the batch, verified like any episode of the user, and compared with the line. Only then it gets
   its place among the runs. So what a worker returns never replaces anything, and names nothing.
3. Its row is made from its files, never from the worker's report about them.
"""

from __future__ import annotations

import os
import shutil
from base64 import b64decode
from binascii import Error as NotBase64
from contextlib import suppress
from pathlib import Path
from typing import Final

from cogcli.base.errors import CogcliError, UnusableEnvironment
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.archive.format import ArchiveFault
from cogcli.episode.archive.parcel import unpack
from cogcli.episode.archive.transfer import write_folder
from cogcli.episode.folder import Folder, disk_errors
from cogcli.episode.layout import MANIFEST
from cogcli.episode.verify.trusted import TrustAnchors
from cogcli.scale.executor import Completion, LineEnded
from cogcli.scale.frames import WorkerFrame, completion_from_frame
from cogcli.scale.identity import LineTask, line_hash
from cogcli.scale.ledger import LedgerEntry
from cogcli.scale.line_check import read_started_tags, require_same_run, require_signed_episode
from cogcli.scale.line_result import LineResult, result_from_episode, unsealed_result
from cogcli.scale.sent_lines import DispatchedLines

REFUSED: Final = "batch.answer-refused"
INCOMING: Final = "incoming"
"""The directory in the folder of the batch."""
_WITHOUT_EPISODE: Final = ("error", "pending")
_FULL_DISK: Final = ("env.disk", "env.runs-dir")


class ReceivedAnswers:
    """Receives the answers of workers that do not share the files of the batch."""

    def __init__(self, batch_folder: Path, sent: DispatchedLines, trusted: TrustAnchors) -> None:
        self._incoming = batch_folder / INCOMING
        self._sent = sent
        self._trusted = trusted
        shutil.rmtree(self._incoming, ignore_errors=True)  # of a process that was killed

    def take(self, task: LineTask, frame: Json) -> Completion:
        """Return the completion in an answer, after its episode is in place.

        Raise UnusableEnvironment `batch.answer-refused` for an answer that is not accepted, `env.disk`.
        """
        try:
            completion = completion_from_frame(frame, task)
            if completion.result is None:
                return completion
            return LineEnded(task, self._take_result(task, frame, completion.result))
        except CogcliError as error:
            if error.code in _FULL_DISK:
                raise
            raise refused_error(task, error.message) from error
        except ArchiveFault as error:
            raise refused_error(task, f"what it returned is no episode: {error.why}") from error
        except (ValueError, KeyError, TypeError, NotBase64) as error:
            raise refused_error(task, f"it returned no result: {error}") from error
        finally:
            shutil.rmtree(self._incoming, ignore_errors=True)

    def _take_result(self, task: LineTask, frame: Json, claimed: LineResult) -> LineResult:
        """Return the result of a line: with an episode from its files."""
        directory = self._sent.directory_of(task)
        parcel = read_record(WorkerFrame, frame).parcel
        if parcel is None:
            return self._take_plain(task, directory.name, claimed.entry)._replace(
                calls=claimed.calls
            )
        key = self._sent.key_of(task)
        episode = unpack(b64decode(parcel, validate=True), directory.name, batch=key.id)
        arrived = self._incoming / directory.name
        write_folder(arrived, episode)
        require_signed_episode(arrived, self._trusted)
        require_same_run(key.tags(task), arrived, read_started_tags(arrived))
        is_sealed = MANIFEST in episode.files
        if is_sealed == (claimed.entry.status == "pending"):
            raise ValueError("the episode and its result do not fit")
        self._move_into_place(directory)
        if not is_sealed:
            return self._take_plain(task, directory.name, claimed.entry)
        result = result_from_episode(directory, task.line, task.attempt, line_hash(task.data))
        return result._replace(calls=claimed.calls)

    def _take_plain(self, task: LineTask, episode: str, claimed: LedgerEntry) -> LineResult:
        """Return the result of a line that has no sealed episode: it waits, or could not run."""
        if claimed.status not in _WITHOUT_EPISODE or claimed.error is None:
            raise ValueError("a line that ended has an episode")
        named = episode if claimed.episode is not None else None
        return unsealed_result(task, named, claimed.status, claimed.exit_code, claimed.error)

    def _move_into_place(self, directory: Path) -> None:
        """Move a verified episode to its final directory. Raise UnusableEnvironment."""
        if os.path.lexists(directory):
            raise ValueError("its episode is here already")
        with disk_errors(directory):
            os.rename(self._incoming / directory.name, directory)
            with suppress(FileNotFoundError), Folder.open(directory.parent) as runs:
                runs.sync()


def refused_error(task: LineTask, why: str) -> UnusableEnvironment:
    """Return the error for an answer that is not accepted."""
    return UnusableEnvironment(
        REFUSED,
        f"line {task.line}: the answer of a worker is not accepted: {why}",
        expected="the unaltered episode of this line, with the key of your user",
        hint="look at the worker: it gets no further line",
    )
