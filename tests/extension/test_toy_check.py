"""A static check of one function and a row in the one table, which the test adds (docs/contributing.md#recipes)."""

from __future__ import annotations

from typing import Any

import pytest

from cogcli.specs.checks import CHECKS
from cogcli.specs.checks.context import CheckContext


def check_shouting(context: CheckContext) -> None:
    """Report skills whose names are in capitals."""
    for skill in context.catalog.skills.values():
        if skill.name.isupper():
            context.report(skill.file).warn(
                "toy.shouting", ("name",), f"skill `{skill.id}`: it shouts"
            )


@pytest.mark.parametrize("name", ["QUIET", "quiet"])
def test_validate_reports_what_a_toy_check_finds(
    project: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CHECKS, "shouting", check_shouting)
    project.demo()
    file = project.root / "skills/local/demo/greet/skill.yaml"
    file.write_text(file.read_text().replace("name: greet", f"name: {name}"))
    problems = project.run("validate", "--json").json["problems"]
    found = [(p["file"], p["line"]) for p in problems if p["code"] == "toy.shouting"]
    assert found == ([("skills/local/demo/greet/skill.yaml", 3)] if name == "QUIET" else [])
