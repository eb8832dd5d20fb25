"""The contract of a capability as calls: its examples, and inputs that must be refused before any
call is made (docs/reference/capability.md#examples).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from cogcli.authoring.verification.case import Expectation, Outcome, expect_no_fault
from cogcli.authoring.verification.check_result import join_differences
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.output_diff import SHAPE, differences
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.field_spec import FieldSpec
from cogcli.declarations.value_types import Json
from cogcli.episode.run_history import StepHistory
from cogcli.specs.examples import Example, content_of, examples_of, is_inside, with_paths
from cogcli.specs.fields import fit_values
from cogcli.specs.sample_inputs import sample_value

EXAMPLE, MISSING, WRONG_TYPE = "example", "without", "wrong type"
REFUSED: Final = "input.contract"
"""The code of a call whose inputs break the contract."""
_OTHERS: Final[tuple[object, ...]] = (7, "seven", ["seven"], {"seven": 7}, True)


class ContractCall(NamedTuple):
    """A call of a capability.

    `kind` is the reason for the call, `name` its text for readers. `example` is None if the call
    must be refused.
    """

    kind: str
    name: str
    inputs: Mapping[str, object]
    example: Example | None = None


def example_calls(
    capability: Capability, path_of: Callable[[Example, str], str]
) -> list[ContractCall]:
    """Return a call for each executable example, with real paths for its files."""

    def with_example_paths(example: Example) -> Example:
        def path(name: str) -> str:
            return path_of(example, name)

        return example._replace(
            inputs=with_paths(example.inputs, path), outputs=with_paths(example.outputs, path)
        )

    calls = map(with_example_paths, examples_of(capability))
    return [ContractCall(EXAMPLE, f"example {one.number}", one.inputs, one) for one in calls]


def write_files(folder: str, files: Mapping[str, object]) -> None:
    """Write the files of an example below a folder, except malformed ones, which `validate`
    reports.
    """
    for name, content in files.items():
        data = content_of(content)
        if data is not None and is_inside(name):
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def refused_calls(
    capability: Capability, valid_inputs: Mapping[str, object]
) -> Iterator[ContractCall]:
    """Yield a call without each required input, and one with each input of a wrong type.

    The other inputs are those of `valid_inputs`.
    """
    for name, field in capability.inputs.items():
        if field.needs_value:
            other_inputs = {key: value for key, value in valid_inputs.items() if key != name}
            yield ContractCall(MISSING, f"without `{name}`", other_inputs)
        wrong = wrong_value(field)
        if wrong is not None:
            yield ContractCall(
                WRONG_TYPE, f"`{name}` of a wrong type", {**valid_inputs, name: wrong}
            )


def minimal_inputs(capability: Capability) -> Json:
    """Return a value for each required input."""
    return {
        name: sample_value(field) for name, field in capability.inputs.items() if field.required
    }


def wrong_value(field: FieldSpec) -> object:
    """Return a value that a field does not accept; None if it accepts any value."""
    return next((value for value in _OTHERS if fit_values({"it": field}, {"it": value})[1]), None)


def expect_call(
    call: ContractCall, name: str, step_id: str, variables: Mapping[str, str], *, exact: bool
) -> Expectation:
    """Return one check, named `name`: a step of the root run keeps the contract.

    `variables` maps each output to its variable. With `exact` the values of the example are
    compared, else only their kinds.
    """

    def find_faults(outcome: Outcome) -> list[str]:
        step = find_step(outcome, step_id)
        if call.example is None:
            return find_refusal_faults(step)
        found = outcome.state.vars if outcome.state else {}
        outputs = {output: found[key] for output, key in variables.items() if key in found}
        return _example_faults(call.example, step, outputs, call.example.match if exact else SHAPE)

    return expect_no_fault(find_faults, name)


def find_step(outcome: Outcome, step_id: str) -> StepHistory:
    """Return the last state of a step of the root run."""
    root = outcome.history.root
    return root.steps[step_id] if root else StepHistory(step_id, step_id)


def find_refusal_faults(step: StepHistory) -> list[str]:
    """Return why a call was not refused for its inputs before any call was made."""
    if step.attempts:
        return ["not refused: it was called"]
    if step.error and step.error.code == REFUSED:
        return []
    return [f"expected {REFUSED}, found {_ending_text(step)}"]


def _ending_text(step: StepHistory) -> str:
    """Return the error of a step; without an error its status."""
    if step.error is None:
        return step.status
    return f"{step.error.code}: {step.error.message or step.reason}"


def _example_faults(
    example: Example, step: StepHistory, outputs: Mapping[str, object], match: str
) -> list[str]:
    if step.status != "done":
        return [_ending_text(step) if step.error else step.reason]
    expected = example.outputs or {}
    absent = [name for name in expected if name not in outputs]
    if absent:
        return [f"no output `{absent[0]}`"]
    found = {name: outputs[name] for name in expected}
    detail = join_differences(differences(expected, found, match), match)
    return [detail] if detail else []
