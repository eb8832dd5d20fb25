"""`skills ls`, `search`, `show` and `graph`, from the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cogcli.app.registry import Layers, Usable, fields_of, open_registry, selection_options, text_of
from cogcli.core.errors import SkillNotFoundError
from cogcli.core.problems import suggestion

if TYPE_CHECKING:
    from cogcli.app.settings import Settings
    from cogcli.report.graph import GraphView
    from cogcli.specs.catalog import Catalog
    from cogcli.specs.skill import Skill


def list_skills(
    settings: Settings, *, domain: str | None = None, channel: str | None = None, usable: bool = False
) -> list[dict[str, Any]]:
    """One row per skill, by id."""
    catalog = open_registry(settings).everything()
    rows = [_row(skill) for _, skill in sorted(catalog.skills.items())]
    if domain is not None:
        rows = [row for row in rows if row["id"].partition(".")[0] == domain]
    if channel is not None:
        rows = [row for row in rows if row["channel"] == channel]
    if usable:
        can_run = Usable(catalog, selection_options(settings), _broken(settings, catalog))
        rows = [row for row in rows if can_run.skill(row["id"])]
    return rows


def search_skills(settings: Settings, words: list[str], limit: int) -> list[dict[str, Any]]:
    """The skills that contain every word; matches in id, name or description come before those in fields."""
    catalog = open_registry(settings).everything()
    found = []
    for id, skill in sorted(catalog.skills.items()):
        near = f"{id} {skill.name} {skill.description}".lower()
        far = f"{near} {' '.join([*skill.inputs, *skill.outputs])} {' '.join(s.uses for s in skill.steps)}".lower()
        parts = [part for word in words for part in word.lower().split()]
        if all(part in far for part in parts):
            found.append((sum(part not in near for part in parts), id not in parts, _row(skill)))
    return [row for _, _, row in sorted(found, key=lambda entry: entry[:2])][:limit]


def skill_details(settings: Settings, skill_id: str) -> dict[str, Any]:
    """All of a skill that somebody who wants to run it needs. Raises SkillNotFoundError."""
    skill, catalog = _load_skill(settings, skill_id)
    return {
        **_row(skill),
        "layer": Layers(settings).of(skill.file),
        "shadows": [s.file for s in catalog.shadows if s.kind == "skill" and s.id == skill_id],
        "inputs": fields_of(skill.inputs),
        "outputs": fields_of(skill.outputs),
        "steps": [
            {"id": step.id, "uses": step.uses, "description": step.description} for step in skill.steps
        ],
        "run": _run_line(skill),
    }


def graph_of(settings: Settings, skill_id: str) -> GraphView:
    """The steps of a skill and their dependencies. Raises SkillNotFoundError, ProblemsFound."""
    from cogcli.report.graph import GraphView, Node

    skill, _ = _load_skill(settings, skill_id)
    before: tuple[str, ...] = ()
    nodes = []
    for step in skill.steps:
        declared = step.config.depends_on
        nodes.append(Node(step.id, step.uses, before if declared is None else tuple(declared)))
        before = (step.id,)
    return GraphView(f"{skill.id} {skill.version}", tuple(nodes))


def _load_skill(settings: Settings, skill_id: str) -> tuple[Skill, Catalog]:
    """A skill with its closure. Raises SkillNotFoundError, ProblemsFound."""
    registry = open_registry(settings)
    catalog = registry.reach(skill_id)
    skill = catalog.skills.get(skill_id)
    if skill is None:
        from cogcli.core.problems import ProblemsFound, sort_problems

        if catalog.problems:
            raise ProblemsFound(sort_problems(catalog.problems))
        raise SkillNotFoundError(
            "skill.not-found", f"no skill `{skill_id}`", hint=suggestion(skill_id, registry.ids("skill"))
        )
    return skill, catalog


def read_source(settings: Settings, skill_id: str) -> str:
    """The text of a skill's file."""
    return text_of(settings, skill_details(settings, skill_id)["file"])


def _row(skill: Skill) -> dict[str, Any]:
    parts = skill.file.replace("\\", "/").split("/")
    channel = parts[-4] if len(parts) >= 4 else ""
    return {
        "id": skill.id,
        "version": skill.version,
        "channel": channel,
        "name": skill.name,
        "description": " ".join(skill.description.split()),
        "file": skill.file,
    }


_EXAMPLES = {
    "string": "=…",
    "integer": "=1",
    "number": "=1.5",
    "boolean": "=true",
    "array": ":='[]'",
    "object": ":='{}'",
    "any": "=…",
}
_FILES = ("text", "content", "document", "html", "markdown", "source")


def _run_line(skill: Skill) -> str:
    """A line to paste: every required input with a value of its type to replace."""
    words = [f"cogcli run {skill.id}"]
    for name, field in skill.inputs.items():
        if field.required and field.default is None:
            value = _EXAMPLES.get(field.type, "=…")
            if field.enum:
                value = f"={field.enum[0]}"
            elif field.type == "string" and name in _FILES:
                value = "=@FILE"
            words.append(f"-p {name}{value}")
    return " ".join(words)


def _broken(settings: Settings, catalog: Catalog) -> frozenset[str]:
    from cogcli.specs.checks import check

    found = check(catalog, options=selection_options(settings))
    return frozenset(problem.file for problem in found if problem.severity == "E")
