"""The shape of a file of test cases, and rules that the shape cannot express (docs/reference/test-case.md#keys)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from cogcli.base.errors import FAILURE_OF, RuntimeErrorBase
from cogcli.base.jsonvalue import Json, kind_of, preview
from cogcli.base.problems import KeyPath, suggestion
from cogcli.base.refs import parse
from cogcli.base.schema.patterns import refusal
from cogcli.declarations.case_spec import CaseSpec, SkillCaseFile, TimeOfCase
from cogcli.specs.fields import TYPES
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape_of_spec import shape_of_spec, text_pattern
from cogcli.specs.unchecked import list_at, object_at, text_at, texts_at, value_at

NEEDS: Final = ("network", "model")
"""Words for the needs of a case, in addition to `extra.NAME` and `env.NAME`."""
CASES: Final = shape_of_spec(SkillCaseFile)
_NOW: Final = text_pattern(TimeOfCase)


def list_cases(raw: Json) -> Iterator[tuple[KeyPath, Any]]:
    """Yield (path, case) for each test case of a file. The file contains a single case or a list of cases."""
    if "cases" in raw:
        yield from ((("cases", n), case) for n, case in enumerate(list_at(raw, "cases")))
    else:
        yield (), raw


def check_cases(raw: Json, report: ProblemReport) -> None:
    """Report faults of test cases that their shape cannot express."""
    for key in raw if "cases" in raw else ():
        if key in CaseSpec.file_keys():
            message = f"`{key}` stands beside `cases`"
            report.error("test.key", (key,), message, hint="move it into a case", key=True)
    for path, case in list_cases(raw):
        if isinstance(case, dict):
            _check_case(case, report.part(f"case {path[-1] + 1}" if path else "case", *path))


def _check_case(case: Json, report: ProblemReport) -> None:
    for one, other in (("inputs", "inputs_file"), ("stubs", "recorded")):
        if value_at(case, one) is not None and value_at(case, other) is not None:
            message = f"`{other}` stands beside `{one}`"
            report.error("test.key", (other,), message, hint="keep one of them", key=True)
    now = text_at(case, "now") or ""
    if _NOW.fullmatch(now) and not _is_valid_time(now):
        report.error("value.range", ("now",), f"found {preview(now)}, expected a day that there is")
    for number, word in texts_at(case, "needs"):
        _check_need(word, report, ("needs", number))
    _check_stubs(object_at(case, "stubs"), report)
    for number, check in enumerate(list_at(case, "expect", "checks")):
        _check_check(check, report, ("expect", "checks", number))


def _check_need(word: str, report: ProblemReport, path: KeyPath) -> None:
    if word not in NEEDS and not re.fullmatch(r"(extra|env)\.\w+", word):
        hint = suggestion(word, NEEDS) or "write network, model, extra.NAME or env.NAME"
        report.error("test.needs", path, f"nothing is known of `{word[:60]}`", hint=hint)


def _is_valid_time(now: str) -> bool:
    try:
        datetime.fromisoformat(now)
    except ValueError:
        return False
    return True


def _check_stubs(stubs: Json, report: ProblemReport) -> None:
    for capability, answers in stubs.items():
        for number, stub in enumerate(list_at(answers)):
            _check_stub(stub, report, ("stubs", capability, number))


def _check_stub(stub: object, report: ProblemReport, path: KeyPath) -> None:
    if (value_at(stub, "error") is None) == (value_at(stub, "output") is None):
        report.error("test.stub", path, "a stub has either `output` or `error`")
    code = text_at(stub, "error", "code")
    if code is None:
        return
    known = [name for name, row in FAILURE_OF.items() if issubclass(row.cls, RuntimeErrorBase)]
    if code not in known:
        message, hint = f"no call fails with `{code[:60]}`", suggestion(code, known)
        report.error("test.stub", (*path, "error", "code"), message, hint=hint)


def _check_check(check: object, report: ProblemReport, path: KeyPath) -> None:
    ref = text_at(check, "path")
    if ref is not None and parse(ref) is None:
        hint = "write outputs.NAME, inputs.NAME or another value of the run's state"
        message = f"`{ref[:60]}` is not a path of a value"
        report.error("test.check", (*path, "path"), message, hint=hint)
    _check_operand(text_at(check, "op") or "", value_at(check, "value"), report, (*path, "value"))


_KIND_OF_OPERAND: Final = {
    "length": "number",
    "min": "number",
    "max": "number",
    "matches": "text",
    "type": "text",
    "verbatim_in": "text",
    "one_of": "list",
}
"""By operator: the kind of the value that it compares with. Other operators accept any value."""


def _check_operand(op: str, value: Any, report: ProblemReport, path: KeyPath) -> None:
    kind = _KIND_OF_OPERAND.get(op)
    if kind is None:
        return
    if kind_of(value) != kind or (op == "length" and type(value) is not int):
        report.error("test.check", path, f"`{op}` takes a {kind}, found {preview(value)}")
    elif op == "type" and value not in (*TYPES, "null"):
        message, hint = f"no type is called `{value}`", suggestion(value, TYPES)
        report.error("test.check", path, message, hint=hint)
    elif op == "matches" and (why := refusal(value)):
        report.error("test.check", path, f"this pattern cannot be used: {why}")
