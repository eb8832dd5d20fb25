"""The shape of a file of test cases, and rules that a shape cannot express (docs/reference/test-case.md#keys)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from cogcli.base.errors import FAILURE_OF, RuntimeErrorBase
from cogcli.base.jsonvalue import kind_of, list_of, object_of, preview
from cogcli.base.problems import KeyPath, suggestion
from cogcli.base.refs import parse
from cogcli.base.schema.patterns import refusal
from cogcli.declarations.case_spec import CaseSpec, SkillCaseFile, TimeOfCase
from cogcli.specs.fields import TYPES
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape_of_spec import shape_of_spec, text_pattern

NEEDS: Final = ("network", "model")
"""Words for the needs of a case, in addition to `extra.NAME` and `env.NAME`."""
CASES: Final = shape_of_spec(SkillCaseFile)
_NUMERIC: Final = ("length", "min", "max")
_NOW: Final = text_pattern(TimeOfCase)


def list_cases(raw: dict[str, Any]) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Yield the cases of a file with their paths: the file itself, or the entries of its list."""
    if "cases" in raw:
        yield from ((("cases", n), case) for n, case in enumerate(list_of(raw["cases"])))
    else:
        yield (), raw


def check_cases(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report faults that a shape cannot express."""
    for key in raw if "cases" in raw else ():
        if key in CaseSpec.file_keys():
            report.error(
                "test.key",
                (key,),
                f"`{key}` stands beside `cases`",
                hint="move it into a case",
                key=True,
            )
    for path, case in list_cases(raw):
        if isinstance(case, dict):
            _check_case(case, report.part(f"case {path[-1] + 1}" if path else "case", *path))


def _check_case(case: dict[str, Any], report: ProblemReport) -> None:
    for one, other in (("inputs", "inputs_file"), ("stubs", "recorded")):
        if case.get(one) is not None and case.get(other) is not None:
            report.error(
                "test.key",
                (other,),
                f"`{other}` stands beside `{one}`",
                hint="keep one of them",
                key=True,
            )
    now = case.get("now")
    if isinstance(now, str) and _NOW.fullmatch(now) and not _is_valid_time(now):
        report.error("value.range", ("now",), f"found {preview(now)}, expected a day that there is")
    for number, word in enumerate(list_of(case.get("needs"))):
        if (
            isinstance(word, str)
            and word not in NEEDS
            and not re.fullmatch(r"(extra|env)\.\w+", word)
        ):
            hint = suggestion(word, NEEDS) or "write network, model, extra.NAME or env.NAME"
            report.error(
                "test.needs", ("needs", number), f"nothing is known of `{word[:60]}`", hint=hint
            )
    for capability, answers in object_of(case.get("stubs")).items():
        for number, stub in enumerate(list_of(answers)):
            _check_stub(object_of(stub), report, ("stubs", capability, number))
    for number, check in enumerate(list_of(object_of(case.get("expect")).get("checks"))):
        _check_check(object_of(check), report, ("expect", "checks", number))


def _is_valid_time(now: str) -> bool:
    try:
        datetime.fromisoformat(now)
    except ValueError:
        return False
    return True


def _check_stub(stub: dict[str, Any], report: ProblemReport, path: KeyPath) -> None:
    error = stub.get("error")
    if (error is None) == (stub.get("output") is None):
        report.error("test.stub", path, "a stub has either `output` or `error`")
    code = object_of(error).get("code")
    if isinstance(code, str):
        known = [name for name, row in FAILURE_OF.items() if issubclass(row.cls, RuntimeErrorBase)]
        if code not in known:
            message = f"no call fails with `{code[:60]}`"
            report.error(
                "test.stub", (*path, "error", "code"), message, hint=suggestion(code, known)
            )


def _check_check(check: dict[str, Any], report: ProblemReport, path: KeyPath) -> None:
    op, ref = check.get("op"), check.get("path")
    value: Any = check.get("value")
    if isinstance(ref, str) and parse(ref) is None:
        hint = "write outputs.NAME, inputs.NAME or another value of the run's state"
        report.error(
            "test.check", (*path, "path"), f"`{ref[:60]}` is not a path of a value", hint=hint
        )
    place = (*path, "value")
    if op in _NUMERIC and (
        kind_of(value) != "number" or (op == "length" and type(value) is not int)
    ):
        report.error("test.check", place, f"`{op}` takes a number, found {preview(value)}")
    elif op in ("matches", "type", "verbatim_in") and not isinstance(value, str):
        report.error("test.check", place, f"`{op}` takes a text, found {preview(value)}")
    elif op == "one_of" and not isinstance(value, list):
        report.error("test.check", place, f"`one_of` takes a list, found {preview(value)}")
    elif op == "type" and value not in (*TYPES, "null"):
        report.error(
            "test.check", place, f"no type is called `{value}`", hint=suggestion(value, TYPES)
        )
    elif op == "matches" and (why := refusal(value)):
        report.error("test.check", place, f"this pattern cannot be used: {why}")
