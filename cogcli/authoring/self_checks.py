"""Self-verification: each rule of an invoker and each row of the failure model is provoked
(docs/reference/protocols.md#own-rules).

This module defines the rows for runs that are refused before they start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.authoring.verification.case import (
    Answers,
    Case,
    CaseTarget,
    Expectation,
    Outcome,
    expect_no_fault,
)
from cogcli.authoring.verification.check_result import CheckResult, CheckResults, verify_all
from cogcli.authoring.verification.failure_rules import failure_rules
from cogcli.authoring.verification.harness import (
    Bench,
    SelfCheck,
    check_rule,
    mismatch,
    rule_from_invoker,
)
from cogcli.base.errors import ENVIRONMENT, FAILURE_OF, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound
from cogcli.declarations.options import RunOptions
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.pythoncall.stdout_capture import divert_streams
from cogcli.run.prepare import PreparedRun, RunRequest, prepare

_AT_ONCE: Final = 8

_SKILL: Final = """\
id: bench.read
version: "1.0.0"
name: Read
description: A skill of the bench.
inputs:
  text: {type: string, required: true}
  word: {type: string, enum: [a, b]}
  count: {type: integer, schema: {minimum: 1}}
outputs: {}
steps:
  - {id: only, uses: bench.text.read, input: {text: inputs.text}, output: {}}
"""
_CAPABILITY: Final = """\
id: bench.text.read
version: "1.0.0"
description: A capability of the bench.
inputs: {text: {type: string, required: true}}
outputs: {text: {type: string}}
properties: {side_effects: false}
"""
_BINDING: Final = """\
id: bench_text_read
capability: bench.text.read
service: bench
protocol: pythoncall
operation: normalize
request: {text: input.text}
response: {text: response.text}
"""
_SERVICE: Final = "id: bench\nkind: pythoncall\nmodule: cogcli.official.text\n"


class BlockedStart(NamedTuple):
    """A run that must not start: its code, its request, and the files that differ from the
    defaults.
    """

    code: str
    what: str = ""
    skill: str = "bench.read"
    capability: str = ""
    """A capability to look up before the run is prepared; empty for none."""
    inputs: Mapping[str, object] = {}
    frame: Mapping[str, object] = {}
    files: Mapping[str, str] = {}

    @property
    def id(self) -> str:
        """The code, with a distinguishing word if other rows have the same code."""
        return f"{self.code} {self.what}".rstrip()


_FILES: Final = {
    "skills/local/bench/read/skill.yaml": _SKILL,
    "capabilities/bench.text.read.yaml": _CAPABILITY,
    "bindings/local/bench.text.read/one.yaml": _BINDING,
    "services/local/bench.yaml": _SERVICE,
}
_STARTS: Final = (
    BlockedStart("skill.not-found", skill="bench.raed"),
    BlockedStart("input.unknown", inputs={"text": "x", "txet": "y"}),
    BlockedStart("input.missing"),
    BlockedStart("input.type", inputs={"text": 1}),
    BlockedStart("input.enum", inputs={"text": "x", "word": "c"}),
    BlockedStart("input.schema", inputs={"text": "x", "count": 0}),
    BlockedStart("frame.field", inputs={"text": "x"}, frame={"gaol": "y"}),
    BlockedStart(
        "step.uses",
        "in a skill",
        inputs={"text": "x"},
        files={
            "skills/local/bench/read/skill.yaml": _SKILL.replace(
                "bench.text.read", "bench.text.raed"
            )
        },
    ),
    BlockedStart(
        "key.unknown",
        "in a capability",
        inputs={"text": "x"},
        files={"capabilities/bench.text.read.yaml": f"{_CAPABILITY}safty: {{}}\n"},
    ),
    BlockedStart("capability.not-found", capability="bench.text.raed"),
)


def _start_rule(start: BlockedStart) -> SelfCheck:
    """Return the rule for a run that must not start: it makes no call and writes no episode."""
    row = FAILURE_OF.get(start.code)
    exit_code = row.exit if row else ENVIRONMENT
    allowed = [row.cls.__name__] if row else []
    text = f"{allowed[0] if allowed else 'a problem of specs'}, exit {exit_code}"
    if not start.capability:
        # Problems before the start are raised together, under the code of the first.
        allowed.append(ProblemsFound.__name__)
    expectation = _expect_refusal(start.code, allowed, exit_code)

    def cases(bench: Bench) -> list[Case]:
        target = CaseTarget(
            bench.environment({}), lambda inputs: _prepare_project(bench, start, inputs)
        )
        return [Case(lambda: target, start.inputs, Answers(), [expectation])]

    return SelfCheck(text, cases)


def _expect_refusal(code: str, allowed_types: Sequence[str], exit_code: int) -> Expectation:
    def faults(outcome: Outcome) -> Iterator[str]:
        error = outcome.refusal
        if error is None:
            yield f"it started, expected {code}"
            return
        if (found := type(error).__name__) not in allowed_types:
            yield f"found {found}, expected {' or '.join(allowed_types)}"
        yield from mismatch("code", error.code, code)
        yield from mismatch("exit code", error.exit_code, exit_code)
        yield from mismatch("a runs directory", os.path.exists(outcome.runs_dir), False)

    return expect_no_fault(faults)


def _prepare_project(
    bench: Bench, start: BlockedStart, inputs: Mapping[str, object]
) -> PreparedRun:
    """Return the prepared run of a project in the directory of the bench. Raise CogcliError."""
    root = os.path.join(bench.directory, "registry")
    files = {**_FILES, **start.files}
    bench.write({f"registry/{name}": text for name, text in files.items()})
    home = {"HOME": bench.directory, "XDG_CACHE_HOME": os.path.join(bench.directory, "cache")}
    settings = Settings({"registry": [root]}, home, base=bench.directory)
    registry = open_registry(settings)
    if start.capability:
        registry.reach_capability(start.capability)
    request = RunRequest(start.skill, dict(inputs), RunOptions(frame=dict(start.frame)))
    return prepare(registry.reach(start.skill), request, settings.environ)


def list_invoker_rules(protocol: str) -> dict[str, SelfCheck]:
    """Return the rules of one protocol by id. Raise UsageError for a protocol without rules."""
    row = PROTOCOLS.get(protocol)
    if row is None or row.rules is None:
        ruled = [name for name, row in PROTOCOLS.items() if row.rules]
        raise UsageError(
            "usage.value", f"`--protocol`: found `{protocol}`, expected {', '.join(ruled)}"
        )
    return {id: rule_from_invoker(rule) for id, rule in row.rules().items()}


def list_failure_rules() -> dict[str, SelfCheck]:
    """Return the rows of the failure model by id; rows for runs that must not start come first."""
    return {**{start.id: _start_rule(start) for start in _STARTS}, **failure_rules()}


def check_rules(
    rules: Mapping[str, SelfCheck], *, listener: Callable[[CheckResult], None] | None = None
) -> CheckResults:
    """Check every rule, several at a time, and return the results.

    `listener` gets each result, in the order of the rules.
    """

    def check(entry: tuple[str, SelfCheck]) -> CheckResult:
        with Bench() as bench:
            return check_rule(*entry, bench)

    with divert_streams():
        return verify_all(rules.items(), check, _AT_ONCE, listener)
