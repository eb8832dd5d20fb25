"""What a message tells of a file is bounded, whatever stands there."""

from __future__ import annotations

import pytest

from cogcli.specs.problem_report import ProblemReport


@pytest.mark.parametrize("letter", ["a", "漢"])
def test_a_message_of_a_long_text_keeps_both_ends(letter: str) -> None:
    report = ProblemReport("x.yaml", None)
    report.error(
        "ref.format", ("steps", 0), f"step `ask`: `inputs.{letter * 40_000}` is not a reference"
    )
    report.add_at(
        "ref.format", "E", (1, 1), f"step `ask`: `inputs.{letter * 40_000}` is not a reference"
    )
    for problem in report.problems:
        assert len(problem.message) <= 1000
        assert problem.message.startswith("step `ask`: `inputs.")
        assert problem.message.endswith(" is not a reference")


def test_a_message_that_fits_is_told_whole() -> None:
    report = ProblemReport("x.yaml", None)
    report.error("ref.format", (), "m" * 1000)
    assert report.problems[0].message == "m" * 1000
