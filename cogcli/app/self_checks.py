"""Self-verification: the rules of an invoker and the rows of the failure model, each provoked
(docs/reference/protocols.md#own-rules)."""

from __future__ import annotations

from collections.abc import Callable

from cogcli.app import preflight_rules
from cogcli.core.errors import UsageError
from cogcli.protocols import PROTOCOLS
from cogcli.protocols.invoker_rule import InvokerRule, InvokerRules
from cogcli.protocols.pythoncall.stdout_capture import divert_streams
from cogcli.verification import failure_rules
from cogcli.verification.check_result import CheckResult, CheckResults, verify_all
from cogcli.verification.harness import Bench, check_rule

_AT_ONCE = 8


def list_invoker_rules(protocol: str) -> InvokerRules:
    """The rules of one protocol by id. Raises UsageError for a protocol without rules."""
    row = PROTOCOLS.get(protocol)
    if row is None or row.rules is None:
        ruled = [name for name, row in PROTOCOLS.items() if row.rules]
        raise UsageError("usage.value", f"`--protocol`: found `{protocol}`, expected {', '.join(ruled)}")
    return row.rules()


def list_failure_rules() -> InvokerRules:
    """The rows of the failure model by id: first those that keep a run from starting."""
    return {**preflight_rules.list_rules(), **failure_rules.lines()}


def provoke_rules(
    lines: InvokerRules, *, listener: Callable[[CheckResult], None] | None = None
) -> CheckResults:
    """Run every rule, some at a time; `listener` gets each result, in the order of the rules."""

    def provoke(line: tuple[str, InvokerRule]) -> CheckResult:
        with Bench() as bench:
            return check_rule(*line, bench)

    with divert_streams():
        return verify_all(lines.items(), provoke, _AT_ONCE, listener)
