"""What a test case expects, compared with what its run gave (docs/reference/test-case.md#expect)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import equal, kind_of
from cogcli.core.problems import suggestion
from cogcli.core.redact import Redactor
from cogcli.core.refs import MISSING, Reference, parse
from cogcli.mapping.namespaces import look_through
from cogcli.protocols.exchange_checks import Check
from cogcli.schema.validator import errors
from cogcli.specs.fields import has_type
from cogcli.state.execution import ExecutionState
from cogcli.verification.check_result import join_differences, short
from cogcli.verification.output_diff import EXACT, differences
from cogcli.verification.skill_case import SkillCase


class CaseOutcome(NamedTuple):
    """What the run of a case gave. `state` is None where nothing ran; `steps` has the status of each by its path."""

    exit_code: int
    code: str
    message: str
    outputs: Mapping[str, Any]
    state: ExecutionState | None
    steps: Mapping[str, str]
    calls: Mapping[str, int]
    hint: str = ""


def judge(case: SkillCase, outcome: CaseOutcome) -> list[Check]:
    """A check for each expectation, in the order of the reference."""
    expect = case.expect
    checks = [_ending(case, outcome)]
    if "code" in expect:
        found = outcome.code or "no error"
        checks.append(_check(case, "error code", expect["code"], found, "expect", "code"))
    checks += [_output(case, outcome, name) for name in expect.get("outputs") or ()]
    for number, one in enumerate(expect.get("checks") or ()):
        checks.append(_state_check(case, outcome, number, one))
    for path, status in (expect.get("steps") or {}).items():
        near = suggestion(path, outcome.steps) if outcome.steps else ""
        found = outcome.steps.get(path, f"no such step{near and f'; {near}'}")
        checks.append(_check(case, f"step {path}", status, found, "expect", "steps", path))
    for capability, count in (expect.get("calls") or {}).items():
        made = outcome.calls.get(capability, 0)
        checks.append(
            _check(case, f"calls of {capability}", count, made, "expect", "calls", capability)
        )
    return checks


def _state_check(
    case: SkillCase, outcome: CaseOutcome, number: int, expected: dict[str, Any]
) -> Check:
    """The check of one value in the state of the run."""
    failure = "nothing ran" if outcome.state is None else _failure(expected, outcome.state)
    is_hidden = expected["op"] == "verbatim_in" and not failure
    shown = "" if is_hidden else short(expected.get("value"), 40)
    name = f"{expected['path']} {expected['op']} {shown}".rstrip()
    return _told(case, name, failure, "expect", "checks", number)


def changed_outputs(case: SkillCase, outcome: CaseOutcome) -> dict[str, Any]:
    """The expected outputs that the run gave otherwise, with what it gave; those that it did not give are left out."""
    expected = case.expect.get("outputs") or {}
    given = {name: outcome.outputs[name] for name in expected if name in outcome.outputs}
    return {
        name: value for name, value in given.items() if differences(expected[name], value, EXACT)
    }


def _ending(case: SkillCase, outcome: CaseOutcome) -> Check:
    expected = case.expect.get("exit_code", 0)
    why = f" ({outcome.code}: {outcome.message})" if outcome.code else ""
    failure = (
        ""
        if expected == outcome.exit_code
        else f"expected {expected}, found {outcome.exit_code}{why}"
    )
    return _told(case, f"exit code {expected}", failure, "expect", "exit_code")


def _output(case: SkillCase, outcome: CaseOutcome, name: str) -> Check:
    expected, place = case.expect["outputs"][name], ("expect", "outputs", name)
    if name not in outcome.outputs:
        near = suggestion(name, outcome.outputs)
        return _told(case, f"outputs.{name}", f"not given{near and f'; {near}'}", *place)
    found = outcome.outputs[name]
    if isinstance(expected, dict | list) and type(expected) is type(found):
        return _told(
            case,
            f"outputs.{name}",
            join_differences(differences(expected, found, EXACT), EXACT),
            *place,
        )
    return _check(case, f"outputs.{name}", expected, found, *place)


def _check(case: SkillCase, name: str, expected: Any, found: Any, *place: str | int) -> Check:
    """The check of two values that have to be equal; those of a secret name are masked."""
    if equal(expected, found):
        return _told(case, name, "", *place)
    key = str(place[-1])
    one, other = (short(Redactor().mask({key: value})[key]) for value in (expected, found))
    return _told(case, name, f"expected {one}, found {other}", *place)


def _told(case: SkillCase, name: str, failure: str, *place: str | int) -> Check:
    return Check(name, not failure, failure, case.frame_of(*place) if failure else None)


# -- checks of one value ----------------------------------------------------------------------------------------------


def _failure(check: Mapping[str, Any], state: ExecutionState) -> str:
    """Why a check fails; empty where it passes."""
    reference = parse(check["path"])
    found = look_through(state, reference) if reference else MISSING
    if found is MISSING:
        return f"`{check['path']}` is not there"
    value: Any = check.get("value")
    if check["op"] == "verbatim_in":
        return "; ".join(_not_verbatim(found, _text_at(value, state), check["path"]))
    return "" if _OPS[check["op"]](found, value) else f"found {_shown(check['path'], found)}"


def _shown(path: str, value: Any) -> str:
    """A value as short text, masked if the last part of its path names a secret."""
    key = path.rpartition(".")[2]
    return short(Redactor().mask({key: value})[key], 120)


def _text_at(value: str, state: ExecutionState) -> str:
    """The text of a reference, with those of a list joined; any other text is itself."""
    reference: Reference | None = parse(value)
    found = look_through(state, reference) if reference else value
    return "\n".join(map(str, found)) if isinstance(found, list) else str(found)


def _not_verbatim(found: Any, source: str, path: str) -> Iterator[str]:
    for text in found if isinstance(found, list) else [found]:
        if not isinstance(text, str):
            yield f"found {kind_of(text)}, expected text"
        elif text not in source:
            yield f"{_shown(path, text)} does not stand there"


def _contains(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    if isinstance(found, list):
        return any(equal(item, value) for item in found)
    return isinstance(found, dict) and value in found


def _is_type(found: Any, value: Any) -> bool:
    return found is None if value == "null" else has_type(found, value)


def _matches(found: Any, value: Any) -> bool:
    return isinstance(found, str) and not errors({"pattern": value}, found)


def _number(found: Any) -> bool:
    return kind_of(found) == "number"


_OPS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "equals": equal,
    "type": _is_type,
    "contains": _contains,
    "length": lambda found, value: isinstance(found, str | list | dict) and len(found) == value,
    "min": lambda found, value: _number(found) and found >= value,
    "max": lambda found, value: _number(found) and found <= value,
    "matches": _matches,
    "one_of": lambda found, value: any(equal(found, option) for option in value),
}
"""By op: whether the value found has it with the value of the check. `verbatim_in` reads a second value."""
