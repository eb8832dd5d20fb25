"""The rules of invokers as cases.

Each case runs one call, or one small skill, through the whole engine, with its episode in a
temporary directory. Selection, templates, invokers, retries, fallbacks and journal are those of a
real run. Nothing of the user's project, environment or registry is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import orjson

from cogcli.authoring.verification.case import (
    Answers,
    Case,
    CaseTarget,
    Expectation,
    Outcome,
    expect_no_fault,
    judge,
    run_case,
)
from cogcli.authoring.verification.check_result import (
    FAILED,
    PASSED,
    CheckResult,
    conclude,
    run_check,
)
from cogcli.authoring.verification.loopback_server import Loopback
from cogcli.authoring.verification.rule_catalog import CAPABILITY, SKILL, catalog_of_call
from cogcli.base.errors import CogcliError
from cogcli.base.extras import missing_module
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.scratch import scratch_folder
from cogcli.base.system import SystemClock, SystemIds
from cogcli.declarations.options import RunOptions
from cogcli.policy.approvals import ApprovalAnswer, Approvals
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.exchange import ReceivedRequest, reply_in_turn
from cogcli.protocols.exchange_checks import NotRunnable
from cogcli.protocols.invoker_rule import (
    ANY_ERROR,
    ANYTHING,
    DIRECTORY,
    ELSEWHERE,
    UNIQUE,
    InvokerRule,
    RuleCall,
    RuleCase,
)
from cogcli.protocols.live.breaker import Circuits
from cogcli.run.engine.ports import CallPolicy
from cogcli.run.prepare import Intercept, PreparedRun, RunEnvironment, RunRequest
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions


class SelfCheck(NamedTuple):
    """A rule as a short sentence, and the cases that prove it, in the order in which they run."""

    text: str
    cases: Callable[[Bench], Iterable[Case]]


class RuleAnswers(NamedTuple):
    """The servers and decisions that answer a call. A member that is None does not exist."""

    server: Loopback | None = None
    """The server of the service itself."""
    second: Loopback | None = None
    """The server of the fallback binding's service, which answers `{ok}`."""
    gate: Loopback | None = None
    """The server of a gate's service, which answers `{allowed}`."""
    elsewhere: Loopback | None = None
    """A server that no request may reach."""
    approved: ApprovalAnswer | None = None
    """The recorded approval of this call."""
    policy: Callable[[], CallPolicy] | None = None
    """Creates the policy that judges the call, in addition to its safety level."""
    intercept: Intercept | None = None
    surroundings: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered around the run."""


class Bench:
    """The workspace of a rule: a temporary directory that is removed at the end."""

    def __init__(self) -> None:
        self._scratch = scratch_folder("bench")
        self.directory = ""
        self.clock = SystemClock()
        self.ids = SystemIds()

    def __enter__(self) -> Bench:
        self.directory = self._scratch.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._scratch.__exit__(*error)

    def environment(self, environ: Mapping[str, str]) -> RunEnvironment:
        """Return the environment of a run that writes only into the workspace."""
        return RunEnvironment(
            runs_dir=os.path.join(self.directory, "episodes"),
            state_dir=os.path.join(self.directory, "state"),
            environ=environ,
            clock=self.clock,
            ids=self.ids,
            open_registry=lambda: Registry([], protocols=PROTOCOLS, base=self.directory),
            circuits=Circuits(),  # separate circuits, so that failures of one rule do not affect another
        )

    def write(self, files: Mapping[str, str]) -> None:
        """Write files into the workspace."""
        for name, text in files.items():
            path = os.path.join(self.directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)


def call_case(
    bench: Bench,
    call: RuleCall,
    answers: RuleAnswers,
    expectation: Sequence[Expectation],
    path: str = "",
) -> Case:
    """Return the case of one call of a service. `path` is added to the address of its server."""

    def target() -> CaseTarget:
        placed = _fill_placeholders(call, bench, _server_url(answers.elsewhere))
        if placed.url is None:
            placed = placed._replace(url=f"{_server_url(answers.server)}{path}")
        bench.write(placed.files)
        second, gate = _server_url(answers.second), _server_url(answers.gate)
        catalog = catalog_of_call(placed, bench.directory, second=second, gate=gate)
        request = RunRequest(
            SKILL, {}, RunOptions(goal="verify", durability="none", **call.options)
        )
        binds = {CAPABILITY: "first"} if call.rule else {}
        selection = SelectionOptions(binds, None, placed.environ)
        policy = answers.policy() if answers.policy else None
        prepared = PreparedRun(
            request, catalog.skills[SKILL], catalog, {}, request.frame, selection, [], policy
        )
        environment = bench.environment(placed.environ)
        return CaseTarget(environment, lambda inputs: prepared, answers.surroundings)

    servers = (answers.server, answers.second, answers.gate, answers.elsewhere)
    approvals = Approvals((answers.approved,) if answers.approved else ())
    running = tuple(server for server in servers if server is not None)
    return Case(target, {}, Answers(running, answers.intercept, approvals), expectation)


def _server_url(server: Loopback | None) -> str:
    return server.url if server else ""


def _fill_placeholders(call: RuleCall, bench: Bench, elsewhere: str) -> RuleCall:
    """Return the call with its placeholders replaced. Raise NotRunnable if its extra is missing."""
    if call.extra and missing_module(call.extra):
        reason = f"the SDK is not installed: pip install 'cogcli[{call.extra}]'"
        raise NotRunnable(reason, skipped=True)
    unique = os.path.basename(bench.directory).replace("-", "_")
    places = {DIRECTORY: bench.directory, UNIQUE: unique, ELSEWHERE: elsewhere}
    text = orjson.dumps((call.service, call.environ, call.files)).decode()
    for name, value in places.items():
        text = text.replace(name, value)
    service, environ, files = orjson.loads(text)
    return call._replace(service=service, environ=environ, files=files)


# -- what is expected -------------------------------------------------------------------------------------------------


def case_from_rule(rule: RuleCase, bench: Bench) -> Case:
    """Return the case of one call of an invoker's rule."""
    elsewhere = Loopback(rule.elsewhere) if rule.elsewhere else None
    server: Loopback | None = None
    if callable(rule.answering):
        server = Loopback(rule.answering)
    elif rule.answering is not None:
        replies = rule.answering
        server = Loopback(
            reply_in_turn(replies, lambda text: text.replace(ELSEWHERE, _server_url(elsewhere)))
        )

    def find_faults(outcome: Outcome) -> Iterator[str]:
        yield from _result_faults(rule, outcome)
        yield from _other_faults(rule, outcome, server.seen if server else [])
        yield from mismatch("requests elsewhere", len(elsewhere.seen) if elsewhere else 0, 0)

    answers = RuleAnswers(server, elsewhere=elsewhere)
    return call_case(bench, rule.call, answers, [expect_no_fault(find_faults)], rule.path)


