"""docs/cli.md and the home screen say what the commands say, and every command is in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cogcli.cli.app import COMMANDS
from cogcli.cli.home import HOME
from cogcli.cli.options import Command
from cogcli.cli.typer_app import load

pytestmark = pytest.mark.sampled(12)

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_and_the_home_screen_are_fresh() -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "tooling/generate_cli_docs.py"), "--check"], check=True
    )


def test_every_command_is_dispatched_and_documented() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert all(isinstance(load(name).declared, Command) for name in COMMANDS)
    assert all(f"\n## {name}\n" in page for name in COMMANDS)


def test_the_home_screen_fits() -> None:
    assert len(HOME.splitlines()) <= 24
    assert all(len(line) <= 80 for line in HOME.splitlines())
