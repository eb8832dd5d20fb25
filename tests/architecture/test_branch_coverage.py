"""The pure rooms that decide are run whole by their own tests: each statement, each branch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = ("cogcli/policy/*.py", "cogcli/agent/context/*.py", "cogcli/agent/*.py")
TESTS = ("tests/unit/policy", "tests/unit/agent")


@pytest.mark.slow
@pytest.mark.skipif(
    "COGCLI_LONG_TESTS" not in os.environ, reason="takes half a minute: COGCLI_LONG_TESTS=1"
)
def test_every_branch_of_the_pure_rooms_is_run_by_their_own_tests(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COGCLI_LONG_TESTS"}
    environment["COVERAGE_FILE"] = str(tmp_path / "coverage")
    coverage = (sys.executable, "-m", "coverage")
    command = [
        *coverage,
        "run",
        "--branch",
        f"--include={','.join(FILES)}",
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *TESTS,
    ]
    ran = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    report = [
        *coverage,
        "report",
        "--show-missing",
        "--skip-covered",
        "--fail-under=100",
        "--precision=2",
    ]
    said = subprocess.run(
        report, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stdout