def rule_from_invoker(rule: InvokerRule) -> SelfCheck:
    """Return an invoker's rule with its cases."""
    return SelfCheck(rule.rule, lambda bench: (case_from_rule(case, bench) for case in rule.cases))


def check_rule(id: str, rule: SelfCheck, bench: Bench) -> CheckResult:
    """Check one rule and return the result."""
    base = CheckResult(id, PASSED, subject=rule.text)

    def check() -> CheckResult:
        try:
            for case in rule.cases(bench):
                result = conclude(base, judge(case.expectation, run_case(case)))
                if result.status == FAILED:
                    return result._replace(checks=())
        except (NotRunnable, CogcliError):
            raise
        except Exception as bug:  # one rule with a bug must not hide the others
            reason = f"{type(bug).__name__}: {bug}"
            return base._replace(status=FAILED, reason=reason, code="internal")
        return base

    return run_check(base, check)


def mismatch(label: str, actual: object, expected: object) -> Iterator[str]:
    """Yield a fault unless the two values are equal."""
    if actual != expected:
        yield f"{label}: found {_shorten_value(actual)}, expected {_shorten_value(expected)}"


def error_faults(
    outcome: Outcome, codes: Sequence[str], *, left: bool | None = None
) -> Iterator[str]:
    """Yield the faults of a run that must begin and then end with one of these codes."""
    error, wanted = outcome.error, " or ".join(codes)
    if outcome.result is None or error is None:
        found = (
            f"refused: {error}" if error else f"no error, outputs {_shorten_value(outcome.outputs)}"
        )
        yield f"{found}, expected {wanted}"
        return
    if not {error.code, ANY_ERROR}.intersection(codes):
        yield f"found {error.code} ({error.message}), expected {wanted}"
    if left is not None and error.left is not left:
        yield f"{wanted}: found left {error.left}, expected {left}"


def _result_faults(rule: RuleCase, outcome: Outcome) -> Iterator[str]:
    error = outcome.error
    if rule.error:
        codes = (rule.error,) if isinstance(rule.error, str) else rule.error
        yield from error_faults(outcome, codes, left=rule.left)
        if error and rule.says not in f"{error.message}\n{error.hint}":
            yield f"`{rule.says}` is not in the message"
    elif error is not None:
        yield f"{error.code}: {error.message}"
    elif rule.outputs is not ANYTHING:
        yield from mismatch("outputs", outcome.outputs, rule.outputs)


def _other_faults(
    rule: RuleCase, outcome: Outcome, requests: Sequence[ReceivedRequest]
) -> Iterator[str]:
    if rule.wanted is not ANYTHING:
        yield from mismatch("requests", rule.sent(requests), rule.wanted)
    if rule.within and outcome.seconds > rule.within:
        yield f"ended after {outcome.seconds:.1f} s, expected {rule.within} s"
    if rule.hidden:
        yield from mismatch("files that hold the secret", outcome.files_with(rule.hidden), [])
    if fault := rule.fault(outcome):
        yield fault


def _shorten_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
