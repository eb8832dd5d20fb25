"""An option of a run is one declaration: its flag, its setting, its argument and its member of the log are derived.

The toy adds a declaration to the text of `declarations/options.py`, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cogcli.declarations import options

pytestmark = pytest.mark.sampled(8)

DECLARATION = """
    pace: int = _declare_option(
        IntegerOption(1, 9),
        "--pace N",
        "steps a minute",
        EXECUTION,
        default=3,
        also=_MANY_RUNS,
        setting=True,
        logged="options.pace",
        logged_if_given=True,
    )
"""
START = """
import importlib.util, sys
NAME = "cogcli.declarations.options"
spec = importlib.util.spec_from_file_location(NAME, sys.argv.pop(1))
sys.modules[NAME] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
import cogcli.declarations
cogcli.declarations.options = module
"""
COMMAND = (
    START
    + """
from cogcli.cli import main
sys.exit(main.run(sys.argv[1:]))
"""
)
CALL = (
    START
    + """
from cogcli.api import Project, UsageError
project = Project()
started = next(project.run("text.language", {"text": "a word"}, pace=5).episode.events())
try:
    project.run("text.language", {"text": "a word"}, pace=10)
except UsageError as error:
    print(started.payload["options"]["pace"], error.message, error.expected, sep="; ")
"""
)


@pytest.fixture
def declarations(tmp_path: Path) -> Path:
    """The module of the options with one more."""
    text = Path(options.__file__).read_text(encoding="utf-8")
    before = "\n    def to_payload(self)"
    file = tmp_path / "options.py"
    file.write_text(text.replace(before, DECLARATION + before, 1), encoding="utf-8")
    return file


def ran(declarations: Path, script: str, *words: str, **variables: str) -> Any:
    environ = {
        **os.environ,
        "HOME": str(declarations.parent),
        "XDG_CONFIG_HOME": str(declarations.parent),
        **variables,
    }
    return subprocess.run(
        [sys.executable, "-c", script, declarations, *words],
        capture_output=True,
        text=True,
        cwd=declarations.parent,
        env=environ,
        check=False,
    )


@pytest.mark.sampled(16)
def test_its_flag_is_in_help_of_the_commands_that_take_it(declarations: Path) -> None:
    for command in ("run", "trace", "rerun", "serve mcp"):
        out = ran(declarations, COMMAND, *command.split(), "--help").stdout
        assert re.search("  --pace N +steps a minute \\(default 3\\)", out), command
    assert "--pace" not in ran(declarations, COMMAND, "agent", "invoke", "--help").stdout


def test_it_is_a_setting_with_its_limits(declarations: Path) -> None:
    assert ran(declarations, COMMAND, "config", "show", "pace").stdout == "3\n"
    asked = ran(declarations, COMMAND, "config", "show", "pace", COGCLI_PACE="4")
    assert asked.stdout == "4\n"
    wrong = ran(declarations, COMMAND, "config", "show", "pace", COGCLI_PACE="fast")
    assert wrong.returncode == 2
    assert "COGCLI_PACE: found `fast`, expected a whole number from 1 to 9" in wrong.stderr


def test_a_run_takes_it_and_its_log_records_it(declarations: Path) -> None:
    words = ("text.language", "-p", "text=a word", "--json")
    for flags, variables, recorded in (
        (("--pace", "5"), {}, 5),
        ((), {"COGCLI_PACE": "4"}, 4),
        ((), {}, None),
    ):
        answer = json.loads(ran(declarations, COMMAND, "run", *words, *flags, **variables).stdout)
        log = Path(declarations.parent, answer["dir"], "events.jsonl").read_text()
        started = json.loads(log.partition("\n")[0])
        assert started["payload"]["options"].get("pace") == recorded
    wrong = ran(declarations, COMMAND, "run", *words, "--pace", "10")
    assert wrong.returncode == 2
    assert "`--pace`: found `10`, expected a whole number from 1 to 9" in wrong.stderr


def test_it_is_an_argument_of_the_api(declarations: Path) -> None:
    assert ran(declarations, CALL).stdout == (
        "5; `pace`: found number 10; a whole number from 1 to 9\n"
    )
