"""docs/cli.md says what the table says, and every command is in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cogcli.cli.home import HOME
from cogcli.cli.main import MODULES
from cogcli.cli.table import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_fresh() -> None:
    subprocess.run([sys.executable, str(ROOT / "tooling/generate_cli_docs.py"), "--check"], check=True)


def test_every_command_is_dispatched_and_documented() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    assert set(MODULES) == {command.name for command in COMMANDS}
    assert all(f"\n## {command.name}\n" in page for command in COMMANDS)


def test_the_home_screen_fits_and_names_every_command() -> None:
    assert len(HOME.splitlines()) <= 24
    assert all(len(line) <= 80 for line in HOME.splitlines())
    assert all(command.name.split()[0] in HOME for command in COMMANDS)
