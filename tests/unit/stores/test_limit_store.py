"""Racing processes never reserve more than a limit leaves (docs/reference/limits.md#store)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from cogcli.declarations.pack_spec import CumulativeLimit, RuleScope
from cogcli.policy.limits import CallAttempt, LimitClaim
from cogcli.stores.limit_store import LimitStore

PROCESSES = 1000 if os.environ.get("COGCLI_LONG_TESTS") else 8
NOW = "2026-11-27T06:00:00.000000Z"
SCOPE = RuleScope(capabilities=("pay.refund",))
LIMIT = CumulativeLimit(id="total", scope=SCOPE, sum="amount", max=3, per="tenant")
CLAIM = LimitClaim(LIMIT, "acme", "desk", "tenant:acme", Decimal("0.7"))


def reserve(folder: Path, number: int) -> bool:
    def choose(used: Mapping[str, Decimal]) -> list[LimitClaim]:
        return [CLAIM] if CLAIM.fits(used["total"]) else []

    store = LimitStore(folder / "limits.db", (folder / "limits" / "anchor",))
    attempt = CallAttempt(f"ep_{number}", "run", "step", 1)
    return bool(store.reserve(attempt, [CLAIM], NOW, choose)[1])


@pytest.mark.slow
def test_racing_processes_reserve_no_more_than_is_left(tmp_path: Path) -> None:
    children = []
    for number in range(PROCESSES):
        child = os.fork()
        if not child:
            code = 2
            try:
                code = 0 if reserve(tmp_path, number) else 1
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(codes) == [0] * 4 + [1] * (PROCESSES - 4)
