"""The same chain and the same fan-out in other tools that record each step, each in an environment of its own.

What is installed is kept between runs. A tool that cannot be installed, or has no such shape, is named with the reason.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_SCRIPTS = Path(__file__).parent / "peers"
_ROUNDS = 5
STEPS = 200
SHAPES = ("linear", "fan-out")


class Peer(NamedTuple):
    """A tool: what is installed of it, and the script that runs the steps."""

    name: str
    requirements: tuple[str, ...]
    script: str


PEERS = (
    Peer("LangGraph, SQLite", ("langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2"), "langgraph_steps.py"),
    Peer("Burr, SQLite", ("apache-burr==0.43.0",), "burr_steps.py"),
    Peer("DBOS, SQLite", ("dbos==3.4.0",), "dbos_steps.py"),
)  # fmt: skip


class PeerFigure(NamedTuple):
    """Microseconds a step of one tool and shape, the median of five runs, or the reason why there are none."""

    peer: str
    shape: str
    step_us: float | None
    reason: str


def measure_peers(folder: Path) -> Iterator[PeerFigure]:
    """Yield the figures of all peers. Installs what is missing."""
    for peer in PEERS:
        python, reason = _install(peer)
        for shape in SHAPES:
            if reason:
                yield PeerFigure(peer.name, shape, None, reason)
            else:
                yield _measure(peer, python, shape, folder)


def _install(peer: Peer) -> tuple[Path, str]:
    """Return the interpreter of the peer's environment, and why it could not be installed, if so."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "cogcli-bench" / "-".join(peer.requirements)
    python = home / "bin" / "python"
    if python.exists():
        return python, ""
    try:
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True)
        command = [str(python), "-m", "pip", "install", "-q", *peer.requirements]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.SubprocessError) as error:
        _remove(home)
        return python, f"not installed: {_last_line(error)}"
    return python, ""


def _remove(home: Path) -> None:
    import shutil

    shutil.rmtree(home, ignore_errors=True)


def _last_line(error: Exception) -> str:
    text = getattr(error, "stderr", "") or str(error)
    return str(text).strip().splitlines()[-1][:200] if str(text).strip() else type(error).__name__


def _measure(peer: Peer, python: Path, shape: str, folder: Path) -> PeerFigure:
    script = str(_SCRIPTS / peer.script)

    def run_once() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            command = [str(python), script, shape, str(STEPS), place]
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
        return float(done.stdout.split()[-1])

    try:
        seconds = _median_of(run_once)
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        return PeerFigure(peer.name, shape, None, _last_line(error))
    return PeerFigure(peer.name, shape, seconds / STEPS * 1e6, "")


def _median_of(run_once: Callable[[], float]) -> float:
    return statistics.median(run_once() for _ in range(_ROUNDS))
