"""What only a Windows shows: its locks, its keys, its consoles. A runner of Windows runs this folder
(docs/contributing.md#windows); elsewhere it is told as skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cogcli.base.file_lock import is_free, lock

pytestmark = pytest.mark.skipif(
    sys.platform != "win32", reason="needs Windows: run this folder on a runner of it"
)
TEXT = "A first sentence. A second one."


def cogcli(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "cogcli", *arguments],
        cwd=cwd,
        capture_output=True,
        timeout=120,
        check=False,
    )


def test_a_lock_keeps_others_out_and_lets_them_read(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"one\n")
    first, second = (os.open(file, os.O_RDWR) for _ in range(2))
    lock(first, wait=False)
    assert not is_free(second)
    assert os.read(second, 10) == b"one\n"
    os.close(first)
    assert is_free(second)
    os.close(second)


@pytest.mark.slow
def test_a_run_leaves_an_episode_with_slashes_and_newlines_alone(tmp_path: Path) -> None:
    done = cogcli(
        "run", "text.summarize", "-p", f"text={TEXT}", "--runs-dir", "runs", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert b"\r" not in done.stdout
    (episode,) = (tmp_path / "runs").glob("ep_*")
    assert all(b"\r" not in path.read_bytes() for path in episode.rglob("*") if path.is_file())
    assert b"\\" not in (episode / "manifest.json").read_bytes()
    for command in (("verify",), ("trace",), ("replay",)):
        done = cogcli(*command, f"runs\\{episode.name}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert cogcli(*command, f"runs/{episode.name}", cwd=tmp_path).returncode == 0


def test_ctrl_break_ends_a_command_as_ctrl_c_does() -> None:
    program = """
import signal, sys
from cogcli import __main__
sys.argv = ["cogcli", "--version"]
__main__.main()
signal.raise_signal(signal.SIGBREAK)
"""
    assert (
        subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 130
    )
