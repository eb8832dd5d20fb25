"""Runs the lines of one batch in this process. Each line is claimed first, then goes the way of any other run
(docs/reference/batch.md#claim).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from cogcli.app.resume import resume
from cogcli.app.run_skill import environment_of
from cogcli.app.settings import Settings
from cogcli.app.verify_episodes import trusted_of, verify_episode
from cogcli.base.errors import ENVIRONMENT, CogcliError, UsageError
from cogcli.base.redact import Redactor
from cogcli.declarations.envelope import Event
from cogcli.declarations.value_types import Json
from cogcli.episode.journal import Journal
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.refusals import altered_error
from cogcli.episode.verify.check import VOUCHED
from cogcli.run.doubt_decisions import DoubtAnswer
from cogcli.run.input_origins import FILE
from cogcli.run.launch import RunIdentity, launch
from cogcli.run.log_index import LogIndex
from cogcli.run.prepare import PreparedRun, prepare_again
from cogcli.run.results import Control, RunResult
from cogcli.run.resume import ResumeRequest
from cogcli.scale.claim import Claim, ClaimState, claim, collision_error
from cogcli.scale.executor import BatchStopped, Completion, LineBusy, LineEnded
from cogcli.scale.identity import BatchKey, LineTask, line_hash
from cogcli.scale.input_lines import parse_line
from cogcli.scale.line_result import (
    LineResult,
    read_tags,
    result_from_episode,
    result_from_error,
    unsealed_result,
)

_OWN_LINES: Final = ("episode.", "resume.masked")
"""Errors of the environment that concern one episode. Others stop the batch."""
_CALLS: Final = ("step.started", "call.retried")
_SAME: Final = ("batch", "line", "try", "input")


class CallCounter:
    """A listener that counts the calls of a run by service."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()

    def __call__(self, event: Event) -> None:
        if event.event_type in _CALLS:
            service = event.payload.get("service")
            if service:
                self._calls[str(service)] += 1

    def take(self) -> dict[str, int]:
        """Return the calls since the last time."""
        calls, self._calls = dict(self._calls), Counter()
        return calls


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
    ) -> None:
        self._settings = settings
        self._environment = environment_of(settings)
        self._runs_dir = Path(self._environment.runs_dir)
        self._prepared = prepared
        self._key = key
        self._in_doubt = in_doubt
        self._calls = CallCounter() if counts_calls else None
        self._trusted = trusted_of(settings)

    def run(self, task: LineTask) -> Completion:
        """Run a line, or return what an earlier process made of it."""
        try:
            prepared = self._prepare(task)
        except CogcliError as error:
            return LineEnded(task, result_from_error(task, None, error))
        episode = self._key_of(task).episode_id(task)
        directory = self._runs_dir / episode
        try:
            result = self._run_claimed(task, prepared, directory)
        except CogcliError as error:
            if error.code == "episode.busy":
                return LineBusy(task)
            if error.exit_code == ENVIRONMENT and not error.code.startswith(_OWN_LINES):
                return BatchStopped(task, error)
            result = result_from_error(task, episode, error)
        if result is None:
            return LineBusy(task)
        calls = self._calls.take() if self._calls is not None else {}
        return LineEnded(task, result._replace(calls=calls))

    def _key_of(self, task: LineTask) -> BatchKey:
        """Return the batch that the episode of a line belongs to."""
        return task.origin or self._key

    def _prepare(self, task: LineTask) -> PreparedRun:
        inputs = parse_line(task.data)
        request = self._prepared.request
        options = request.options.replace(
            tags={**request.options.tags, **self._key_of(task).tags(task)}
        )
        origins = dict.fromkeys(inputs, FILE)
        asked = request._replace(inputs=inputs, options=options, origins=origins)
        return prepare_again(self._prepared, asked)

    def _run_claimed(
        self, task: LineTask, prepared: PreparedRun, directory: Path
    ) -> LineResult | None:
        """Claim the episode of a line and return its result; None if another process holds it."""
        claimed = claim(self._runs_dir, directory.name)
        match claimed.state:
            case ClaimState.FREE:
                return self._result(task, directory, self._launch(task, prepared, claimed))
            case ClaimState.BEGUN:
                return self._continue(task, directory)
            case ClaimState.SEALED:
                return self._take_sealed(task, directory)
            case ClaimState.BUSY:
                return None

    def _continue(self, task: LineTask, directory: Path) -> LineResult:
        """Resume the run of a line, unless another process ended it after the claim."""
        try:
            return self._result(task, directory, self._resume(task, directory))
        except UsageError as error:
            if error.code != "episode.sealed":
                raise
            return self._take_sealed(task, directory)

    def _launch(self, task: LineTask, prepared: PreparedRun, claimed: Claim) -> RunResult:
        environment = self._environment
        options = prepared.request.options

        def open_journal(redactor: Redactor) -> Journal:
            """Return the claimed log as the journal of the run."""
            return claimed.open_journal(
                options.trace_id or self._key_of(task).trace_id(task),
                clock=environment.clock,
                ids=environment.ids,
                redactor=redactor,
                durability=options.durability,
                sign=environment.signer(),
                owner=environment.owner(),
            )

        return launch(
            environment,
            prepared,
            identity=RunIdentity(self._key_of(task).run_id(task), open_journal),
        )

    def _resume(self, task: LineTask, directory: Path) -> RunResult:
        """Continue an interrupted or paused run of the line in place."""
        log = LogIndex(iterate_events(directory))
        if log.started is not None:
            self._require_same(task, directory, log.started.payload.get("tags") or {})
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
        return resume(self._settings, directory, request, listener=listener, control=Control())

    def _take_sealed(self, task: LineTask, directory: Path) -> LineResult:
        """Return the result of a run that is sealed. Raise EnvironmentRefusal unless it is whole and the user's."""
        verified = verify_episode(directory, self._trusted)
        if verified.level not in VOUCHED:
            fault = next(
                (each.message for each in verified.findings if each.severity == "error"),
                "no key of yours vouches for it",
            )
            raise altered_error(directory, fault)
        self._require_same(task, directory, read_tags(directory))
        return self._read(task, directory)

    def _require_same(self, task: LineTask, directory: Path, found: Json) -> None:
        """Raise EnvironmentRefusal `batch.collision` if an episode is the run of another line, try or input."""
        expected = self._key_of(task).tags(task)
        if any(found.get(name) != expected[name] for name in _SAME):
            raise collision_error(directory, expected, found)

    def _result(self, task: LineTask, directory: Path, result: RunResult) -> LineResult:
        if result.status == "pending":
            name = directory.name
            return unsealed_result(task, name, "pending", result.exit_code, result.error)
        return self._read(task, directory)

    def _read(self, task: LineTask, directory: Path) -> LineResult:
        return result_from_episode(directory, task.line, task.attempt, line_hash(task.data))
