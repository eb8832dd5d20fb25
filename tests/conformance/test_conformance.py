"""Every case in `cases/` is one run of the installed command. `README.md` says how to read and write cases."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from conformance_cases import Case, all_cases
from conformance_expect import CHECKS, differences
from conformance_runs import Ran, run_case

CASES = all_cases()
AT_ONCE = 3


@pytest.fixture(scope="session")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Ran]]]:
    """The runs of all cases that were selected, a few at a time."""
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
        futures = {
            case.id: pool.submit(run_case, case, home, root / f"case{n}") for n, case in enumerate(cases)
        }
        yield futures
        for future in futures.values():
            future.cancel()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case, runs: dict[str, Future[Ran]]) -> None:
    ran = runs[case.id].result(timeout=120)
    found = differences(case.raw["expect"], ran)
    assert not found, "\n".join([case.raw["rule"], *found, str(ran.envelope["error"])])


def test_there_are_enough_cases_and_each_names_its_rule() -> None:
    assert len(CASES) >= 220
    assert all(case.raw["rule"] for case in CASES)


def test_every_kind_of_expectation_is_used() -> None:
    assert {key for case in CASES for key in case.raw["expect"]} == set(CHECKS)
