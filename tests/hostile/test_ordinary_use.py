"""What users do every day needs no flag: README in a fresh clone, shipped skills in any folder, recipes in CI.

The commands run in the trap (`trap.py`): what they may reach, they reach, and nothing else. A new project is run by
`tests/cli/test_new.py`, each recipe with its own `config trust` by `tests/docs/test_cookbook.py`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

if sys.platform != "linux":
    pytest.skip("namespaces and inotify are those of Linux", allow_module_level=True)

from cage import PUBLIC
from hostile_project import HostileProject
from support.pages import Reader, blocks, commands, free_port
from support.project import Project
from trap import URL, Outcome, TrapMachine, trap_machine

pytestmark = pytest.mark.sampled(12)

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = re.compile(r"(?<=127\.0\.0\.1)(:|\", )88\d\d\b")
"""The addresses of the servers that recipes start."""
RECIPES = sorted(path.parent for path in (ROOT / "docs/cookbook").glob("*/README.md"))
FETCHES = (
    "run",
    "api.json-check",
    "-p",
    f"url={URL}/data.json",
    "-p",
    'schema:={"type": "object"}',
)
SHIPPED = (
    ("run", "text.brief", "-p", "text=The harbour opens at six. Ships wait."),
    ("run", "text.profile", "-p", "text=The harbour opens at six. Ships wait."),
    ("run", "doc.digest", "-p", "path=notes.md"),
    ("run", "text.brief", "-p", "text=@notes.md"),
    FETCHES,
)


@pytest.fixture(scope="module")
def machine() -> Iterator[TrapMachine]:
    with trap_machine() as made:
        yield made


@pytest.fixture(scope="module")
def hostile(machine: TrapMachine) -> Path:
    """A project without trust in which every field is hostile."""
    project = machine.project("hostile")
    HostileProject(project, machine.outside, machine.marks).plant(shipped=False)
    (project / "notes.md").write_text(
        "# Notes\n\nThe harbour opens at six. Ships wait in the bay.\n"
    )
    return project


@pytest.mark.sampled(24)
def test_the_commands_of_the_readme_work_in_a_fresh_clone(machine: TrapMachine) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    if not shutil.which("jq"):
        pytest.skip("README uses jq, which is not installed here")
    clone = machine.root / "projects/clone"
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(clone)], check=True)
    lines = [
        line
        for block in blocks(ROOT / "README.md")
        if block.language == "sh"
        for line in commands(block.text)
    ]
    assert sum(line.startswith("cogcli ") for line in lines) >= 5
    for line in lines:
        outcome = machine.run(
            clone, "-euo", "pipefail", "-c", line, program="/bin/bash"
        ).assert_nothing_left()
        assert outcome.code == 0, (line, outcome.err)
        assert outcome.out, line


@pytest.mark.parametrize("words", SHIPPED, ids=lambda words: f"{words[1]} {words[3][:9]}")
def test_a_shipped_skill_needs_no_flag_in_a_project_without_trust(
    machine: TrapMachine, hostile: Path, words: tuple[str, ...]
) -> None:
    """It gives what it gives in an empty directory, and reaches what the user typed."""
    empty = machine.root / "projects/empty"
    empty.mkdir(exist_ok=True)
    shutil.copy(hostile / "notes.md", empty)
    expected = machine.run(empty, *words)
    assert expected.code == 0, expected.err
    found = machine.run(hostile, *words)
    assert (found.code, found.out) == (0, expected.out), found.err
    assert _targets(found) == _targets(expected) == ([URL] if words is FETCHES else [])
    assert found.marks == found.touched == found.written == []


def _targets(outcome: Outcome) -> list[str]:
    """Where calls went, without look-ups of names."""
    return [
        URL if packet.host == PUBLIC else packet.host
        for packet in outcome.sent
        if packet.port != 53
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_works_where_the_checkout_is_trusted_by_a_variable(
    recipe: Path, project: Project
) -> None:
    """As in CI: the variable stands for each `config trust` of the page."""
    copytree(
        recipe, project.root, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__", ".cogcli")
    )
    assert project.env["COGCLI_TRUST_PROJECT"] == "1"
    port = str(free_port())
    for file in filter(Path.is_file, project.root.rglob("*")):
        text = file.read_text(encoding="utf-8")
        file.write_text(ADDRESS.sub(rf"\g<1>{port}", text), encoding="utf-8")
    page = project.root / "README.md"
    lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    page.write_text(
        "".join(line for line in lines if not line.startswith("cogcli config trust")),
        encoding="utf-8",
    )
    with Reader(project) as reader:
        reader.read(page, write=False)
    assert any(line.startswith(("cogcli run", "cogcli test")) for line in reader.ran)
