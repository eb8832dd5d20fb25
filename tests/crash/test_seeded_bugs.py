"""The checks are worth something: every deliberate bug is caught."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from crash_flows import FLOWS, MORE
from crash_points import Point, Range
from crash_verdicts import Tell
from crash_zygote import Zygotes
from seeded_bugs import BUGS, Bug, planted
from support.sources import PACKAGE

TESTS = Path(__file__).resolve().parents[1]


def test_each_bug_has_its_place() -> None:
    """A bug whose place has changed is never planted, and few runs draw it."""
    sources = {bug: (PACKAGE / bug.file).read_text(encoding="utf-8") for bug in BUGS}
    assert [bug.name for bug, source in sources.items() if source.count(bug.good) != 1] == []


@pytest.mark.sampled(24)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_planted_bug_is_caught(
    shooting_range: Range, tmp_path: Path, bug: Bug, tell: Tell
) -> None:
    package = planted(bug, tmp_path)
    if bug.test:
        assert _failing_tests(package, bug.test), f"no test of `{bug.test}` notices it"
    else:
        assert _violations(shooting_range, package, bug), (
            f"no kill of {bug.flow} at {bug.kills} notices it"
        )
    tell("a planted bug is caught", "", 1, 0)


def _failing_tests(package: Path, test: str) -> bool:
    file, *words = shlex.split(test)
    pytest_itself = str(Path(sys.executable).parent / "pytest")
    done = subprocess.run(
        [pytest_itself, "-q", "-p", "no:cacheprovider", str(TESTS / file), *words],
        env={
            **os.environ,
            "PYTHONPATH": str(package),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "COGCLI_LONG_TESTS": "1",  # all cases: a bug may show in one that no sample draws
        },
        cwd=package,
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout.decode()
    return done.returncode == 1


def _violations(shooting_range: Range, package: Path, bug: Bug) -> bool:
    """Whether a kill shows the bug; the first that does is enough. Should none of the likely ones, all are tried, the
    nearest first: a change of the tool moves its calls by a few."""
    flow = next(flow for flow in (*FLOWS, *MORE) if flow.name == bug.flow)
    shooting_range.outputs(flow)
    zygotes = Zygotes(package)
    buggy = shooting_range.of(package / "points", zygotes)
    try:
        every = range(1, len(shooting_range.calls(flow, **bug.leg)) + 1)
        places = dict.fromkeys(
            (
                *bug.kills,
                *sorted(every, key=lambda at: min(abs(at - likely) for likely in bug.kills)),
            )
        )
        return any(buggy.tried(Point(flow, at, **bug.leg)).violations for at in places)
    finally:
        zygotes.close()
