"""The packs of tau2's desks, and the actions of its tasks under them (docs/security.md).

An optional job: the data is in the package `inspect-evals`, which no environment of this project has. `COGCLI_TAU2_DIR`
names its directory `inspect_evals/tau2/data/domains`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.project import Project

sys.path.insert(0, str(Path(__file__).parent))
from tau2_desk import DOMAINS
from tau2_gate import find_data, measure, read_pack

ROOT = Path(__file__).resolve().parents[2]
DATA = find_data()
WHY_NOT = (
    "tau2: not asked for (COGCLI_LONG_TESTS=1, or check.py --long)"
    if not os.environ.get("COGCLI_LONG_TESTS")
    else ""
    if DATA
    else "tau2: no data of inspect-evals (COGCLI_TAU2_DIR)"
)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_pack_of_a_desk_is_whole_and_its_rules_pass_their_tests(
    project: Project, domain: str
) -> None:
    pack = read_pack(domain)
    for name in pack["policy_layer"]["permissions"][0]["allow"]:
        effects = not name.partition(".")[2].startswith(
            ("get_", "find_", "search_", "calc", "transfer")
        )
        spec = {
            "id": name, "version": "1.0.0", "description": "A tool of the desk.", "inputs": None,
            "outputs": None, "properties": {"side_effects": effects},
        }  # fmt: skip
        project.write(f"capabilities/{name}.yaml", json.dumps(spec))
    project.write(f"packs/tau2-{domain}/1.0.0.yaml", json.dumps(pack))
    project.run("pack", "check", f"tau2-{domain}@1.0.0").assert_ok()
    tested = project.run("policy", "test", f"tau2-{domain}@1.0.0").assert_ok()
    assert tested.out.count("✓") == 2 * len(pack["policy_layer"]["rules"])


def test_the_page_has_the_measured_figures() -> None:
    command = [sys.executable, str(ROOT / "tooling/generate_security.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0
    figures = json.loads((ROOT / "docs/security.json").read_text())
    assert sum(desk["actions"] for desk in figures.values()) == 701
    assert all(desk["denied"] >= 0.99 * desk["seeded"] for desk in figures.values())
    assert all(
        desk["allowed"] + len(desk["refused"]) == desk["actions"] for desk in figures.values()
    )


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.parametrize("domain", DOMAINS)
def test_right_actions_are_allowed_and_seeded_violations_denied(domain: str) -> None:
    assert DATA is not None
    report = measure(DATA, domain)
    assert report.passed == []
    figures = json.loads((ROOT / "docs/security.json").read_text())
    assert json.loads(json.dumps(report.to_payload())) == figures[domain]
    rules = [rule["rule_id"] for rule in read_pack(domain)["policy_layer"]["rules"]]
    assert {rule for rule in rules if not report.seeds[rule]} <= {
        "who_is_compensated",
        "card_covers_the_order",
        "card_covers_the_difference",
    }
