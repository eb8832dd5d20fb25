"""The contract of a capability as calls: its examples, and inputs that must be refused before anything is called
(docs/reference/capability.md#examples). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cogcli.protocols.exchange_checks import Check
from cogcli.specs.capability import Capability
from cogcli.specs.examples import Example, examples_of, with_paths
from cogcli.specs.fields import FieldSpec, fit_values
from cogcli.specs.sample_inputs import sample_value
from cogcli.verification.check_result import join_differences
from cogcli.verification.output_diff import SHAPE, differences

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
    """What a call gave: the status of its step, its error, its outputs, whether anything was called; `reason`: that of
    a function which refused it."""

    status: str
    code: str
    message: str
    outputs: Mapping[str, Any]
    called: bool
    hint: str = ""
    reason: str = ""


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


def least_inputs(capability: Capability) -> dict[str, Any]:
    """A value for each required input."""
    return {
        name: sample_value(field) for name, field in capability.inputs.items() if field.required
    }


def wrong_value(field: FieldSpec) -> Any:
    """A value that a field does not take; None where it takes any."""
    return next((value for value in _OTHERS if fit_values({"it": field}, {"it": value})[1]), None)


def judge_call(call: ContractCall, outcome: CallOutcome, *, exact: bool) -> Check:
    """Whether a call gave what it must. `exact`: whether values count where the example says so, else only kinds."""
    if call.example is None:
        return _judge_refusal(call, outcome)
    if outcome.status != "done":
        return Check(call.name, False, f"{outcome.code}: {outcome.message}".strip(": "))
    expected = call.example.outputs or {}
    absent = [name for name in expected if name not in outcome.outputs]
    if absent:
        return Check(call.name, False, f"no output `{absent[0]}`")
    found = {name: outcome.outputs[name] for name in expected}
    match = call.example.match if exact else SHAPE
    detail = join_differences(differences(expected, found, match), match)
    return Check(call.name, not detail, detail)


def _judge_refusal(call: ContractCall, outcome: CallOutcome) -> Check:
    if outcome.called:
        return Check(call.name, False, "not refused: it was called")
    if outcome.code != REFUSED:
        found = f"{outcome.code}: {outcome.message}" if outcome.code else outcome.status
        return Check(call.name, False, f"expected {REFUSED}, found {found}")
    return Check(call.name, True, "")
