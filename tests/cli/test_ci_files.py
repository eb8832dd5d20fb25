"""What checks a registry in other people's CI: the hook of pre-commit and the composite action."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.action_steps import ROOT, read_action, run_step
from support.examples import LONG

pytestmark = pytest.mark.sampled(8)

BROKEN = "skills/local/demo/greet/skill.yaml"
downloads = pytest.mark.skipif(
    not LONG, reason="not asked for: it downloads (COGCLI_LONG_TESTS=1, or check.py --long)"
)


def _read(name: str) -> Any:
    return YAML(typ="safe").load((ROOT / name).read_bytes())


@pytest.fixture
def tidy(demo: Any) -> Any:
    """A project without a warning."""
    file = next(demo.root.rglob("services/**/demo*.yaml"))
    file.write_text(file.read_text().replace("isolation: thread", "isolation: process"))
    return demo


def _break(project: Any) -> None:
    file = project.root / BROKEN
    file.write_text(file.read_text().replace("inputs.text", "inputs.txet"))


def test_the_hook_runs_our_command_and_sees_every_kind_of_spec(tidy: Any) -> None:
    (hook,) = _read(".pre-commit-hooks.yaml")
    *interpreter, command = shlex.split(hook["entry"])[:4]
    words = shlex.split(hook["entry"])[4:]
    assert (interpreter, command) == (["python", "-I", "-m"], "cogcli")
    tidy.run(*words).assert_ok()
    _break(tidy)
    result = tidy.run(*words).assert_exit(1)
    assert f"{BROKEN}:" in result.out
    for path in (
        BROKEN, "cogcli.toml", "capabilities/a.b.yaml", "bindings/local/a.b/c.yaml", "services/x.yaml", "packs/p.yaml",
        "policies/official_default_selection.yaml", ".agent-skills/active_bindings.json",
        "deep/skills/local/a/b/skill.yml", "shop/calls.py", "api/openapi.json", "api/shop.yaml",
    ):  # fmt: skip
        assert re.search(hook["files"], path), path
    assert not re.search(hook["files"], "docs/page.md")


def test_the_action_tells_problems_at_their_lines(tidy: Any, tmp_path: Path) -> None:
    outputs = {"install": {"cogcli": str(Path(sys.executable).with_name("cogcli"))}}
    _, validate = read_action()["runs"]["steps"]
    assert run_step(validate, tidy, tmp_path, outputs=outputs).returncode == 0
    _break(tidy)
    arguments = "--strict --report json:found.json"
    done = run_step(validate, tidy, tmp_path, outputs=outputs, arguments=arguments)
    assert done.returncode == 1
    assert f"::warning title=cogcli (ref.input),file={BROKEN},line=" in done.stderr, done.stderr
    assert (tidy.root / "found.json").exists()


@downloads
def test_the_action_installs_what_it_runs(tidy: Any, tmp_path: Path) -> None:
    outputs: dict[str, dict[str, str]] = {}
    for step in read_action()["runs"]["steps"]:
        done = run_step(step, tidy, tmp_path, outputs=outputs)
        assert done.returncode == 0, done.stderr


@downloads
def test_pre_commit_runs_the_hook(tidy: Any, tmp_path: Path) -> None:
    venv.create(tmp_path / "clean", with_pip=True)
    tool = tmp_path / "clean/bin/pre-commit"
    subprocess.run([tool.parent / "pip", "install", "-q", "pre-commit"], check=True)
    subprocess.run(["git", "init", "-q"], cwd=tidy.root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tidy.root, check=True)
    tried = [str(tool), "try-repo", str(ROOT), "cogcli-validate", "--all-files"]
    env = {**tidy.env, "PATH": os.environ["PATH"], "PRE_COMMIT_HOME": str(tmp_path / "hooks")}
    done = subprocess.run(
        tried, cwd=tidy.root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    _break(tidy)
    done = subprocess.run(
        tried, cwd=tidy.root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"{BROKEN}:" in done.stdout
