"""The rules that `openapi verify-invoker` provokes, of every protocol that promises any: the same rows."""

from __future__ import annotations

import pytest

from cogcli.authoring.verification.check_result import PASSED
from cogcli.authoring.verification.harness import Bench, check_rule, rule_from_invoker
from cogcli.protocols import PROTOCOLS

pytestmark = pytest.mark.sampled(2)

RULES = {
    f"{name} {id}": rule
    for name, row in PROTOCOLS.items()
    if row.rules
    for id, rule in row.rules().items()
}  # fmt: skip
COUNTS = {"openapi": 26, "openrpc": 19, "mcp": 19}
"""A rule that is gone is a promise that is no longer held: a lower number needs a reason."""


def test_no_rule_of_a_protocol_is_lost() -> None:
    assert {name: len(row.rules()) for name, row in PROTOCOLS.items() if row.rules} == COUNTS


@pytest.mark.sampled(8)
@pytest.mark.slow
@pytest.mark.parametrize("id", RULES)
def test_an_invoker_keeps_its_rule(id: str) -> None:
    with Bench() as bench:
        verdict = check_rule(id, rule_from_invoker(RULES[id]), bench)
    assert verdict.status == PASSED, verdict.reason
