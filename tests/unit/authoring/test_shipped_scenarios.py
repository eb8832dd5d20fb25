"""What lies beside the shipped scenarios is as clean as what skills are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cogcli.authoring.verification.named_mocks import STAND_INS
from cogcli.authoring.verification.scenario import files_in, read_scenario

TOOLING = Path(__file__).parents[3] / "tooling"
PROTOCOLS = ("openapi", "openrpc", "mcp")
VARIABLES = dict.fromkeys(("CHAT_API_KEY", "NOTES_TOKEN", "TIDES_TOKEN"), "x" * 12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_registry_beside_the_scenarios_validates(project: Any, protocol: str) -> None:
    registry = str(TOOLING / f"{protocol}_scenarios/registry")
    # Nobody has locked the tools of a server that is not ours.
    strict = () if protocol == "mcp" else ("--strict",)
    project.run("validate", *strict, "--registry", registry, env=VARIABLES).assert_ok()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_scenarios_id_is_the_name_of_its_file(protocol: str) -> None:
    files = files_in(str(TOOLING / f"{protocol}_scenarios"))
    assert files
    for path in files:
        assert read_scenario(path, path, STAND_INS).id == Path(path).stem


def test_nothing_of_them_is_chosen_by_a_skill() -> None:
    for path in TOOLING.glob("*_scenarios/registry/bindings/*"):
        assert path.name == "candidate"
