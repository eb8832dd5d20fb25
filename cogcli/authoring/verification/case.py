"""One kind of case for all that is verified by running it (docs/architecture.md#verification): a target, its inputs,
what answers its calls, and what is expected.

Test cases of skills, scenarios, examples of capabilities and rules of invokers are read into cases. `run_case` is the
one runner: it launches a run like any other. `judge` is the one judge.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

from cogcli.authoring.verification.loopback_server import Loopback
from cogcli.base.calls import Answer, Attempt
from cogcli.base.errors import CogcliError, RuntimeErrorBase
from cogcli.declarations.envelope import Event
from cogcli.episode.history import History
from cogcli.policy.approvals import Approvals
from cogcli.protocols.exchange_checks import Check
from cogcli.run.launch import launch
from cogcli.run.prepare import Intercept, PreparedRun, RunEnvironment
from cogcli.run.results import Control, RunResult
from cogcli.run.resume import ResumeRequest, resume
from cogcli.state.execution import ExecutionState

_MOST_ANSWERS: Final = 100
"""How many requests for approval are answered in one case."""


class Answers(NamedTuple):
    """Stand-ins for the calls of a case. A call without a stand-in is made for real."""

    servers: Sequence[Loopback] = ()
    """They listen before the target is opened, which names their addresses."""
    intercept: Intercept | None = None
    approvals: Approvals | None = None
    """Those that were given before the run."""
    approve: Callable[[History], ResumeRequest | None] = lambda history: None
    """The answer to a request of a run that waits; None for no answer."""


class CaseTarget(NamedTuple):
    """What runs: the environment of the run, and what prepares it with the inputs of the case.

    `prepare` raises CogcliError if the run is refused before it begins: that is an outcome like any other.
    """

    environment: RunEnvironment
    prepare: Callable[[Mapping[str, Any]], PreparedRun]
    surroundings: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered around the run, such as a working directory."""


class ObservedAttempt:
    """One attempt of a call. `seconds` is the time that it had; `record` what it sent and received, unmasked, None
    before it ended."""

    __slots__ = ("attempt", "record", "seconds")

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.seconds = attempt.deadline - time.monotonic()
        self.record: Mapping[str, Any] | None = None


class Failure(NamedTuple):
    """Why a run did not end well; all members are empty if it did."""

    code: str = ""
    message: str = ""
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.code else ""


class Outcome(NamedTuple):
    """What came of a case. `refusal` says why a run did not begin (then `result` is None), or was not continued."""

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
        """The status of the run, `refused` if it did not begin."""
        return self.result.status if self.result else "refused"

    @property
    def exit_code(self) -> int:
        """The exit code that `run` ends with."""
        if self.refusal is not None:
            return self.refusal.exit_code
        return self.result.exit_code if self.result else 0

    @property
    def failure(self) -> Failure:
        """Why the run did not end well, as the envelope of `run` says it."""
        if (refusal := self.refusal) is not None:
            place = f"{refusal.file}:{refusal.line}: " if refusal.file else ""
            return Failure(refusal.code, f"{place}{refusal.message}", refusal.hint)
        error = self.result.error if self.result else None
        return (
            Failure(*(str(error[name] or "") for name in Failure._fields)) if error else Failure()
        )

    @property
    def error(self) -> CogcliError | None:
        """The exception behind `failure`; of a failed step its cause."""
        if self.refusal is not None or self.result is None:
            return self.refusal
        error = self.result.finished.outcome.error
        cause = error.__cause__ if error else None
        if error and isinstance(cause, RuntimeErrorBase) and cause.code == error.code:
            return cause
        return error

    @property
    def outputs(self) -> dict[str, Any]:
        """The outputs of the run; empty if it has none."""
        return (self.result and self.result.outputs) or {}

    @property
    def state(self) -> ExecutionState | None:
        """The last state of the run; None if it did not begin."""
        return self.result.finished.state if self.result else None

    @property
    def steps(self) -> dict[str, str]:
        """The status of each step by its path, those of nested runs among them."""
        runs = self.history.runs.values()
        return {path: step.status for run in runs for path, step in run.steps.items()}

    @property
    def was_retried(self) -> bool:
        """Whether a step repeated its call because of its own `retry`."""
        retries = (event for event in self.events if event.event_type == "call.retried")
        return any(event.payload.get("reason") == "retry" for event in retries)

    @property
    def directory(self) -> str:
        """The directory of the episode; empty if the run did not begin."""
        return self.result.directory if self.result else ""

    @property
    def seconds_given(self) -> list[float]:
        """The seconds that each attempt had."""
        return [one.seconds for one in self.attempts]

    def files_with(self, text: str) -> list[str]:
        """The files below the runs directory that hold a text."""
        files = (path for path in Path(self.runs_dir).rglob("*") if path.is_file())
        return [str(path) for path in files if text.encode() in path.read_bytes()]


Expected = Callable[[Outcome], Iterable[Check]]
"""One expectation: the checks of an outcome that show whether it holds."""


def expect_no(find_faults: Callable[[Outcome], Iterable[str]], name: str = "") -> Expected:
    """An expectation of one check: there is no fault. Only the first one is looked for."""

    def expected(outcome: Outcome) -> list[Check]:
        fault = next(iter(find_faults(outcome)), "")
        return [Check(name, not fault, fault)]

    return expected


class Case(NamedTuple):
    """One case. `target` is called when the servers of `answers` listen; it may raise NotRunnable."""

    target: Callable[[], CaseTarget]
    inputs: Mapping[str, Any]
    answers: Answers
    expectation: Sequence[Expected]


def run_case(case: Case) -> Outcome:
    """Run the target of a case to its end. Raises NotRunnable."""
    with ExitStack() as stack:
        for server in case.answers.servers:
            stack.enter_context(server)
        target = case.target()
        stack.enter_context(target.surroundings())
        return _run(case, target)


def judge(expectation: Iterable[Expected], outcome: Outcome) -> list[Check]:
    """The checks of each expectation, in order."""
    return [check for expected in expectation for check in expected(outcome)]


class _Observer:
    """Notes each attempt before it is passed on. Called from several threads."""

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


def _run(case: Case, target: CaseTarget) -> Outcome:
    observer, history = _Observer(case.answers.intercept), History()
    environment = target.environment._replace(intercept=observer)
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
        for _ in range(_MOST_ANSWERS):
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
