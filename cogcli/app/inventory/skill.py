"""Skills in the inventory: rows, details for a user who wants to run one, and graphs."""

from __future__ import annotations

from cogcli.app.registry import Layers, fields_to_payload, open_registry
from cogcli.app.settings import Settings
from cogcli.base.errors import SkillNotFoundError
from cogcli.base.problems import ProblemsFound, sort_problems, suggestion
from cogcli.declarations.capability_spec import Capability
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.report.graph import GraphView, Node
from cogcli.specs.catalog import Catalog
from cogcli.specs.sample_inputs import sample_inputs
from cogcli.specs.skill_search import run_line, search_metadata, skill_texts
from cogcli.specs.word_search import SearchField


def find_skill(settings: Settings, skill_id: str) -> tuple[Skill, Catalog]:
    """Return a skill with its closure. Raise SkillNotFoundError or ProblemsFound."""
    registry = open_registry(settings)
    catalog = registry.reach(skill_id)
    skill = catalog.skills.get(skill_id)
    if skill is not None:
        return skill, catalog
    if catalog.problems:
        raise ProblemsFound(sort_problems(catalog.problems))
    raise SkillNotFoundError(
        "skill.not-found",
        f"no skill `{skill_id}`",
        hint=suggestion(skill_id, registry.ids("skill")),
    )


def skill_row(skill: Skill) -> Json:
    """Return the row of a skill. Its channel is the folder that contains the folder of its
    domain."""
    parts = skill.file.replace("\\", "/").split("/")
    return {
        "id": skill.id,
        "version": skill.version,
        "channel": parts[-4] if len(parts) >= 4 else "",
        "name": skill.name,
        "description": " ".join(skill.description.split()),
        "file": skill.file,
    }


def row_texts(row: Json, spec: object) -> list[SearchField]:
    """Return the searched strings of a row: first the id, then description and tags, then the other
    members."""
    words = search_metadata(spec).tag_texts if isinstance(spec, Skill | Capability) else []
    others = (value for name, value in row.items() if name not in ("id", "description", "file"))
    return [
        SearchField(row["id"], 4),
        SearchField(str(row.get("description") or ""), 2),
        SearchField(" ".join(words), 2),
        SearchField(" ".join(map(str, others)), 1),
    ]


def texts_of_skill(row: Json, skill: Skill) -> list[SearchField]:
    """Return the searched strings of a skill."""
    fields, calls = (*skill.inputs, *skill.outputs), [step.uses for step in skill.steps]
    words = search_metadata(skill)
    return skill_texts(row["id"], row["name"], row["description"], words, fields, calls)


def skill_details(skill: Skill, layers: Layers, shadows: list[dict[str, str]]) -> Json:
    """Return the details that are not in the row: layer, shadowed files, tags, fields, steps, and a
    sample command."""
    words = search_metadata(skill)
    return {
        "layer": layers.of(skill.file),
        "shadows": [shadow["file"] for shadow in shadows],
        "tags": words.tags,
        "use_cases": words.use_cases,
        "inputs": fields_to_payload(skill.inputs),
        "outputs": fields_to_payload(skill.outputs),
        "steps": [
            {"id": step.id, "uses": step.uses, "description": step.description}
            for step in skill.steps
        ],
        "run": sample_run(skill),
    }


def sample_run(skill: Skill) -> str:
    """Return a command that runs a skill with sample inputs."""
    return run_line(skill.id, skill.inputs, sample_inputs(skill))


def graph_of(settings: Settings, skill_id: str) -> GraphView:
    """Return the steps of a skill and their dependencies. Raise SkillNotFoundError or
    ProblemsFound."""
    skill, _ = find_skill(settings, skill_id)
    before: tuple[str, ...] = ()
    nodes = []
    for step in skill.steps:
        declared = step.config.depends_on
        nodes.append(Node(step.id, step.uses, before if declared is None else declared))
        before = (step.id,)
    return GraphView(f"{skill.id} {skill.version}", tuple(nodes))
