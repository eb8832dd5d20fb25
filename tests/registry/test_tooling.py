"""The scripts of `tooling/` for the registry (docs/reference/tooling.md)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    "test_capability_contracts": "registry contracts",
    "verify_smoke_capabilities": "registry smoke",
    "compute_runtime_coverage": "registry coverage",
    "compute_runtime_stats": "registry stats",
    "compute_skill_executability": "registry executability",
    "registry_stats": "registry stats",
    "validate_registry": "validate",
    "generate_catalog": "registry catalog",
}


def script(name: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "COGCLI_TRUST_PROJECT": "1"}
    command = [sys.executable, str(ROOT / "tooling" / f"{name}.py"), *arguments]
    return subprocess.run(command, cwd=home, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_a_command(name: str, tmp_path: Path) -> None:
    done = script(name, "--help", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"cogcli {SCRIPTS[name]}" in done.stdout


@pytest.mark.slow
def test_a_report_file_gets_its_folder(tmp_path: Path) -> None:
    words = ("text.section.split", "--report-file", "artifacts/smoke_report.json")
    done = script("verify_smoke_capabilities", *words, home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1/1 capabilities called\n"), done.stderr
    report = json.loads((tmp_path / "artifacts/smoke_report.json").read_text())
    assert report["counts"] == {"total": 1, "passed": 1, "failed": 0, "needs": {}}


@pytest.mark.slow
def test_without_extras_each_call_runs_or_says_which_extra_it_needs(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    script("test_capability_contracts", "--without-extras", "--report-file", str(file), home=tmp_path)
    report = json.loads(file.read_text())
    needs = {each["id"]: {need["kind"] for need in each["needs"]} for each in report["checks"]}
    assert "extra" in needs["text.language.detect"]
    assert not needs["text.section.split"]
