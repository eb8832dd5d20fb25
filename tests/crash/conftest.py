"""Where the crash tests try their points, and the table of what they tried."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator

import pytest
from crash_flows import FLOWS, MORE
from crash_points import Outcome, Range
from crash_verdicts import LONG, Judge, Tell
from crash_zygote import INSTALLED


@pytest.fixture(scope="session")
def shooting_range(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Range]:
    """One for all crash tests: its home is warm, its undisturbed runs are known."""
    found = Range(tmp_path_factory.mktemp("crash"))
    yield found
    INSTALLED.close()
    found.service.close()


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Adds a row to the table at the end of the test run: what was tried, on which flow, how often, violations."""

    def told(kind: str, flow: str, points: int, violations: int) -> None:
        record_property("crash", [kind, flow, points, violations, LONG])

    return told


@pytest.fixture
def judge(tell: Tell) -> Judge:
    """Fails if a point showed a violation, or if there was none."""

    def judged(kind: str, outcomes: Iterable[Outcome]) -> None:
        reached = [one for one in outcomes if one.reached]
        for flow in (*FLOWS, *MORE):
            own = [one for one in reached if one.point.flow == flow]
            if own:
                tell(kind, flow.name, len(own), sum(bool(one.violations) for one in own))
            plain = [one for one in own if one.plain]
            if plain:
                at = f"{kind}, on the fast path"
                tell(at, flow.name, len(plain), sum(bool(one.violations) for one in plain))
        assert reached, "no point was reached"
        assert not [f"{one.point}: {text}" for one in reached for text in one.violations]

    return judged


@pytest.fixture(scope="session")
def strace() -> None:
    """Skips where no process can be traced."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: kills are tried by the launcher alone")
    if subprocess.run(
        ["strace", "-o", os.devnull, "true"], capture_output=True, check=False
    ).returncode:
        pytest.skip("tracing processes is not allowed here: kills are tried by the launcher alone")
