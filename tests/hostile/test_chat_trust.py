"""A conversation does not keep the trust in a project that changes while it lasts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.project import Project

if sys.platform == "win32":
    pytest.skip("there is no pseudo-terminal of this kind", allow_module_level=True)

from support.terminal import Terminal

PROMPT = "›"
MESSAGE = "wumpus"


def test_a_project_that_changed_since_the_message_before_runs_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    capability = project.root / "capabilities/demo.wumpus.feed.yaml"
    project.services(f"""
        def feed(text):
            for path in ({str(capability)!r}, {str(tmp_path / "fed")!r}):
                with open(path, "a") as file:
                    file.write("# fed\\n")
            return {{"text": text}}
    """)
    project.capability("demo.wumpus.feed", "feed")
    step = (
        "- {id: feed, uses: demo.wumpus.feed, input: {text: \"'x'\"}, output: {text: outputs.text}}"
    )
    project.skill("demo.wumpus", step, outputs="{text: {type: string}}")
    project.run("config", "trust").assert_ok()
    terminal = Terminal(project, "agent", "chat", rows=60, columns=100)
    terminal.send(MESSAGE, PROMPT)
    terminal.until("run it? [y/N]")
    terminal.send("y")
    terminal.until("ok in")
    terminal.send(MESSAGE, PROMPT)
    terminal.until("The nearest:")
    assert "run it? [y/N]" not in terminal.leave(PROMPT).rpartition("ok in")[2]
    assert (tmp_path / "fed").read_text() == "# fed\n"
