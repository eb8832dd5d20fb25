"""pydantic takes and refuses the same files as the checker of shapes, with schemas from the same declarations.

Both know types, limits and names of keys. What rules compare (`check_skill` and so on) no schema knows.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from support.examples import LONG
from support.pydantic_specs import KINDS, is_valid
from support.spec_samples import change, draw_value, find_keys

from cogcli.protocols import PROTOCOLS
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape_check import check_shape
from cogcli.specs.shapes import shape_of

MANY = 3000 if LONG else 100


def faults_of(kind: str, value: Any) -> list[str]:
    report = ProblemReport("f", None, subject=kind)
    check_shape(shape_of(kind, PROTOCOLS), value, report)
    return [problem.message for problem in report.problems]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_the_verdicts_are_equal(kind: str, request: pytest.FixtureRequest) -> None:
    random = Random(f"{kind} {request.config.getoption('randomly_seed', 0)}")
    shape = shape_of(kind, PROTOCOLS)
    keys = sorted(set(find_keys(shape, set()))) or ["a"]
    taken = 0
    for _ in range(MANY):
        whole = draw_value(shape, random)
        assert (faults_of(kind, whole), is_valid(kind, whole)) == ([], True), whole
        changed = change(whole, random, keys)
        faults = faults_of(kind, changed)
        assert is_valid(kind, changed) is not bool(faults), (changed, faults)
        taken += not faults
    assert 0 < taken < MANY
