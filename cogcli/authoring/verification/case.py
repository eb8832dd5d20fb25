"""Cases for everything that is verified by running it (docs/architecture.md#verification): a
target, its inputs, the answers to its calls, and its expectations.

Test cases of skills, scenarios, examples of capabilities and rules of invokers all become cases.
`run_case` launches each like an ordinary run, and `judge` evaluates it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, Final

from cogcli.authoring.verification.loopback_server import Loopback
from cogcli.base.calls import Answer, Attempt
from cogcli.base.errors import CogcliError, RuntimeErrorBase
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.envelope import Event
from cogcli.declarations.events import CallRetried
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.policy.approvals import OF_A_TEST, Approvals
from cogcli.protocols.exchange_checks import Check
from cogcli.run.launch import launch
from cogcli.run.prepare import Intercept, PreparedRun, RunEnvironment
from cogcli.run.results import Control, RunResult
from cogcli.run.resume import ResumeRequest, resume
from cogcli.state.execution import ExecutionState

_MAX_ANSWERS: Final = 100
"""The most requests for approval that are answered in one case."""


class Answers(NamedTuple):
    """The replacements for the calls of a case. A call without a replacement is made for real."""

    servers: Sequence[Loopback] = ()
    """They listen before the target is opened, which contains their addresses."""
    intercept: Intercept | None = None
    approvals: Approvals | None = None
    """The approvals that exist before the run."""
    approve: Callable[[History], ResumeRequest | None] = lambda history: None
    """Returns the answer to a request of a waiting run; None for no answer."""


Inputs = Mapping[str, Any]
"""The inputs of a run, by name."""


class CaseTarget(NamedTuple):
    """The object under test: the environment of the run, and the function that prepares the run
    with the inputs.

    `prepare` raises CogcliError for a run that is refused before it begins, which is an ordinary
    outcome.
    """

    environment: RunEnvironment
    prepare: Callable[[Inputs], PreparedRun]
    surroundings: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered around the run, for example to set the working directory."""


class ObservedAttempt:
    """An attempt of a call.

    `seconds` is its time limit. `record` has the sent and received data, unmasked; it is None
    before the attempt ends.
    """

    __slots__ = ("attempt", "record", "seconds")

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.seconds = attempt.deadline - time.monotonic()
        self.record: Mapping[str, object] | None = None


class Failure(NamedTuple):
    """The reason why a run did not end well. All members are empty for a run that did."""

    code: str = ""
    message: str = ""
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.code else ""


class Outcome(NamedTuple):
    """The outcome of a case.

    `refusal` is the reason if a run did not begin (then `result` is None) or was not resumed.
    """

    prepared: PreparedRun | None
    result: RunResult | None
    refusal: CogcliError | None
    history: History
    events: Sequence[Event]
    attempts: Sequence[ObservedAttempt]
    seconds: float
    runs_dir: str

    @property
    def status(self) -> str:
        """The status of the run; `refused` if it did not begin."""
        return self.result.status if self.result else "refused"

    @property
    def exit_code(self) -> int:
        """The exit code of `run`."""
        if self.refusal is not None:
            return self.refusal.exit_code
        return self.result.exit_code if self.result else 0

    @property
    def failure(self) -> Failure:
        """The reason why the run did not succeed, as in the envelope of `run`."""
        if (refusal := self.refusal) is not None:
            place = f"{refusal.file}:{refusal.line}: " if refusal.file else ""
            return Failure(refusal.code, f"{place}{refusal.message}", refusal.hint)
        error = self.result.error if self.result else None
        return (
            Failure(*(str(error[name] or "") for name in Failure._fields)) if error else Failure()
        )

    @property
    def error(self) -> CogcliError | None:
        """The exception behind `failure`; for a failed step its cause."""
        if self.refusal is not None or self.result is None:
            return self.refusal
        error = self.result.finished.outcome.error
        cause = error.__cause__ if error else None
        if error and isinstance(cause, RuntimeErrorBase) and cause.code == error.code:
            return cause
        return error

    @property
    def outputs(self) -> Json:
        """The outputs of the run; empty if it has none."""
        return (self.result and self.result.outputs) or {}

    @property
    def state(self) -> ExecutionState | None:
        """The last state of the run; None if it did not begin."""
        return self.result.finished.state if self.result else None

    @property
    def steps(self) -> dict[str, str]:
        """The status of each step by its path, including nested runs."""
        runs = self.history.runs.values()
        return {path: step.status for run in runs for path, step in run.steps.items()}

    @property
    def was_retried(self) -> bool:
        """Whether a step repeated its call because of its `retry` setting."""
        retries = (event for event in self.events if event.event_type == "call.retried")
        return any(read_record(CallRetried, event.payload).reason == "retry" for event in retries)

    @property
    def directory(self) -> str:
        """The directory of the episode; empty if the run did not begin."""
        return self.result.directory if self.result else ""

    @property
    def time_limits(self) -> list[float]:
        """The time limit of each attempt, in seconds."""
        return [one.seconds for one in self.attempts]

    def files_with(self, text: str) -> list[str]:
        """Return the files below the runs directory that contain a string."""
        files = (path for path in Path(self.runs_dir).rglob("*") if path.is_file())
        return [str(path) for path in files if text.encode() in path.read_bytes()]


