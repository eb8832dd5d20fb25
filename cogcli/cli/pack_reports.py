"""Problems of a pack and results of its rule tests, on the screen and in the envelope."""

from __future__ import annotations

from collections.abc import Sequence

from cogcli.app.checks.registry_check import RegistryCheck
from cogcli.base.errors import NO, OK
from cogcli.base.terminal_text import visible
from cogcli.cli.code_frame import Sources
from cogcli.cli.context import CommandContext
from cogcli.cli.render_error import problem_lines
from cogcli.policy.pack_check import RuleTestResult
from cogcli.report.check_report import problems_summary
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine


def report_problems(context: CommandContext, checked: RegistryCheck) -> int:
    """Write the problems of a pack, and return the exit code."""
    context.own["problems"] = [problem.to_payload() for problem in checked.problems]
    sources, width = Sources(context.base, {}), context.screen.out.width
    lines: list[StyledLine] = []
    for problem in checked.problems:
        lines += [*problem_lines(problem, width=width, as_error=False, sources=sources), [("", "")]]
    context.answer([*lines, [(problems_summary(checked.problems), "")]])
    if checked.errors:
        first = next(problem for problem in checked.problems if problem.severity == "E")
        context.fail(first.to_payload())
    return NO if checked.errors else OK


def report_tests(context: CommandContext, tests: Sequence[RuleTestResult]) -> int:
    """Write the results of rule tests, and return the exit code."""
    failed = [each for each in tests if not each.passed]
    context.own["tests"] = [{**each._asdict(), "passed": each.passed} for each in tests]
    context.answer("".join(f"{visible(_test_line(each))}\n" for each in tests))
    context.note(f"{count_of(len(tests), 'test')}, {len(failed)} failed")
    if failed:
        first = failed[0]
        message = f"rule `{first.rule_id}`: found {first.found}, expected {first.expected}"
        context.fail(
            {"code": "policy.test", "message": message}, hint="correct the rule, or its test"
        )
    return NO if failed else OK


def _test_line(test: RuleTestResult) -> str:
    """Return the line of a test result."""
    what = f"{test.rule_id} {test.number or '-'}  {test.found}"
    if test.passed:
        return f"✓ {what}"
    message = f": {test.message}" if test.message else ""
    return f"✗ {what}, expected {test.expected}{message}"
