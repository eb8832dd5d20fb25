"""What a program of an accepted project loads was accepted, too: another file that it would load ends the trust."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.project import Project

PYTHON = sys.executable

PLANTED: dict[str, tuple[str, str, str]] = {
    "bytecode": ("args: [server.py]", "server.py", "helper.pyc"),
    "environment": ("args: [server.py]", "server.py", "mcp/pyvenv.cfg"),
    "module": ("args: [-m, server]", "server.py", "helper.py"),
    "flags": ("args: [-um, server]", "server.py", "helper.py"),
    "installed module": ("args: [-m, mcp.server]", "pages/page.txt", "anyio.py"),
    "text": ('args: [-c, "import server"]', "server.py", "helper.py"),
    "folder": ("args: [-m, server]\ncwd: sub", "sub/server.py", "sub/helper.py"),
    "no ending": ("args: [bin/server]", "bin/server", "bin/helper.py"),
    "other folder": ("args: [bin/server.py]", "bin/server.py", "library/helper.py"),
    "other language": ("args: [bin/server.js]", "bin/server.js", "library/helper.js"),
    "package": ("args: [./bin]", "bin/package.json", "library/helper.js"),
}
"""By name the arguments of a program, a file that exists when the project is accepted, and one that is added."""


def accepted(tmp_path: Path, service: str, *files: str) -> Project:
    """An accepted project with a service that starts a program."""
    project = Project(tmp_path)
    del project.env["COGCLI_TRUST_PROJECT"]
    project.write("cogcli.toml", "")
    project.write("services/local/asker.yaml", f"id: asker\nkind: mcp\n{service}\n")
    for path in files:
        project.write(path, "import helper\n")
    project.run("config", "trust").assert_ok()
    assert state(project).startswith("accepted")
    return project


def state(project: Project) -> str:
    return project.run("config", "show", "trust").assert_ok().out


@pytest.mark.parametrize("name", PLANTED)
def test_a_file_that_a_program_would_load_ends_the_trust(tmp_path: Path, name: str) -> None:
    arguments, file, planted = PLANTED[name]
    project = accepted(tmp_path, f"command: {PYTHON}\n{arguments}", file)
    project.write(planted, "print(1)\n")
    if planted.endswith("pyvenv.cfg"):
        assert state(project).startswith("accepted"), "an environment may be made"
        planted = str(Path(planted).parent / "__init__.py")
        project.write(planted, "print(1)\n")
    assert state(project).startswith("changed")
    assert planted in state(project)


@pytest.mark.parametrize("command", ["./server", "bin/server.py"])
def test_a_file_next_to_a_program_of_the_project_ends_the_trust(tmp_path: Path, command: str) -> None:
    project = accepted(tmp_path, f"command: {command}", command)
    (project.root / command).chmod(0o755)
    project.run("config", "trust", "--yes").assert_ok()
    planted = str(Path(command).parent / "helper.py")
    project.write(planted, "print(1)\n")
    assert planted in state(project)


@pytest.mark.parametrize(
    ("command", "changed"), [("npm", "package.json"), ("uv", "pyproject.toml"), ("make", "Makefile")]
)
def test_a_file_that_says_what_is_started_ends_the_trust(tmp_path: Path, command: str, changed: str) -> None:
    project = accepted(tmp_path, f"command: {command}\nargs: [start]", changed)
    project.write(changed, "start: evil\n")
    assert changed in state(project)


def test_other_files_and_installed_packages_do_not(tmp_path: Path) -> None:
    project = accepted(tmp_path, f"command: {PYTHON}\nargs: [-m, server]", "server.py")
    for path in (
        "notes.md",
        "data.json",
        "node_modules/a/index.js",
        ".venv/lib/a.py",
        "env/pyvenv.cfg",
        "env/lib/a.py",
    ):
        project.write(path, "x\n")
    assert state(project).startswith("accepted")


def test_python_loads_what_these_arguments_say(tmp_path: Path) -> None:
    """Why `-m` and `-c` count: both import from the working directory."""
    (tmp_path / "server.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("print('loaded')\n")
    done = subprocess.run([PYTHON, "-um", "server"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "loaded\n"
