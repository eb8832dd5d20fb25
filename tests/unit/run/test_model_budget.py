"""The budget of the model that services ask inside calls (docs/reference/mcp.md#sampling)."""

from __future__ import annotations

from cogcli.declarations.events import CallSampled
from cogcli.run.model_budget import TOKENS, model_budget
from cogcli.specs.catalog import Catalog


def sampled(**members: object) -> CallSampled:
    given = {
        "step_id": "s",
        "capability": "c",
        "binding": "b",
        "service": "d",
        "attempt": 1,
        "number": 1,
    }
    return CallSampled(**{**given, "messages": [], **members})  # type: ignore[arg-type]


def test_without_a_pack_a_run_has_the_default_tokens() -> None:
    budget = model_budget(Catalog({}, {}, {}, {}), None, {})
    assert budget.budgets.limits == {TOKENS: 80_000}
    assert budget.most_output == 2000


def test_what_earlier_processes_used_is_not_free_again() -> None:
    spent = sampled(tokens_in=79_000, tokens_out=900, cost_microusd=7).spent
    assert dict(spent) == {TOKENS: 79_900, "cost_microusd": 7}
    budgets = model_budget(Catalog({}, {}, {}, {}), None, spent).budgets
    assert budgets.reserve({TOKENS: 101}).overrun is not None
    assert budgets.reserve({TOKENS: 100}).overrun is None


def test_a_refused_request_uses_nothing() -> None:
    assert not any(sampled(code="request.size").spent.values())
