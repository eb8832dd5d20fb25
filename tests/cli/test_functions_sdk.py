"""A function of a project asks for the registry of its run (docs/reference/sdk.md#catalog)."""

from __future__ import annotations

from typing import Any

import pytest

SOURCE = """
    from cogcli import sdk

    def known(text):
        ids = [skill.id for skill in sdk.skills()]
        return {"text": f"{'text.brief' in ids} {'t.asks' in ids} {len(sdk.skill_problems('id: x')) > 0}"}
"""


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_functions_in_this_process_know_the_registry_of_the_run(
    project: Any, isolation: str
) -> None:
    project.services(SOURCE)
    service = project.root / "services/local/demo.yaml"
    service.write_text(service.read_text().replace("thread", isolation))
    project.capability("t.skills.list", "known")
    project.skill("t.asks", "- {id: ask, uses: t.skills.list, input: {text: x}, output: {text: outputs.text}}",
                  outputs="{text: {type: string}}")  # fmt: skip
    if isolation == "thread":
        assert project.run("run", "t.asks", "-q").assert_ok().json == {"text": "True True True"}
    else:
        error = project.run("run", "t.asks", "--json").assert_exit(1).json["error"]
        assert (error["code"], error["reason"]) == ("call.rejected", "unsupported")
