"""Expectations of cases: outputs of a call, and the `expect` keys of a skill's test case
(docs/reference/test-case.md#expect)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cogcli.authoring.verification.case import Expectation, Outcome
from cogcli.authoring.verification.check_result import join_differences, shorten_json
from cogcli.authoring.verification.skill_case import SkillCase
from cogcli.base.jsonvalue import equal, items_of, kind_of
from cogcli.base.output_diff import EXACT, differences
from cogcli.base.problems import suggestion
from cogcli.base.redact import Redactor
from cogcli.base.refs import MISSING, Reference, parse
from cogcli.base.schema.validator import errors
from cogcli.declarations.case_spec import StateCheck
from cogcli.declarations.value_types import Json
from cogcli.protocols.exchange_checks import Check
from cogcli.specs.fields import has_type
from cogcli.state.execution import ExecutionState
from cogcli.state.namespaces import look_up_through_lists


def expect_outputs(name: str, expected_outputs: Json, match: str) -> Expectation:
    """Return the expectation that the run ends well, and that its outputs match."""

    def expected(outcome: Outcome) -> list[Check]:
        if outcome.result is None or outcome.result.outputs is None:
            return [Check(name, False, str(outcome.failure) or outcome.status)]
        detail = join_differences(differences(expected_outputs, outcome.outputs, match), match)
        return [Check(name, not detail, detail)]

    return expected


# -- test cases of skills ---------------------------------------------------------------------------------------------


def skill_expectation(case: SkillCase, aliases: Mapping[str, str]) -> Iterator[Expectation]:
    """Yield the expectations of a test case, in the order of the reference.

    `aliases` maps aliases to capabilities.
    """
    expect = case.expect
    yield _expect_at(
        case,
        f"exit code {expect.exit_code}",
        lambda outcome: _ending_fault(expect.exit_code, outcome),
        "exit_code",
    )
    if expect.code is not None:
        yield _expect_equal(
            case, "error code", expect.code, lambda ran: ran.failure.code or "no error", "code"
        )
    for name, value in expect.outputs.items():
        yield _expect_output(case, name, value)
    for number, check in enumerate(expect.checks):
        yield _expect_state(case, number, check)
    for path, status in expect.steps.items():
        yield _expect_step(case, path, status)
    for name, count in expect.calls.items():
        yield _expect_calls(case, name, aliases.get(name, name), count)


def changed_outputs(case: SkillCase, outcome: Outcome) -> Json:
    """Return the actual values of expected outputs that differ, without outputs that the run does
    not have.
    """
    return {
        name: outcome.outputs[name]
        for name, value in case.expect.outputs.items()
        if name in outcome.outputs and differences(value, outcome.outputs[name], EXACT)
    }


def _expect_at(
    case: SkillCase, name: str, find_fault: Callable[[Outcome], str], *place: str | int
) -> Expectation:
    """Return an expectation at a path below `expect`. `find_fault` returns an empty text if the expectation is met."""

    def expected(outcome: Outcome) -> list[Check]:
        fault = find_fault(outcome)
        frame = case.frame_of("expect", *place) if fault else None
        return [Check(name, not fault, fault, frame, "test.failed")]

    return expected


def _expect_equal(
    case: SkillCase,
    name: str,
    expected: object,
    find: Callable[[Outcome], object],
    *place: str | int,
) -> Expectation:
    key = str(place[-1])
    return _expect_at(
        case, name, lambda ran: _describe_difference(key, expected, find(ran)), *place
    )


def _describe_difference(key: str, expected: object, actual: object) -> str:
    """Return why two values are not equal, masked if the key names a secret."""
    if equal(expected, actual):
        return ""
    one, other = (shorten_json(Redactor().mask({key: value})[key]) for value in (expected, actual))
    return f"expected {one}, found {other}"


def _ending_fault(expected: int, outcome: Outcome) -> str:
    if expected == outcome.exit_code:
        return ""
    reason = f" ({outcome.failure})" if outcome.failure.code else ""
    return f"expected {expected}, found {outcome.exit_code}{reason}"


def _expect_output(case: SkillCase, name: str, expected: object) -> Expectation:
    def find_fault(outcome: Outcome) -> str:
        if name not in outcome.outputs:
            near = suggestion(name, outcome.outputs)
            return f"not given; {near}" if near else "not given"
        found = outcome.outputs[name]
        if isinstance(expected, dict | list) and type(expected) is type(found):
            return join_differences(differences(expected, found, EXACT), EXACT)
        return _describe_difference(name, expected, found)

    return _expect_at(case, f"outputs.{name}", find_fault, "outputs", name)


def _expect_state(case: SkillCase, number: int, check: StateCheck) -> Expectation:
    def expected(outcome: Outcome) -> list[Check]:
        fault = "nothing ran" if outcome.state is None else _state_fault(check, outcome.state)
        is_hidden = check.op == "verbatim_in" and not fault
        shown = "" if is_hidden else shorten_json(check.value, 40)
        name = f"{check.path} {check.op} {shown}".rstrip()
        frame = case.frame_of("expect", "checks", number) if fault else None
        return [Check(name, not fault, fault, frame, "test.failed")]

    return expected


def _expect_step(case: SkillCase, path: str, status: str) -> Expectation:
    def find(outcome: Outcome) -> str:
        near = suggestion(path, outcome.steps) if outcome.steps else ""
        missing = f"no such step; {near}" if near else "no such step"
        return outcome.steps.get(path, missing)

    return _expect_equal(case, f"step {path}", status, find, "steps", path)


def _expect_calls(case: SkillCase, name: str, capability: str, count: int) -> Expectation:
    def find(outcome: Outcome) -> int:
        return sum(one.attempt.capability_id == capability for one in outcome.attempts)

    return _expect_equal(case, f"calls of {name}", count, find, "calls", name)


# -- checks of one value ----------------------------------------------------------------------------------------------


def _state_fault(check: StateCheck, state: ExecutionState) -> str:
    """Return why a check of the state fails; empty if it passes."""
    reference = parse(check.path)
    found = look_up_through_lists(state, reference) if reference else MISSING
    if found is MISSING:
        return f"`{check.path}` is not there"
    if check.op == "verbatim_in":
        return "; ".join(_verbatim_faults(found, _text_at(check.value, state), check.path))
    return "" if _OPS[check.op](found, check.value) else f"found {_format_value(check.path, found)}"


def _format_value(path: str, value: object) -> str:
    """Return a value as a short text, masked if the last part of its path names a secret."""
    key = path.rpartition(".")[2]
    return shorten_json(Redactor().mask({key: value})[key], 120)


def _text_at(value: str, state: ExecutionState) -> str:
    """Return the text at a reference, with the strings of a list joined; any other string unchanged."""
    reference: Reference | None = parse(value)
    found = look_up_through_lists(state, reference) if reference else value
    return "\n".join(map(str, items_of(found)))


def _verbatim_faults(actual: object, source: str, path: str) -> Iterator[str]:
    for text in items_of(actual):
        if not isinstance(text, str):
            yield f"found {kind_of(text)}, expected text"
        elif text not in source:
            yield f"{_format_value(path, text)} does not stand there"


def _contains_value(actual: object, value: object) -> bool:
    match actual:
        case str():
            return isinstance(value, str) and value in actual
        case list():
            return any(equal(item, value) for item in actual)
        case dict():
            return value in actual
        case _:
            return False


def _is_type(actual: object, value: str) -> bool:
    return actual is None if value == "null" else has_type(actual, value)


def _matches_pattern(actual: object, value: object) -> bool:
    return isinstance(actual, str) and not errors({"pattern": value}, actual)


def _is_number(actual: object) -> bool:
    return kind_of(actual) == "number"


_OPS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "equals": equal,
    "type": _is_type,
    "contains": _contains_value,
    "length": lambda found, value: isinstance(found, str | list | dict) and len(found) == value,
    "min": lambda found, value: _is_number(found) and found >= value,
    "max": lambda found, value: _is_number(found) and found <= value,
    "matches": _matches_pattern,
    "one_of": lambda found, value: any(equal(found, option) for option in value),
}
"""The operators: whether the found value satisfies the value of the check. `verbatim_in` reads a
second value."""
