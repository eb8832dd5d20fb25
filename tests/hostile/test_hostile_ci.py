"""A hostile checkout: no interpreter that the action, the hook or a command starts imports a module of it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.action_steps import ROOT, read_action, run_step
from support.project import COGCLI

pytestmark = pytest.mark.sampled(12)

if sys.platform == "win32":
    pytest.skip("the steps are run by bash", allow_module_level=True)

MODULES = (
    "pip/__init__.py", "pip/__main__.py", "ensurepip/__init__.py", "ensurepip/__main__.py", "venv/__init__.py",
    "venv/__main__.py", "cogcli/__init__.py", "cogcli/__main__.py", "hatchling/__init__.py", "setuptools/__init__.py",
    "sitecustomize.py", "usercustomize.py", "json.py", "yaml.py", "typing.py", "runpy.py", "orjson.py",
)  # fmt: skip
BACKEND = """
import base64, hashlib, zipfile

NAME = "cogcli-0.1.dist-info"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {
        "cogcli.py": "import os, sys\\n\\n\\ndef start():\\n    print(sys.prefix, os.getcwd(), *sys.argv)\\n",
        f"{NAME}/METADATA": "Metadata-Version: 2.1\\nName: cogcli\\nVersion: 0.1\\n",
        f"{NAME}/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{NAME}/entry_points.txt": "[console_scripts]\\ncogcli = cogcli:start\\n",
    }
    files[f"{NAME}/RECORD"] = "".join(f"{name},,\\n" for name in [*files, f"{NAME}/RECORD"])
    with zipfile.ZipFile(f"{wheel_directory}/cogcli-0.1-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return "cogcli-0.1-py3-none-any.whl"
"""
"""Builds a package of one module without any other package: pip installs it without a network."""


@pytest.fixture
def checkout(demo: Any) -> Any:
    """A project that leaves the name of each module of its own that is imported in `canaries`."""
    canaries = demo.root.parent / "canaries"
    canaries.mkdir()
    for name in MODULES:
        mark = str(canaries / name.replace("/", "-"))
        demo.write(name, f"open({mark!r}, 'w').close()\n")
    demo.canaries = canaries
    return demo


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package named cogcli that installs without a network."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "cogcli"\nversion = "0.1"\n'
    )
    return folder


def _imported(checkout: Any) -> list[str]:
    return sorted(file.name for file in checkout.canaries.iterdir())


def test_the_old_way_to_install_ran_the_checkout(checkout: Any) -> None:
    """The trap works: `python -m pip` imports the checkout's `pip`."""
    subprocess.run(
        [sys.executable, "-m", "pip", "--version"], cwd=checkout.root, env=checkout.env, check=True
    )
    assert "pip-__main__.py" in _imported(checkout)


@pytest.mark.sampled(24)
@pytest.mark.slow
@pytest.mark.parametrize("search_path", [None, ".", "", ":", "checkout"])
def test_the_steps_of_the_action_import_nothing_from_the_checkout(
    checkout: Any, package: Path, tmp_path: Path, search_path: str | None
) -> None:
    variables = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
    if search_path is not None:
        variables["PYTHONPATH"] = search_path.replace("checkout", str(checkout.root))
    checkout.write("cogcli.sh", "").chmod(0o755)
    before = set(checkout.root.rglob("*"))
    outputs: dict[str, dict[str, str]] = {}
    done: Any = None
    for step in read_action()["runs"]["steps"]:
        done = run_step(
            step, checkout, tmp_path, outputs=outputs, action_path=package, variables=variables,
            arguments="--strict *.toml",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert _imported(checkout) == []
    assert set(checkout.root.rglob("*")) == before
    prefix, directory, program, *arguments = done.stdout.split()
    assert Path(prefix).parent == tmp_path
    assert Path(program).parent.parent == Path(prefix)
    assert directory == str(checkout.root)
    assert arguments == ["-C", ".", "validate", "--report", "github", "--strict", "*.toml"]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("search_path", [None, ".", ":", "checkout"])
def test_the_hook_imports_nothing_from_the_checkout(checkout: Any, search_path: str | None) -> None:
    (hook,) = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_bytes())
    env = {**checkout.env, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    if search_path is not None:
        env["PYTHONPATH"] = search_path.replace("checkout", str(checkout.root))
    command = [word for word in shlex.split(hook["entry"]) if word != "--strict"]
    done = subprocess.run(
        command, cwd=checkout.root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert _imported(checkout) == []


def test_the_installer_of_a_checkout_starts_no_pip_of_the_working_directory(checkout: Any) -> None:
    """The directory is no package, so that the real pip ends before it installs anything."""
    checkout.write("pip.py", (checkout.root / "pip/__main__.py").read_text())
    done = subprocess.run(
        [sys.executable, str(ROOT / "tooling/install.py"), "all"],
        cwd=checkout.root, env=checkout.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "does not appear to be a Python project" in done.stdout
    assert _imported(checkout) == []


MARKS = {
    "escape": "\x1b]0;owned\x07",
    "csi": "\x9b31m",
    "bidi": "\u202egnp.",
    "isolate": "\u2066x",
    "invisible": "\u200b",
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(
    "form", [("--report", "github"), ("--format", "github")], ids=["report", "format"]
)
def test_no_mark_of_a_file_name_reaches_the_log(
    demo: Any, mark: str, form: tuple[str, ...]
) -> None:
    text = "id: demo.x\nversion: '1'\nnmae: x\n"
    demo.write(f"skills/local/demo/a{MARKS[mark]},file=b::c/skill.yaml", text)
    done = demo.run("validate", *form).assert_exit(1)
    output = done.out + done.err
    lines = [
        line for line in output.splitlines() if line.startswith("::") and "local/demo/a" in line
    ]
    assert lines
    assert not any(set("\x1b\x07\x9b\u202e\u2066\u200b") & set(line) for line in lines)
    assert all(",file=b" not in line.partition("::error ")[2].partition("::")[0] for line in lines)


def test_the_end_of_a_line_in_a_file_name_begins_no_command(demo: Any) -> None:
    demo.write("skills/local/demo/a\n::error::no\r::notice::no/skill.yaml", "id: demo.x\nnmae: x\n")
    done = demo.run("validate", "--report", "github").assert_exit(1)
    assert not [
        line for line in done.err.split("\n") if line.startswith(("::error::no", "::notice::no"))
    ]


@pytest.mark.sampled(24)
@pytest.mark.parametrize(
    "search_path", ["modules", "./modules", "/nowhere:modules:", "../project/modules"]
)
@pytest.mark.parametrize(
    "start", [(sys.executable, "-m", "cogcli"), (COGCLI,)], ids=["python-m", "script"]
)
def test_a_relative_entry_of_the_search_path_is_dropped(
    demo: Any, start: tuple[str, ...], search_path: str
) -> None:
    mark = demo.root.parent / "mark"
    for name in ("json", "orjson", "tomllib", "sqlite3"):
        demo.write(f"modules/{name}.py", f"open({str(mark)!r}, 'w').close()\n")
    env = {**demo.env, "PYTHONPATH": search_path}
    for command in (("skills", "ls", "--json"), ("run", "demo.greet", "-p", "text=hi", "--json")):
        done = subprocess.run(
            [*start, *command], cwd=demo.root, env=env, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert not mark.exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("search_path", ["modules", "modules:", ":modules:/nowhere"])
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_process_of_a_function_gets_no_relative_search_path(
    demo: Any, search_path: str, isolation: str
) -> None:
    demo.services(
        """
        import json, subprocess, sys

        def upper(text: str) -> dict[str, object]:
            shown = "import json, os, sys; print(json.dumps([os.environ.get('PYTHONPATH', ''), sys.path]))"
            child = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
            return {"text": json.dumps({"own": sys.path, "child": json.loads(child.stdout)})}
        """
    )
    demo.write(
        "services/local/demo.yaml",
        f"id: demo\nkind: pythoncall\nmodule: demo_services\nisolation: {isolation}\n",
    )
    env = {"PYTHONPATH": search_path}
    result = demo.installed("run", "demo.greet", "-p", "text=hi", "--json", env=env).assert_ok()
    assert str(demo.root / "modules") not in result.out
    assert ("/nowhere" in result.out) == ("/nowhere" in search_path)
