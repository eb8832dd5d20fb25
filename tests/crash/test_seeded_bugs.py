"""The checks are worth something: every deliberate bug is caught. `COGCLI_LONG_TESTS=1` plants all, else a few."""

from __future__ import annotations

import copy
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LONG, Tell  # type: ignore[import-not-found]
from crash_flows import FLOWS
from crash_points import Point, Range
from seeded_bugs import BUGS, Bug, planted

TESTS = Path(__file__).resolve().parents[1]
FEW = ("effect before its intent", "an unterminated line accepted", "state before its event", "no lock")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_planted_bug_is_caught(shooting_range: Range, tmp_path: Path, bug: Bug, tell: Tell) -> None:
    package = planted(bug, tmp_path)
    if not LONG and bug.name not in FEW:
        pytest.skip("planted in a long run only: COGCLI_LONG_TESTS=1")
    if bug.test:
        assert _failing_tests(package, bug.test), f"no test of `{bug.test}` notices it"
    else:
        assert _violations(shooting_range, package, bug), f"no kill of {bug.flow} at {bug.kills} notices it"
    tell("a planted bug is caught", "", 1, 0)


def _failing_tests(package: Path, test: str) -> bool:
    file, *words = shlex.split(test)
    pytest_itself = str(Path(sys.executable).parent / "pytest")
    done = subprocess.run(
        [pytest_itself, "-q", "-p", "no:cacheprovider", str(TESTS / file), *words],
        env={**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=package,
        capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout.decode()
    return done.returncode == 1


def _violations(shooting_range: Range, package: Path, bug: Bug) -> bool:
    buggy = copy.copy(shooting_range)
    buggy.root, buggy.package = package / "points", package
    flow = next(flow for flow in FLOWS if flow.name == bug.flow)
    return any(outcome.violations for outcome in buggy.all([Point(flow, at) for at in bug.kills]))
