"""The scripts of `tooling/` for the registry (docs/reference/tooling.md)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.sampled(8)

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
    return subprocess.run(
        command, cwd=home, env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_a_command(name: str, tmp_path: Path) -> None:
    done = script(name, "--help", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"cogcli {SCRIPTS[name]}" in done.stdout


@pytest.mark.sampled(32)
@pytest.mark.slow
def test_a_report_file_gets_its_folder(tmp_path: Path) -> None:
    words = ("text.section.split", "--report-file", "artifacts/smoke_report.json")
    done = script("verify_smoke_capabilities", *words, home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1/1 capabilities called\n"), done.stderr
    report = json.loads((tmp_path / "artifacts/smoke_report.json").read_text())
    assert report["counts"] == {"total": 1, "passed": 1, "failed": 0, "needs": {}}


@pytest.mark.sampled(32)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "folder", "runs", "needs_one"),
    [
        ("test_capability_contracts", "capabilities", "text.section.split", "text.language.detect"),
        ("compute_skill_executability", "skills/official", "text.brief", "pdf.read-summary"),
    ],
)
def test_without_extras_each_runs_or_says_what_it_needs(
    name: str, folder: str, runs: str, needs_one: str, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    done = script(name, "--without-extras", "--report-file", str(file), home=tmp_path)
    assert done.returncode == 0, done.stdout
    report = json.loads(file.read_text())
    needs = {each["id"]: [need["kind"] for need in each["needs"]] for each in report["checks"]}
    ran = {each["id"] for each in report["checks"] if each["status"] == "passed"}
    assert len(needs) == len(
        [path for path in (ROOT / folder).rglob("*.yaml") if path.parent.name != "tests"]
    )
    assert ran == {id for id, kinds in needs.items() if not kinds}
    assert runs in ran
    assert needs[needs_one] == ["extra"]


@pytest.mark.slow
@pytest.mark.sampled(4)
def test_where_all_else_is_there_each_runs_or_says_which_extra_it_needs(tmp_path: Path) -> None:
    done = script("verify_registry_on_loopback", "--without-extras", home=tmp_path)
    assert done.returncode == 0, done.stdout
    *left, _ = [
        line for line in done.stdout.splitlines() if not re.match(r"\d+/\d+ contracts", line)
    ]
    assert left
    assert [line for line in left if " skipped: needs an extra: " not in line] == []


@pytest.mark.slow
def test_the_registry_is_valid_whatever_extras_are_installed(tmp_path: Path) -> None:
    done = script("validate_registry", "--without-extras", home=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "warning[env.extra]" in done.stdout
