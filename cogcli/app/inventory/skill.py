"""Skills in the inventory: a row, all that somebody who wants to run one needs, its graph."""

from __future__ import annotations

from typing import Any

from cogcli.app.registry import Layers, fields_of, open_registry
from cogcli.app.settings import Settings
from cogcli.core.errors import SkillNotFoundError
from cogcli.core.problems import ProblemsFound, sort_problems, suggestion
from cogcli.report.graph import GraphView, Node
from cogcli.specs.catalog import Catalog
from cogcli.specs.skill import Skill
from cogcli.specs.skill_search import run_line


def find_skill(settings: Settings, skill_id: str) -> tuple[Skill, Catalog]:
    """A skill with its closure. Raises SkillNotFoundError, ProblemsFound."""
    registry = open_registry(settings)
    catalog = registry.reach(skill_id)
    skill = catalog.skills.get(skill_id)
    if skill is not None:
        return skill, catalog
    if catalog.problems:
        raise ProblemsFound(sort_problems(catalog.problems))
    raise SkillNotFoundError(
        "skill.not-found", f"no skill `{skill_id}`", hint=suggestion(skill_id, registry.ids("skill"))
    )


def skill_row(skill: Skill) -> dict[str, Any]:
    """The row of a skill; its channel is the folder around its domain."""
    parts = skill.file.replace("\\", "/").split("/")
    return {
        "id": skill.id,
        "version": skill.version,
        "channel": parts[-4] if len(parts) >= 4 else "",
        "name": skill.name,
        "description": " ".join(skill.description.split()),
        "file": skill.file,
    }


def skill_text(row: dict[str, Any], skill: Skill) -> str:
    """What a search looks through: id, name, description, the names of fields, the targets of steps."""
    uses = [step.uses for step in skill.steps]
    return " ".join([row["id"], row["name"], row["description"], *skill.inputs, *skill.outputs, *uses])


def skill_details(skill: Skill, layers: Layers, shadows: list[dict[str, str]]) -> dict[str, Any]:
    """What a row does not hold: layer, hidden files, fields, steps, a line to run it."""
    return {
        "layer": layers.of(skill.file),
        "shadows": [shadow["file"] for shadow in shadows],
        "inputs": fields_of(skill.inputs),
        "outputs": fields_of(skill.outputs),
        "steps": [
            {"id": step.id, "uses": step.uses, "description": step.description} for step in skill.steps
        ],
        "run": run_line(skill.id, skill.inputs),
    }


def graph_of(settings: Settings, skill_id: str) -> GraphView:
    """The steps of a skill and their dependencies. Raises SkillNotFoundError, ProblemsFound."""
    skill, _ = find_skill(settings, skill_id)
    before: tuple[str, ...] = ()
    nodes = []
    for step in skill.steps:
        declared = step.config.depends_on
        nodes.append(Node(step.id, step.uses, before if declared is None else declared))
        before = (step.id,)
    return GraphView(f"{skill.id} {skill.version}", tuple(nodes))