Expectation = Callable[[Outcome], Iterable[Check]]
"""An expectation: a function that returns the checks of an outcome."""


def expect_no_fault(find_faults: Callable[[Outcome], Iterable[str]], name: str = "") -> Expectation:
    """Return an expectation with one check, which passes if no fault is found. Only the first fault is computed."""

    def expected(outcome: Outcome) -> list[Check]:
        fault = next(iter(find_faults(outcome)), "")
        return [Check(name, not fault, fault)]

    return expected


class Case(NamedTuple):
    """A target with inputs, answers and expectations.

    `target` is called once the servers of `answers` listen; it may raise NotRunnable.
    """

    target: Callable[[], CaseTarget]
    inputs: Inputs
    answers: Answers
    expectation: Sequence[Expectation]


def run_case(case: Case) -> Outcome:
    """Run the target of a case to its end and return the outcome. Raise NotRunnable."""
    with ExitStack() as stack:
        for server in case.answers.servers:
            stack.enter_context(server)
        target = case.target()
        stack.enter_context(target.surroundings())
        return _run_case(case, target)


def judge(expectation: Iterable[Expectation], outcome: Outcome) -> list[Check]:
    """Return the checks of each expectation, in order."""
    return [check for expected in expectation for check in expected(outcome)]


class _Observer:
    """A handler that records each attempt before it passes it on. It is called from several
    threads.
    """

    def __init__(self, intercept: Intercept | None) -> None:
        self.attempts: list[ObservedAttempt] = []
        self._intercept = intercept

    def __call__(self, attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
        observed = ObservedAttempt(attempt)
        self.attempts.append(observed)
        try:
            answer = self._intercept(attempt, send) if self._intercept else send(attempt)
        except RuntimeErrorBase as error:
            observed.record = error.record or {}
            raise
        observed.record = answer.record or {}
        return answer


def _run_case(case: Case, target: CaseTarget) -> Outcome:
    observer, history = _Observer(case.answers.intercept), History()
    environment = target.environment._replace(intercept=observer, signatures=OF_A_TEST)
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        history.apply(event)

    prepared: PreparedRun | None = None
    result: RunResult | None = None
    refusal: CogcliError | None = None
    begun = time.monotonic()
    try:
        prepared = target.prepare(case.inputs)
        result = launch(environment, prepared, listener=listen, approvals=case.answers.approvals)
        for _ in range(_MAX_ANSWERS):
            answer = case.answers.approve(history) if result.status == "pending" else None
            if answer is None:
                break
            result = resume(
                environment,
                Path(result.directory),
                answer,
                lambda log, journal: None,
                listener=listen,
                control=Control(),
            )
    except CogcliError as error:
        refusal = error
    return Outcome(
        prepared,
        result,
        refusal,
        history,
        events,
        observer.attempts,
        time.monotonic() - begun,
        environment.runs_dir,
    )
