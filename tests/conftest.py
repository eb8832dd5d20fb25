"""Shared by all tests: no network but loopback, and a project that runs the installed command."""

from __future__ import annotations

import faulthandler
import gc
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import settings
from support.examples import FEWEST, LONG
from support.project import Project
from support.sampling import find_left_out

# How long an example takes depends on who else uses the machine, and says nothing of the code.
# A long run tries as many examples as the library wants to.
settings.register_profile("cogcli", deadline=None, max_examples=100 if LONG else FEWEST)
settings.load_profile("cogcli")

gc.disable()
"""Nothing of what is collected becomes garbage; `pytest_collection_finish` switches it on."""

signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""Where these tests run in the background both are ignored, and so they would be in every command they start."""

_LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to anything but this machine fail at once."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else "127."
        if not str(host).startswith(_LOOPBACK):
            raise OSError(f"tests have no network: {address}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-case", action="store_true", help="leave no sampled case out")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked as sampled and is not of this run's sample, which its seed draws.

    `support.sampling` says which those are. A long run takes all, and so does `--every-case`.
    """
    if LONG or config.getoption("every_case"):
        return
    families: dict[tuple[str, int], list[str]] = {}
    for item in items:
        one_in = max((mark.args[0] for mark in item.iter_markers("sampled")), default=1)
        if one_in > 1:
            families.setdefault((item.nodeid.partition("[")[0], one_in), []).append(item.nodeid)
    seed = config.getoption("randomly_seed", 0)
    gone: set[str] = set()
    for (_, one_in), cases in families.items():
        gone |= find_left_out(cases, one_in, seed)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in gone])
    items[:] = [item for item in items if item.nodeid not in gone]


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the collector need not look through it again at every turn."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table of the crash runs, whichever processes they ran in (`tests/crash/conftest.py` leaves its rows)."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    rows = [
        row
        for report in reports
        for name, row in getattr(report, "user_properties", ()) or ()
        if name == "crash" and report.when == "call"
    ]
    if not rows:
        return
    terminalreporter.section("crash runs: the durability promise")
    sums: dict[tuple[str, str], list[int]] = {}
    for kind, flow, points, violations, _ in rows:
        entry = sums.setdefault((kind, flow), [0, 0])
        entry[0] += points
        entry[1] += violations
    terminalreporter.write_line(f"{'kind':<38} {'flow':<10} {'points':>8} {'violations':>11}")
    for (kind, flow), (points, violations) in sorted(sums.items()):
        terminalreporter.write_line(f"{kind:<38} {flow:<10} {points:>8} {violations:>11}")
    points, violations = (sum(entry[n] for entry in sums.values()) for n in (0, 1))
    terminalreporter.write_line(f"{'all':<38} {'':<10} {points:>8} {violations:>11}")
    if not all(row[4] for row in rows):
        terminalreporter.write_line(
            "a sample: every point is tried with COGCLI_LONG_TESTS=1 (check.py --long)"
        )


@pytest.fixture(scope="session", autouse=True)
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of compiled specs for all projects of this test process."""
    Project.warm = tmp_path_factory.mktemp("cache")
    return Project.warm


@pytest.fixture(scope="session", autouse=True)
def command_server() -> Iterator[None]:
    """Ends the server of commands with the test process."""
    yield
    Project.server.close()


@pytest.fixture
def hours_in_a_long_run(pytestconfig: pytest.Config) -> None:
    """In a long run the test may take six hours. `faulthandler_timeout` would end it after minutes."""
    if LONG:
        file = pytestconfig.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(6 * 3600, exit=True, file=file)


@pytest.fixture
def ordinary_path() -> Iterator[Path]:
    """A directory that shipped functions read documents in; those of tests may be in a system folder, in memory."""
    with TemporaryDirectory(dir="/tmp" if Path("/tmp").is_dir() else None) as place:
        yield Path(place).resolve()


@pytest.fixture
def project(tmp_path: Path, warm_cache: Path) -> Project:
    """An empty project."""
    return Project(tmp_path, warm_cache)


@pytest.fixture
def desk(project: Project) -> Project:
    """A copy of the example with an agent, `docs/examples/support-desk`."""
    example = Path(__file__).parents[1] / "docs/examples/support-desk"
    ignore = ignore_patterns("__pycache__", ".cogcli", "runs")
    copytree(example, project.root, dirs_exist_ok=True, ignore=ignore)
    return project


@pytest.fixture
def demo(project: Project) -> Project:
    """A project with two small skills."""
    return project.demo()


@pytest.fixture
def tiny_model() -> Iterator[Any]:
    """A tiny real model behind a server on loopback (`support.tinymodel`)."""
    from support.tinymodel import TinyModel

    with TinyModel(seed=1) as server:
        yield server
