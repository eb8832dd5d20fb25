"""The agent of the example, planned by a tiny real model that nobody scripted (docs/how-to/use-a-model.md).

500 seeds with `COGCLI_LONG_TESTS=1`; else twelve. What a run waits for is approved by every second seed, else rejected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from support.agent_desk import (
    PAID,
    answer,
    ask,
    episode_of,
    payloads,
    require_counted,
    require_governed,
    use,
    with_ledger,
)
from support.examples import LONG
from support.project import Project, Result
from support.tinymodel import TinyModel

pytestmark = pytest.mark.sampled(12)

GROUP = 25 if LONG else 3
GROUPS = 20 if LONG else 4
REQUESTS = ("needs-finance", "allowed", "over-budget")


@pytest.mark.sampled(24)
@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_a_model_says_its_run_is_governed(
    desk: Project, group: int, record_property: Callable[[str, object], None]
) -> None:
    with_ledger(desk)
    ends = Counter[str]()
    for seed in range(group * GROUP, (group + 1) * GROUP):
        ends[_end_of(desk, seed)] += 1
    record_property("ends", dict(ends))


def _end_of(desk: Project, seed: int) -> str:
    """How the run of a seed ended, in words."""
    word, before = "--approve" if seed % 2 else "--reject", ""
    (desk.root / PAID).unlink(missing_ok=True)
    with TinyModel(seed=seed) as server:
        use(desk, server, "bigram-json")
        result = ask(desk, REQUESTS[seed % len(REQUESTS)])
        while result.code == 5 and len(before) < 80:
            before += f"{require_governed(desk, result)}, {word}: "
            _require_approved(desk, result)
            result = answer(desk, result, word)
        require_counted(result, episode_of(desk, result), server)
    end = require_governed(desk, result)
    _require_approved(desk, result)
    return f"{result.code} {before}{end}"


def _require_approved(desk: Project, result: Result) -> None:
    """Nothing was paid that no person approved."""
    paid = (desk.root / PAID).read_text().splitlines() if (desk.root / PAID).exists() else []
    assert len(paid) <= len(payloads(episode_of(desk, result), "approval.granted"))
