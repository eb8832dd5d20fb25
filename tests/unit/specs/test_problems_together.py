"""With several problems the code that is told is one whose exit code is that of the command."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogcli.base.errors import ENVIRONMENT, FAILURE_OF, USAGE, VETOED, CogcliError, exit_code
from cogcli.base.problems import Problem, ProblemsFound
from cogcli.cli import main
from cogcli.cli.context import CommandContext
from cogcli.cli.options import Call
from cogcli.cli.streams import Screen
from cogcli.run.given_inputs import raise_together

CODES = sorted(
    [
        *(code for code in FAILURE_OF if exit_code(code) in (USAGE, ENVIRONMENT)),
        "safety.scope",
        "flow.cycle",
    ]
)
codes = st.lists(st.sampled_from(CODES), min_size=1, max_size=5)


def problem(code: str, number: int) -> Problem:
    return Problem(code, "E", "f.yaml", number + 1, 1, "", f"problem {number}")


@given(codes)
def test_the_first_of_several_decides_the_exit_code(found: list[str]) -> None:
    error = ProblemsFound([problem(code, number) for number, code in enumerate(found)])
    exits = {exit_code(code) for code in found}
    expected = next(code for code in (ENVIRONMENT, VETOED, USAGE) if code in exits)
    assert error.exit_code == exit_code(error.code) == expected
    assert (error.code, error.message) == (error.problems[0].code, error.problems[0].message)
    rest = [p.message for p in error.problems[1:]]
    assert rest == sorted(rest)
    assert sorted(p.code for p in error.problems) == sorted(found)


@given(codes, codes)
def test_so_it_is_for_those_of_the_command_line_and_of_specs_together(
    asked: list[str], specs: list[str]
) -> None:
    loading = ProblemsFound([problem(code, number) for number, code in enumerate(specs)])
    with pytest.raises(CogcliError) as caught:
        raise_together([CogcliError(code, "asked") for code in asked], loading)
    error = caught.value
    assert error.exit_code == exit_code(error.code)
    assert (error.exit_code == ENVIRONMENT) == (
        ENVIRONMENT in {exit_code(code) for code in asked + specs}
    )


@pytest.mark.parametrize("before", ["ok", "partial", "pending"])
def test_a_command_that_failed_in_the_end_has_the_status_of_its_error(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a run was fine, and its answer could not be written."""
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    context = CommandContext(Call([]), Screen({}, json=True), {})
    context.own.update({"status": before, "outputs": {"a": 1}})
    code = main.report_error(
        context.screen, "run", CogcliError("env.disk", "full"), argv=[], context=context
    )
    body: dict[str, Any] = json.loads(out.getvalue())
    assert (code, body["exit_code"], body["status"], body["error"]["code"]) == (
        3,
        3,
        "error",
        "env.disk",
    )
    assert body["outputs"] == {"a": 1}
