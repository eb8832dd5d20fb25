"""A conversation does not keep the trust in a project that changes while it lasts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.packs_of_clones import CLONE
from support.project import Project
from support.user_seed import seed_user

if sys.platform == "win32":
    pytest.skip("there is no pseudo-terminal of this kind", allow_module_level=True)

from support.terminal import Terminal

pytestmark = pytest.mark.sampled(12)

PROMPT = "›"
MESSAGE = "wumpus"
WORD = "curlew"


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


def test_an_agent_of_a_project_that_is_not_trusted_shows_nothing_of_the_user(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    own = project.home / ".local/state/cogcli/memory.db"
    own.parent.mkdir(parents=True)
    for tenant in ("acme", "local"):
        seed_user(own, "default", WORD, tenant=tenant)
    before = own.read_bytes()
    project.write("cogcli.toml", "")
    project.write("packs/clone/1.0.0.yaml", json.dumps(CLONE))
    pack = ("agent", "chat", "--pack", "clone@1.0.0")
    del project.env["COGCLI_TRUST_PROJECT"]
    terminal = Terminal(project, *pack, rows=60, columns=100)
    terminal.send("/profile", PROMPT)
    terminal.until("nothing is remembered: the project is not trusted")
    assert WORD not in terminal.leave(PROMPT)
    assert own.read_bytes() == before
    terminal = Terminal(project, "agent", "chat", rows=60, columns=100)
    terminal.send("/profile", PROMPT)
    terminal.until(WORD)
    terminal.leave(PROMPT)
