"""Every case in `cases/` is one run of the command. `README.md` says how to read and write cases."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from conformance_cases import Case, all_cases
from conformance_expect import CHECKS, differences
from conformance_runs import run_case

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.run.replay import replay

pytestmark = pytest.mark.sampled(3)
"""A long run tries all of it."""

CASES = all_cases()


@pytest.mark.sampled(24)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case, warm_cache: Path, tmp_path: Path) -> None:
    ran = run_case(case, warm_cache, tmp_path)
    found = differences(case.raw["expect"], ran)
    assert not found, "\n".join([case.raw["rule"], *found, str(ran.envelope["error"])])
    if ran.sealed and ran.episode is not None:
        replayed = replay(
            ran.episode, partial(open_registry, Settings({}, {}, base=str(ran.episode)))
        )
        assert replayed.difference is None, replayed.difference


def test_there_are_enough_cases_and_each_names_its_rule() -> None:
    assert len(CASES) >= 220
    assert all(case.raw["rule"] for case in CASES)


def test_every_kind_of_expectation_is_used() -> None:
    assert {key for case in CASES for key in case.raw["expect"]} == set(CHECKS)
