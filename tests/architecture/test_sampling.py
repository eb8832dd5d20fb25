"""The sample of a run: enough of each family in every run, and every case in some run."""

from __future__ import annotations

import pytest
from support.sampling import find_left_out

SEEDS = range(200)


def drawn(cases: list[str], one_in: int, seed: int) -> set[str]:
    return set(cases) - find_left_out(cases, one_in, seed)


@pytest.mark.parametrize(
    ("count", "one_in", "number"), [(2, 2, 1), (7, 3, 2), (10, 3, 3), (9, 9, 1), (40, 6, 7)]
)
def test_of_enough_cases_every_run_has_the_same_number(
    count: int, one_in: int, number: int
) -> None:
    cases = [f"test_a[{n}]" for n in range(count)]
    samples = [drawn(cases, one_in, seed) for seed in SEEDS]
    assert {len(sample) for sample in samples} == {number}
    assert set().union(*samples) == set(cases)


def test_of_fewer_cases_each_is_in_about_one_of_so_many_runs() -> None:
    runs = sum(drawn(["test_a"], 4, seed) == {"test_a"} for seed in SEEDS)
    assert len(SEEDS) / 8 < runs < len(SEEDS) / 2


def test_a_seed_draws_the_same_sample_whatever_the_order() -> None:
    cases = [f"test_a[{n}]" for n in range(30)]
    assert drawn(cases, 5, 7) == drawn(cases[::-1], 5, 7)
    assert drawn(cases, 5, 7) != drawn(cases, 5, 8)
