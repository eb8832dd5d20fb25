"""Runs of one step: a call that is governed and recorded like any other, for probes, scenarios and the harness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cogcli.runs.prepare import PreparedRun, RunRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions
from cogcli.specs.skill import skill_from


def one_step_skill(
    head: Mapping[str, str], uses: str, values: Mapping[str, Any], outputs: Mapping[str, Any], names: Iterable[str],
    step: Mapping[str, Any] = {},
) -> dict[str, Any]:  # fmt: skip
    """The specification of a skill whose only step calls `uses` with these values and gives its outputs of these names.

    `head` has id, name and description; `step` more members of the step, or others in place of these."""
    call = {
        "id": "call",
        "uses": uses,
        "input": {name: {"$literal": value} for name, value in values.items()},
        "output": {name: f"outputs.{name}" for name in names},
        **step,
    }
    return {**head, "version": "1.0.0", "inputs": {}, "outputs": dict(outputs), "steps": [call]}


def prepare_one_step(
    catalog: Catalog, skill: dict[str, Any], request: RunRequest, selection: SelectionOptions, file: str = ""
) -> PreparedRun:
    """A run of such a skill, alone in the catalog. `file` is named where something is wrong with it."""
    specs = {key: spec for key, spec in catalog.raw.items() if not key.startswith("skill:")}
    id: str = skill["id"]
    alone = catalog._replace(skills={id: skill_from(skill, file)}, raw={**specs, f"skill:{id}": skill})
    return PreparedRun(
        request._replace(skill_id=id), alone.skills[id], alone, {}, request.frame, selection, []
    )
