"""A key that stands one level too high is told where it belongs."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "key", ["foreach: {items: [1]}", "retry: {max_attempts: 2}", "condition: 'true'"]
)
def test_a_key_of_the_config_is_told_its_place(project: Any, key: str) -> None:
    project.skill("demo.loop", f"- {{id: a, uses: demo.none, {key}}}")
    (problem,) = [
        each
        for each in project.run("validate", "--json").json["problems"]
        if each["code"] == "key.unknown"
    ]
    assert problem["hint"] == "write it below `config`"


def test_where_no_key_is_near_those_that_may_stand_there_are_told(project: Any) -> None:
    project.skill("demo.loop", "- {id: a, uses: demo.none, config: {foreach: {in: [1], as: one}}}")
    (problem,) = [
        each
        for each in project.run("validate", "--json").json["problems"]
        if each["code"] == "key.unknown"
    ]
    assert problem["hint"] == "keys: items, index_as, max_parallel, max_items, on_error"


def test_where_every_key_is_there_none_is_told(project: Any) -> None:
    project.write("cogcli.toml", b"")
    project.write(
        "services/local/web.yaml",
        b"id: web\nkind: openapi\nbase_url: '{at}'\nvariables: {at: {env: DEMO_AT, default: x, zzzz: 1}}\n",
    )
    found = project.run("validate", "--json").json["problems"]
    (problem,) = [each for each in found if each["code"] == "key.unknown"]
    assert problem["hint"] == "no other key may stand there"
