"""Problems of a pack and results of its rule tests, on the screen and in the envelope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cogcli.app.checks.registry_check import RegistryCheck
from cogcli.base.errors import NO, OK
from cogcli.base.terminal_text import visible
from cogcli.cli.code_frame import Sources
from cogcli.cli.context import CommandContext
from cogcli.cli.render_error import problem_lines
from cogcli.policy.pack_check import RuleTestResult
from cogcli.policy.rule_coverage import RuleCoverage, share_reached
from cogcli.report.check_report import problems_summary
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine


def report_problems(context: CommandContext, check: RegistryCheck) -> int:
    """Write the problems of a pack, and return the exit code."""
    context.own["problems"] = [problem.to_payload() for problem in check.problems]
    sources, width = Sources(context.base, {}), context.screen.out.width
    lines: list[StyledLine] = []
    for problem in check.problems:
        lines += [*problem_lines(problem, width=width, as_error=False, sources=sources), [("", "")]]
    context.answer([*lines, [(problems_summary(check.problems), "")]])
    if check.errors:
        first = next(problem for problem in check.problems if problem.severity == "E")
        context.fail(first.to_payload())
    return NO if check.errors else OK


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


def report_coverage(context: CommandContext, rules: Sequence[RuleCoverage], minimum: int) -> int:
    """Write the coverage of each rule by its tests. Return 1 if the share is below `minimum` percent."""
    share = share_reached(rules)
    context.own["coverage"] = {
        "percent": round(share, 2),
        "rules": [each.to_payload() for each in rules],
    }
    context.answer(
        "".join(f"{visible(line)}\n" for each in rules for line in _coverage_lines(each))
    )
    context.note(f"coverage of rules, branches and verdicts: {share:.1f} %")
    if share >= minimum:
        return OK
    return context.fail(
        {"code": "policy.test", "message": f"coverage is {share:.1f} %, expected {minimum} %"},
        hint="add tests next to the rules for what no test reaches",
    )


def _coverage_lines(rule: RuleCoverage) -> Iterator[str]:
    """Yield the line of a rule, and one for each thing that no test reaches."""
    missing = rule.missing
    yield f"{rule.rule_id}  {len(rule.wanted) - len(missing)} of {len(rule.wanted)}"
    for each in missing:
        yield f"  no test: {each}"


def _test_line(test: RuleTestResult) -> str:
    """Return the line of a test result."""
    what = f"{test.rule_id} {test.number or '-'}  {test.found}"
    if test.passed:
        return f"✓ {what}"
    message = f": {test.message}" if test.message else ""
    return f"✗ {what}, expected {test.expected}{message}"
