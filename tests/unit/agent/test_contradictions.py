"""What graph and memory contradict each other in (docs/reference/pack.md#functional-state)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.agents import invocation
from fakes.support_desk import edge

from cogcli.agent.cognition.invocation import StoredValues
from cogcli.agent.context.compiler import compile_context
from cogcli.agent.context.contradictions import find_contradictions
from cogcli.agent.context.inputs import PromotedMemory, User

NOW = "2023-11-14T22:13:20Z"
AGE = ("order:ord_881", "age_days")
TOTAL = ("order:ord_881", "total")


def memory(id: str, predicate: str, value: object) -> PromotedMemory:
    return PromotedMemory(
        id, "semantic", "evidence_link", "order:ord_881", predicate, value, NOW, tenant_id="acme"
    )


@pytest.mark.parametrize(
    ("edges", "memories", "unresolved", "settled"),
    [
        ((edge("age_days", 12), edge("age_days", 12)), (), (), ()),
        ((edge("age_days", 12), edge("age_days", 40)), (), (AGE,), ()),
        ((edge("total", 1), edge("total", 2)), (), (), ()),  # more values at a time are possible
        ((edge("age_days", 12),), (memory("m1", "age_days", 40),), (AGE,), ()),
        ((edge("age_days", 12),), (memory("m1", "age_days", 12),), (), ()),
        ((), (memory("m1", "total", 1), memory("m2", "total", 2)), (TOTAL,), ()),
        (
            (edge("age_days", 12), edge("age_days", 40, trust="authoritative")), (), (), (AGE,)
        ),
        (
            (edge("age_days", 40), edge("age_days", 12, evidence_ref="run_1/t1_c0")),
            (memory("m1", "age_days", 40),),
            (),
            (AGE,),
        ),
        ((edge("age_days", 12), edge("age_days", 40, tenant_id="other")), (), (), ()),
        ((edge("age_days", 12), edge("age_days", 40, data_class="pii")), (), (), ()),
        ((edge("age_days", 12), edge("age_days", 40, trust="untrusted")), (), (), ()),
        ((edge("age_days", 12), edge("age_days", 40, valid_until="2001-01-01T00:00:00Z")), (), (), ()),
    ],
    ids=["equal", "graph", "many", "memory", "same", "memories", "trust", "own call",
         "tenant", "class", "untrusted", "expired"],
)  # fmt: skip
def test_contradictions(
    edges: tuple[Any, ...], memories: tuple[Any, ...], unresolved: Any, settled: Any
) -> None:
    user = User("cust_7", consent=("evidence_link",))
    given = invocation(user=user, fetched=StoredValues(edges, memories))
    context = compile_context(given.compile_input(1, "run_1", "trace_1", NOW))
    found = find_contradictions(context.compilation)
    assert (found.unresolved, found.settled) == (unresolved, settled)
    assert found.count_unresolved([AGE]) == len(set(unresolved) - {AGE})
    assert found.total == len(unresolved) + len(settled)
