"""The shell steps of `action.yml`, run as a runner of GitHub runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[2]


def read_action() -> Any:
    """Return the content of `action.yml`."""
    return YAML(typ="safe").load((ROOT / "action.yml").read_bytes())


def run_step(
    step: Mapping[str, Any], project: Any, temporary: Path, *, outputs: dict[str, dict[str, str]],
    action_path: Path = ROOT, variables: Mapping[str, str] | None = None, **given: str,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run one step in the checkout `project`, with `inputs` that are not given at their defaults.

    `python` is the interpreter of the tests. What the step writes to `GITHUB_OUTPUT` goes to `outputs`.
    """
    inputs = {
        name: given.get(name, each["default"]) for name, each in read_action()["inputs"].items()
    }
    programs = temporary / "programs"
    programs.mkdir(exist_ok=True)
    python = programs / "python"
    if not python.exists():
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
    written = temporary / "output"
    written.write_text("")

    def expand(text: str) -> str:
        text = re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], text)
        return re.sub(
            r"\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}",
            lambda found: outputs[found[1]][found[2]],
            text,
        )

    env = {
        **project.env,
        "PATH": f"{programs}:/usr/bin:/bin",
        "GITHUB_ACTION_PATH": str(action_path),
        "GITHUB_OUTPUT": str(written),
        "RUNNER_TEMP": str(temporary),
        "CI": "true",
        **(variables or {}),
        **{name: expand(text) for name, text in step.get("env", {}).items()},
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(
        shell, cwd=project.root, env=env, capture_output=True, text=True, check=False
    )
    lines = [line.partition("=") for line in written.read_text().splitlines()]
    outputs[step.get("id", step["name"])] = {name: value for name, _, value in lines}
    return done
