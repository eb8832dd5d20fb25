"""What a program of an accepted project loads was accepted, too: another file that it would load ends the trust."""

from __future__ import annotations

import importlib.util
import json
import marshal
import subprocess
import sys
from pathlib import Path

import pytest
from support.project import Project

pytestmark = pytest.mark.sampled(4)

PYTHON = sys.executable
BINDING = """
    id: ask
    capability: own.text.ask
    service: asker
    protocol: mcp
    operation: ask
    request: {}
    response: {text: response.text}
"""
CAPABILITY = """
    id: own.text.ask
    version: "1.0.0"
    description: Asks the program.
    inputs: {}
    outputs: {text: {type: string, required: true}}
    properties: {side_effects: false}
"""

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


@pytest.mark.sampled(3)
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
def test_a_file_next_to_a_program_of_the_project_ends_the_trust(
    tmp_path: Path, command: str
) -> None:
    project = accepted(tmp_path, f"command: {command}", command)
    (project.root / command).chmod(0o755)
    project.run("config", "trust", "--yes").assert_ok()
    planted = str(Path(command).parent / "helper.py")
    project.write(planted, "print(1)\n")
    assert planted in state(project)


@pytest.mark.parametrize("planted", ["evil.pth", "sitecustomize.py", "usercustomize.py"])
def test_a_file_that_an_environment_runs_at_its_start_ends_the_trust(
    tmp_path: Path, planted: str
) -> None:
    packages = ".venv/lib/python3.11/site-packages"
    files = [".venv/bin/python", ".venv/pyvenv.cfg", f"{packages}/known.pth", "server.py"]
    project = accepted(tmp_path, "command: .venv/bin/python\nargs: [server.py]", *files)
    (project.root / ".venv/bin/python").chmod(0o755)
    project.run("config", "trust", "--yes").assert_ok()
    project.write(f"{packages}/package.py", "print(1)\n")
    assert state(project).startswith("accepted"), "a package may be installed"
    project.write(f"{packages}/{planted}", "import evil\n")
    assert planted in state(project)


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("npm start", "package.json"),
        ("npm start", ".npmrc"),
        ("npx -y @own/server", ".npmrc"),
        ("env npx server", "package.json"),
        ("uv run server", "pyproject.toml"),
        ("uvx server", "uv.toml"),
        ("uvx server", ".python-version"),
        ("make start", "Makefile"),
        ("docker compose run server", "compose.yaml"),
        ("go run .", "main.go"),
        ("cargo run", "build.rs"),
        ("task start", "Taskfile.yml"),
    ],
)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_file_that_says_what_is_started_ends_the_trust(
    tmp_path: Path, words: str, changed: str, is_new: bool
) -> None:
    command, *args = words.split()
    service = f"command: {command}\nargs: {json.dumps(args)}"
    project = accepted(tmp_path, service, *(() if is_new else (changed,)))
    project.write(changed, "start: evil\n")
    assert changed in state(project)


@pytest.mark.parametrize("words", ["npx -y @own/server", "uvx server", "docker run server"])
def test_code_next_to_a_program_that_fetches_another_one_does_not(
    tmp_path: Path, words: str
) -> None:
    command, *args = words.split()
    project = accepted(tmp_path, f"command: {command}\nargs: {json.dumps(args)}", "page.js")
    for path in ("page.js", "page.py", "README.md"):
        project.write(path, "x\n")
    assert state(project).startswith("accepted")


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
    done = subprocess.run(
        [PYTHON, "-um", "server"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "loaded\n"


def _plant_bytecode(source: Path, text: str) -> None:
    """Put bytecode of another text next to a source, which Python takes without a look at the source."""
    code = marshal.dumps(compile(text, str(source), "exec"))
    compiled = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code)


@pytest.mark.parametrize("flags", ["", "-E, "])
def test_bytecode_next_to_an_accepted_source_is_not_loaded(tmp_path: Path, flags: str) -> None:
    service = f"command: {PYTHON}\nargs: [{flags}server.py]"
    project = accepted(tmp_path, service, "server.py")
    project.write("helper.py", f"open({str(tmp_path / 'good')!r}, 'w')\n")
    project.write("bindings/local/own.text.ask/ask.yaml", BINDING)
    project.write("capabilities/own.text.ask.yaml", CAPABILITY)
    project.skill(
        "own.ask", "- {id: ask, uses: own.text.ask, input: {}, output: {text: vars.text}}"
    )
    project.run("config", "trust", "--yes").assert_ok()
    _plant_bytecode(project.root / "helper.py", f"open({str(tmp_path / 'evil')!r}, 'w')\n")
    assert state(project).startswith("accepted")
    project.run("run", "own.ask")
    assert (tmp_path / "good").exists()
    assert not (tmp_path / "evil").exists()
    assert len(list((project.root / "__pycache__").iterdir())) == 1, "nothing of ours is added"


def test_a_worker_loads_no_bytecode_next_to_an_accepted_module(tmp_path: Path) -> None:
    project = Project(tmp_path).demo()
    del project.env["COGCLI_TRUST_PROJECT"]
    project.write(
        "services/local/demo.yaml",
        "id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: process\n",
    )
    project.run("config", "trust").assert_ok()
    _plant_bytecode(project.root / "demo_services.py", f"open({str(tmp_path / 'evil')!r}, 'w')\n")
    assert state(project).startswith("accepted")
    project.installed("run", "demo.greet", "-p", "text=hi").assert_ok()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("folder", [".hidden", "node_modules", "__pycache__", "env"])
def test_a_module_is_not_imported_from_a_folder_that_was_not_accepted(
    tmp_path: Path, folder: str
) -> None:
    project = Project(tmp_path)
    project.services(f"""
        import os, sys
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), {folder!r}))
        try:
            import helper
        except ImportError:
            helper = None

        def ask(text):
            return {{"text": "not loaded" if helper is None else "loaded"}}
    """)
    project.capability("demo.text.ask", "ask")
    project.skill(
        "demo.ask",
        "- {id: a, uses: demo.text.ask, input: {text: \"'x'\"}, output: {text: outputs.text}}",
        outputs="{text: {type: string}}",
    )
    project.write(f"{folder}/helper.py", "print(1)\n")
    if folder == "env":
        project.write("env/pyvenv.cfg", "")
    assert project.installed("run", "demo.ask").assert_ok().json["text"] == "not loaded"
