"""Where the crash tests try their points."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable

import pytest
from crash_points import Outcome, Range, table

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))

Judge = Callable[[str, Iterable[Outcome]], None]


@pytest.fixture(scope="session")
def shooting_range(tmp_path_factory: pytest.TempPathFactory) -> Range:
    """One for all crash tests: its home is warm, its undisturbed runs are known."""
    return Range(tmp_path_factory.mktemp("crash"))


@pytest.fixture
def judge(capsys: pytest.CaptureFixture[str]) -> Judge:
    """Prints the table of points tried and violations; fails if there is one."""

    def judged(title: str, outcomes: Iterable[Outcome]) -> None:
        outcomes = list(outcomes)
        with capsys.disabled():
            print(f"\n{table(title, outcomes)}")
        assert [one for one in outcomes if one.reached], "no point was reached"
        assert not [f"{one.point}: {text}" for one in outcomes for text in one.violations]

    return judged


@pytest.fixture(scope="session")
def strace() -> None:
    """Skips where no process can be traced."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: kills are tried by the launcher alone")
    if subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode:
        pytest.skip("tracing processes is not allowed here: kills are tried by the launcher alone")
