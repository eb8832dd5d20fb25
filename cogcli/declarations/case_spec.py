"""Test cases of skills (docs/reference/test-case.md#keys)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cogcli.base.errors import OK
from cogcli.base.jsonvalue import NOTHING
from cogcli.declarations.capability_spec import TrustLevel
from cogcli.declarations.option_types import LARGEST_WHOLE
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import (
    BoundBinding,
    BoundCapability,
    CapabilityRef,
    Conformance,
    FreeMembers,
    SafetyMode,
    Seconds,
    Words,
)
from cogcli.declarations.value_types import Json, StepStatus

WholeAmount = Annotated[int, SpecLimits(minimum=0, maximum=LARGEST_WHOLE)]
FileName = Annotated[
    str,
    SpecLimits(
        pattern=r"\w[\w .-]{0,59}",
        code="test.file",
        expected="the name of a file: letters, digits, `_`, `.`, `-`",
    ),
]
TimeOfCase = Annotated[
    str,
    SpecLimits(
        pattern=r"(?:19|20)\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        expected="a time as 2026-01-31T09:00:00Z",
    ),
]


class StubError(Spec):
    """The error of a failing call."""

    code: Words
    """The error code of the call."""
    message: str | None = None
    """The error message."""
    left: bool | None = None
    """Whether the call may have happened.
    Default: by the code"""


class StubAnswer(Spec):
    """One stubbed response to calls of a capability."""

    when: FreeMembers = NOTHING
    """Members that the input of the call must have. If empty, every call matches."""
    output: FreeMembers | None = None
    """The output of the call."""
    error: StubError | None = None
    """The failure of the call, instead of `output`."""


class StateCheck(Spec):
    """One expected value in the state of a run."""

    path: Words
    """The value that is checked."""
    op: Literal[
        "equals",
        "type",
        "contains",
        "length",
        "min",
        "max",
        "matches",
        "verbatim_in",
        "one_of",
    ]
    """The comparison operator."""
    value: Any = None
    """The value to compare with."""


class CaseOptions(Spec):
    """The run options of a case: the options that `declarations.options` marks for cases."""

    trust_level: TrustLevel | None = None
    """The most that may be trusted."""
    confirm: tuple[CapabilityRef, ...] = ()
    """Capabilities that are confirmed in advance."""
    bind: Annotated[dict[BoundCapability, BoundBinding], SpecLimits(foreign=True)] = NOTHING
    """Capability to the binding that is used."""
    conformance: Conformance | None = None
    """The minimum conformance of bindings."""
    keep_going: bool | None = None
    """After a failure run the steps that do not need it."""
    max_workers: Annotated[int, SpecLimits(minimum=1, maximum=256)] | None = None
    """Calls at a time."""
    timeout: Seconds | None = None
    """Seconds for the run."""
    step_timeout: Seconds | None = None
    """Seconds for a step."""
    pack: Annotated[Words, SpecLimits(ids="packs")] | None = None
    """The pack that governs the run."""
    intent: Words | None = None
    """The intent of the run."""
    user: Words | None = None
    """The user of the run."""
    safety_mode: SafetyMode | None = None
    """A lower ceiling than that of the pack."""
    budget: Annotated[dict[str, WholeAmount], SpecLimits(foreign=True)] = NOTHING
    """Name of a budget to a lower amount."""
    tag: Annotated[dict[str, Words], SpecLimits(foreign=True)] = NOTHING
    """Tags by name."""


class SkillExpectation(Spec):
    """The expected result of the run of a case."""

    exit_code: Annotated[int, SpecLimits(minimum=0, maximum=255)] = OK
    """The exit code of the run."""
    code: str | None = None
    """The code of its error."""
    outputs: FreeMembers = NOTHING
    """The outputs named; each value is equal as a whole, `1` and `1.0` are equal."""
    checks: tuple[StateCheck, ...] = ()
    """A list of `{path, op, value}`: `path` is a [reference](execution.md#reading) to the state at the end,
    as `outputs.summary` or `vars.age`."""
    steps: Annotated[dict[str, StepStatus], SpecLimits(foreign=True)] = NOTHING
    """The endings of steps, by step path (`outer/inner`, `step#0`)."""
    calls: Annotated[dict[str, WholeAmount], SpecLimits(foreign=True)] = NOTHING
    """The number of attempts per capability, stubbed or not."""


class CaseSpec(Spec):
    """One test case: a run of a skill and its expected result."""

    description: str = ""
    """The behavior that the case shows.
    Default: none"""
    inputs: FreeMembers | None = None
    """The inputs of the skill.
    Default: `{}`, of a recorded episode those of that"""
    inputs_file: Words = ""
    """A file with the inputs, instead of `inputs`.
    Default: none"""
    files: Annotated[dict[FileName, str], SpecLimits(foreign=True)] = NOTHING
    """Files by name, with their text: they are written for this run alone.
    Default: none"""
    frame: FreeMembers = NOTHING
    """Fields of the [frame](execution.md#reading).
    Default: none"""
    stubs: Annotated[
        dict[
            CapabilityRef,
            Annotated[tuple[StubAnswer, ...], SpecLimits(hint="write a list of answers")],
        ],
        SpecLimits(foreign=True),
    ] = NOTHING
    """Answers by capability: [who answers calls](#stubs).
    Default: functions on this machine"""
    recorded: Words = ""
    """The directory of an episode that answers, instead of `stubs`.
    Default: none"""
    real: tuple[CapabilityRef, ...] = ()
    """Capabilities that are called for real.
    Default: none"""
    approve: tuple[Words, ...] = ()
    """Gates or capabilities that a person approves. At any other pause the case ends with 5.
    Default: none"""
    options: Annotated[Json, SpecLimits(keys=CaseOptions)] = NOTHING
    """`trust_level confirm bind conformance keep_going max_workers timeout step_timeout pack intent user
    safety_mode budget tag`, as the flags of `run`.
    Default: those of the `cogcli.toml` of a trusted project"""
    seed: WholeAmount = 0
    """The recorded seed, and the start of the run's ids."""
    now: TimeOfCase = "2026-01-01T00:00:00Z"
    """The time at which the run begins, as `2026-01-31T09:00:00Z`; each look at the clock is a millisecond later.
    Default: 2026-01-01"""
    expect: SkillExpectation = SkillExpectation()
    """[The expected result](#expect).
    Default: exit code 0"""
    needs: tuple[Words, ...] = ()
    """`network`, `model`, `extra.NAME`, `env.NAME`; where one is not there the case is skipped, and that
    is reported.
    Default: none"""


class SkillCaseFile(CaseSpec):
    """A file of test cases. It contains the keys of one case, or a list of several cases."""

    cases: Annotated[tuple[CaseSpec, ...], SpecLimits(minimum=1)] = ()
    """A list of cases, instead of the keys of one.
    Default: none"""
