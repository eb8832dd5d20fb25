"""The contract of a capability as calls: its examples, and inputs that must be refused before anything is called
(docs/reference/capability.md#examples)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cogcli.authoring.verification.case import Expected, Outcome
from cogcli.authoring.verification.check_result import join_differences
from cogcli.base.output_diff import SHAPE, differences
from cogcli.episode.run_history import StepHistory
from cogcli.protocols.exchange_checks import Check
from cogcli.specs.capability import Capability
from cogcli.specs.examples import Example, examples_of, with_paths
from cogcli.specs.fields import FieldSpec, fit_values
from cogcli.specs.sample_inputs import sample_value

EXAMPLE, MISSING, WRONG_TYPE = "example", "without", "wrong type"
REFUSED: Final = "input.contract"
"""The code with which a call ends whose inputs do not keep the contract."""
_OTHERS: Final[tuple[Any, ...]] = (7, "seven", ["seven"], {"seven": 7}, True)


class ContractCall(NamedTuple):
    """One call of a capability: `kind` says why, `name` says so to readers. `example` is None where it must be
    refused."""

    kind: str
    name: str
    inputs: Mapping[str, Any]
    example: Example | None = None


class CallOutcome(NamedTuple):
    """What came of the call of one step: its status, its error, its outputs, whether anything was called, and the
    milliseconds. `reason`: that of a function which refused it."""

    status: str
    code: str
    message: str
    outputs: Mapping[str, Any]
    called: bool
    hint: str = ""
    reason: str = ""
    ms: int = 0


def call_outcome(outcome: Outcome, step_id: str, outputs: Mapping[str, str]) -> CallOutcome:
    """What came of a step of the root run. `outputs`: by output the variable that it is written to."""
    variables = outcome.state.vars if outcome.state else {}
    step = outcome.history.root.steps[step_id] if outcome.history.root else StepHistory(step_id, "")
    found = {name: variables[key] for name, key in outputs.items() if key in variables}
    called, ms = bool(step.attempts), step.ms or 0
    if step.error is None:
        return CallOutcome(step.status, "", step.reason, found, called, ms=ms)
    error = step.error
    message, hint, reason = error.message or step.reason, error.hint or "", error.reason or ""
    return CallOutcome(step.status, error.code, message, found, called, hint, reason, ms)


def example_calls(
    capability: Capability, path_of: Callable[[Example, str], str]
) -> list[ContractCall]:
    """A call for each executable example, its paths filled in."""

    def filled(example: Example) -> Example:
        def path(name: str) -> str:
            return path_of(example, name)

        return example._replace(
            inputs=with_paths(example.inputs, path), outputs=with_paths(example.outputs, path)
        )

    calls = map(filled, examples_of(capability))
    return [ContractCall(EXAMPLE, f"example {one.number}", one.inputs, one) for one in calls]


def refused_calls(capability: Capability, given: Mapping[str, Any]) -> Iterator[ContractCall]:
    """A call without each required input, and one with each input of a wrong type; the other inputs are `given`."""
    for name, field in capability.inputs.items():
        if field.required and field.default is None:
            rest = {key: value for key, value in given.items() if key != name}
            yield ContractCall(MISSING, f"without `{name}`", rest)
        wrong = wrong_value(field)
        if wrong is not None:
            yield ContractCall(WRONG_TYPE, f"`{name}` of a wrong type", {**given, name: wrong})


def minimal_inputs(capability: Capability) -> dict[str, Any]:
    """A value for each required input."""
    return {
        name: sample_value(field) for name, field in capability.inputs.items() if field.required
    }


def wrong_value(field: FieldSpec) -> Any:
    """A value that a field does not take; None where it takes any."""
    return next((value for value in _OTHERS if fit_values({"it": field}, {"it": value})[1]), None)


def expect_call(
    call: ContractCall,
    name: str,
    outcome_of: Callable[[Outcome], CallOutcome],
    *,
    exact: bool,
) -> Expected:
    """One check of this name: the call keeps the contract. `exact`: whether values count if the example says so, else
    only kinds."""

    def expected(outcome: Outcome) -> list[Check]:
        found = outcome_of(outcome)
        example = call.example
        fault = find_refusal_fault(found)
        if example is not None:
            fault = _example_fault(example, found, example.match if exact else SHAPE)
        return [Check(name, not fault, fault)]

    return expected


def find_refusal_fault(outcome: CallOutcome) -> str:
    """Why a call was not refused for its inputs, before anything was called; empty if it was."""
    if outcome.called:
        return "not refused: it was called"
    if outcome.code == REFUSED:
        return ""
    found = f"{outcome.code}: {outcome.message}" if outcome.code else outcome.status
    return f"expected {REFUSED}, found {found}"


def _example_fault(example: Example, outcome: CallOutcome, match: str) -> str:
    if outcome.status != "done":
        return f"{outcome.code}: {outcome.message}".strip(": ")
    expected = example.outputs or {}
    absent = [name for name in expected if name not in outcome.outputs]
    if absent:
        return f"no output `{absent[0]}`"
    found = {name: outcome.outputs[name] for name in expected}
    return join_differences(differences(expected, found, match), match)
