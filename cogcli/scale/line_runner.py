"""Runs the lines of one batch in this process. Each line is claimed first, then goes the way of any other run
(docs/reference/batch.md#claim).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from cogcli.app.file_scope import find_file_scope
from cogcli.app.resume import resume
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.app.verify_episodes import trusted_of
from cogcli.base.calls import Answer, Attempt
from cogcli.base.errors import ENVIRONMENT, CogcliError, OverloadedError, UsageError
from cogcli.base.redact import Redactor
from cogcli.declarations.envelope import Event, row_of
from cogcli.declarations.events import RunStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.archive.transfer import write_folder
from cogcli.episode.archive.writer import read_folder
from cogcli.episode.journal import Journal
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.memory_folder import MemoryFolder
from cogcli.run.doubt_decisions import DoubtAnswer
from cogcli.run.input_origins import FILE
from cogcli.run.launch import RunIdentity, launch
from cogcli.run.log_index import LogIndex
from cogcli.run.prepare import PreparedRun, prepare_again
from cogcli.run.results import Control, RunResult, export_trace
from cogcli.run.resume import ResumeRequest
from cogcli.scale.batch_folder import batches_dir
from cogcli.scale.claim import Claim, ClaimState, claim, closed_error
from cogcli.scale.closed_lines import is_line_closed
from cogcli.scale.executor import BatchStopped, Completion, LineBusy, LineEnded
from cogcli.scale.identity import BatchKey, LineTask, line_hash
from cogcli.scale.in_memory import may_run_in_memory
from cogcli.scale.input_lines import parse_line
from cogcli.scale.line_archive import LineArchive
from cogcli.scale.line_check import require_same_run, require_signed_episode
from cogcli.scale.line_result import (
    LineResult,
    read_tags,
    result_from_episode,
    result_from_error,
    result_from_folder,
    unsealed_result,
)

_OWN_LINES: Final = ("episode.", "resume.masked")
"""Errors of the environment that concern one episode. Others stop the batch."""


class CallCounter:
    """Counts a run's calls by service as a listener. As an interceptor, it also records which services asked for a
    pause.
    """

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()
        self._held: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        if row_of(event.event_type).write_ahead:
            service = event.payload.get("service")
            if service:
                self._calls[str(service)] += 1

    def watch(self, attempt: Attempt, call: Callable[[Attempt], Answer]) -> Answer:
        """Return the answer of a live call. A refusal may name the seconds until the next call."""
        try:
            return call(attempt)
        except CogcliError as error:
            seconds = error.retry_after if isinstance(error, OverloadedError) else None
            if seconds:
                service = attempt.member.service_id
                self._held[service] = max(seconds, self._held.get(service, 0.0))
            raise

    def take(self, result: LineResult) -> LineResult:
        """Return a result with the calls and pauses since the last time."""
        counted = result._replace(calls=dict(self._calls), held=self._held)
        self._calls, self._held = Counter(), {}
        return counted


class LineRunner:
    """Runs lines of one batch. `prepared` is the run without inputs; its closure was read once."""

    def __init__(
        self,
        settings: Settings,
        prepared: PreparedRun,
        key: BatchKey,
        in_doubt: str = "",
        *,
        counts_calls: bool = False,
        archives: bool = False,
    ) -> None:
        """`archives` is whether the batch keeps its episodes in archives."""
        self._settings = settings
        environment = environment_of(settings)
        signer, owner = environment.signer(), environment.owner()
        self._environment = environment._replace(
            signer=lambda: signer, owner=lambda: owner, hooks=None
        )
        self._runs_dir = Path(self._environment.runs_dir)
        self._prepared = prepared
        self._key = key
        self._in_doubt = in_doubt
        self._calls = CallCounter() if counts_calls else None
        if self._calls is not None:
            self._environment = self._environment._replace(intercept=self._calls.watch)
        self._trusted = trusted_of(settings)
        self._archive = LineArchive(self._runs_dir, key.id)
        self._runs_in_memory = archives and may_run_in_memory(prepared)

    def close(self) -> None:
        """Close the archive that lines were appended to. Raise UnusableEnvironment `env.disk`."""
        self._archive.close()

    def run(self, task: LineTask) -> Completion:
        """Run a line, or return the result of an earlier process for it."""
        try:
            prepared = self._prepare_line(task)
        except CogcliError as error:
            return LineEnded(task, result_from_error(task, None, error))
        directory = self.directory_of(task)
        try:
            result = self._run_claimed_episode(task, prepared, directory)
        except CogcliError as error:
            if error.code == "episode.busy":
                return LineBusy(task)
            if error.exit_code == ENVIRONMENT and not error.code.startswith(_OWN_LINES):
                return BatchStopped(task, error)
            result = result_from_error(task, directory.name, error)
        if result is None:
            return LineBusy(task)
        return LineEnded(task, result if self._calls is None else self._calls.take(result))

    def directory_of(self, task: LineTask) -> Path:
        """Return the directory of a line's episode, which may not exist yet."""
        return self._runs_dir / self._key_of(task).episode_id(task)

    def _key_of(self, task: LineTask) -> BatchKey:
        """Return the batch that the episode of a line belongs to."""
        return task.origin or self._key

    def _prepare_line(self, task: LineTask) -> PreparedRun:
        inputs = parse_line(task.data)
        request = self._prepared.request
        options = request.options.replace(
            tags={**request.options.tags, **self._key_of(task).tags(task)}
        )
        origins = dict.fromkeys(inputs, FILE)
        asked = request._replace(
            inputs=inputs,
            options=options,
            origins=origins,
            find_files=partial(find_file_scope, self._settings),
        )
        return prepare_again(self._prepared, asked)

    def _run_claimed_episode(
        self, task: LineTask, prepared: PreparedRun, directory: Path
    ) -> LineResult | None:
        """Claim the episode of a line, and return the line's result. Return None if another process holds the
        episode.
        """
        if task.at:
            found = self._read_sealed_result(task, self._archive.path_of(task.at, directory.name))
            return found.placed(task.at)
        if self._runs_in_memory and task.origin is None and not directory.is_dir():
            return self._run_in_memory(task, prepared, directory)
        batch = batches_dir(str(self._runs_dir)) / self._key_of(task).id
        claimed = claim(self._runs_dir, directory.name, partial(is_line_closed, batch, task.line))
        match claimed.state:
            case ClaimState.FREE:
                return self._build_result(
                    task, directory, self._launch_line(task, prepared, claimed)
                )
            case ClaimState.BEGUN:
                return self._resume_unless_ended(task, directory)
            case ClaimState.SEALED:
                return self._read_sealed_result(task, directory)
            case ClaimState.CLOSED:
                raise closed_error(directory.name)
            case ClaimState.BUSY:
                return None

    def _resume_unless_ended(self, task: LineTask, directory: Path) -> LineResult:
        """Resume the run of a line, unless another process ended it after the claim."""
        try:
            return self._build_result(task, directory, self._resume_in_place(task, directory))
        except UsageError as error:
            if error.code != "episode.sealed":
                raise
            return self._read_sealed_result(task, directory)

    def _launch_line(self, task: LineTask, prepared: PreparedRun, claimed: Claim) -> RunResult:
        """Run a line in the folder that it claimed."""
        return launch(
            self._environment,
            prepared,
            identity=self._run_identity(
                task,
                partial(claimed.open_journal, durability=prepared.request.options.durability),
                prepared,
            ),
        )

    def _run_identity(
        self, task: LineTask, open_log: Callable[..., Journal], prepared: PreparedRun
    ) -> RunIdentity:
        """Return the identity of a line's run. `open_log` opens its log."""
        environment, key = self._environment, self._key_of(task)
        trace_id = prepared.request.options.trace_id or key.trace_id(task)

        def open_journal(redactor: Redactor) -> Journal:
            return open_log(
                trace_id=trace_id,
                clock=environment.clock,
                ids=environment.ids,
                redactor=redactor,
                sign=environment.signer(),
                owner=environment.owner(),
            )

        return RunIdentity(key.run_id(task), open_journal)

    def _run_in_memory(self, task: LineTask, prepared: PreparedRun, directory: Path) -> LineResult:
        """Run a line without a folder, then append its episode to an archive. A run that waits gets a folder."""
        folder = MemoryFolder(directory)
        open_log = partial(
            Journal, folder, episode_id=directory.name, durability="none"
        )  # there is no disk to sync
        run = launch(
            self._environment._replace(export=None),
            prepared,
            identity=self._run_identity(task, open_log, prepared),
        )
        if run.status == "pending":
            write_folder(directory, read_folder(folder))
            return self._build_result(task, directory, run)
        at = self._archive.append_folder(folder, task.line)
        export_trace(run, self._environment.export)
        found = result_from_folder(folder, task.line, task.attempt, line_hash(task.data))
        return found.placed(at)

    def _resume_in_place(self, task: LineTask, directory: Path) -> RunResult:
        """Continue an interrupted or paused run of the line in its folder."""
        log = LogIndex(iterate_events(directory))
        if log.started is not None:
            started = read_record(RunStarted, log.started.payload)
            self._require_same_run(task, directory, started.tags)
        answers: list[DoubtAnswer] = []
        if self._in_doubt:
            answers = [DoubtAnswer(event.step_id, self._in_doubt) for event in log.open_doubts]
        options = self._prepared.request.options
        request = ResumeRequest(
            in_doubt=tuple(answers),
            durability=options.durability,
            allow_hosts=tuple(options.allow_hosts),
        )
        listener = self._calls or (lambda event: None)
        return resume(
            self._settings, directory, request, listener=listener, control=Control(), hooks=False
        )

    def _read_sealed_result(self, task: LineTask, directory: Path) -> LineResult:
        """Return the result of a run that is sealed. Raise UnusableEnvironment unless it is whole and the user's."""
        require_signed_episode(directory, self._trusted)
        self._require_same_run(task, directory, read_tags(directory))
        return self._read_result(task, directory)

    def _require_same_run(self, task: LineTask, directory: Path, found: Json) -> None:
        """Raise UnusableEnvironment `batch.collision` if an episode is the run of another line, try or input."""
        require_same_run(self._key_of(task).tags(task), directory, found)

    def _build_result(self, task: LineTask, directory: Path, result: RunResult) -> LineResult:
        if result.status == "pending":
            name = directory.name
            return unsealed_result(task, name, "pending", result.exit_code, result.error)
        return self._read_result(task, directory)

    def _read_result(self, task: LineTask, directory: Path) -> LineResult:
        return result_from_episode(directory, task.line, task.attempt, line_hash(task.data))
