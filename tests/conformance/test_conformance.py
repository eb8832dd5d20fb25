"""Every case in `cases/` is one run of the installed command. `README.md` says how to read and write cases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from conformance_cases import Case, all_cases
from conformance_expect import CHECKS, differences
from conformance_runs import Ran, run_case

from cogcli.app.replay import replay
from cogcli.app.settings import Settings

Runs = Callable[[Case], "Future[Ran]"]
CASES = all_cases()
AT_ONCE = 3


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """The runs of all cases that were selected, a few at a time; where several test processes share them, each its own
    ones when they are asked for."""
    root = tmp_path_factory.mktemp("conformance")
    home = root / "home"
    home.mkdir()
    asked = [
        item
        for item in request.session.items
        if hasattr(item, "callspec") and item.path.name == "test_conformance.py"
    ]
    cases: list[Case] = [item.callspec.params["case"] for item in asked]  # type: ignore[attr-defined]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures: dict[str, Future[Ran]] = {}

        def run_of(case: Case) -> Future[Ran]:
            if case.id not in futures:
                futures[case.id] = pool.submit(run_case, case, home, root / f"case{len(futures)}")
            return futures[case.id]

        for case in cases if "PYTEST_XDIST_WORKER" not in os.environ else ():
            run_of(case)
        yield run_of
        for future in futures.values():
            future.cancel()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case, runs: Runs) -> None:
    ran = runs(case).result(timeout=200)
    found = differences(case.raw["expect"], ran)
    assert not found, "\n".join([case.raw["rule"], *found, str(ran.envelope["error"])])
    if ran.sealed and ran.episode is not None:
        replayed = replay(Settings({}, {}, base=str(ran.episode)), ran.episode)
        assert replayed.difference is None, replayed.difference


def test_there_are_enough_cases_and_each_names_its_rule() -> None:
    assert len(CASES) >= 220
    assert all(case.raw["rule"] for case in CASES)


def test_every_kind_of_expectation_is_used() -> None:
    assert {key for case in CASES for key in case.raw["expect"]} == set(CHECKS)
