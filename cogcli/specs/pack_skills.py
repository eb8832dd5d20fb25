"""Converts the templates of a pack to skills, which are checked, pinned and run like any other skill.

The rules are in docs/reference/pack.md#templates.

1. A template becomes the skill `agent.PACK.TEMPLATE`. In it `lane:TEMPLATE` is the nested skill of that template.
2. Its inputs are the `inputs.x` that its steps name, its outputs the `outputs.x` that they write. All have the type
   any.
3. At most four lanes of a template run at once: the fifth waits for the first. The same limit applies to a lane per
   item.
4. The run itself has the skill `agent.PACK`, which has no steps: each turn brings a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.jsonvalue import Json
from cogcli.base.problems import ProblemsFound, sort_problems, suggestion
from cogcli.declarations.pack_spec import Pack, TaskTemplate
from cogcli.declarations.record import Record
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.spec_types import NESTED
from cogcli.specs.catalog import Catalog
from cogcli.specs.catalog_builder import CatalogBuilder
from cogcli.specs.registry import Registry
from cogcli.specs.skill import capabilities_of, skills_of
from cogcli.specs.template import LITERAL
from cogcli.specs.unchecked import members_of

LANE: Final = "lane:"
MAX_LANES: Final = 4
_INPUT: Final = re.compile(r"(?<![\w.])inputs\.([A-Za-z_]\w*)")
_OUTPUT: Final = re.compile(r"(?<![\w.])outputs\.([A-Za-z_]\w*)")
_OF_REPLY: Final = re.compile(r"(?<!\$)\$\{(inputs|outputs)\.")


def reach_pack(
    registry: Registry, ref: str, *, also: Iterable[str] = (), added_packs: Iterable[str] = ()
) -> Catalog:
    """Return the closure of a pack's agent and of its templates, which become skills of the
    catalog.

    `added_packs` are references of packs that add rules. Capabilities in `also` are added if they
    exist. Raise UnusableEnvironment `pack.unknown`, or ProblemsFound for a pack with errors.
    """
    all_layers, registry = registry, registry.for_run("pack", ref.partition("#")[0])
    builder = registry.builder()
    pack = _add_pack(builder, ref, all_layers)
    for other in added_packs:
        _add_pack(builder, other, all_layers)
    return _close_pack(registry, builder, pack, also)


def _add_pack(builder: CatalogBuilder, ref: str, all_layers: Registry) -> Pack:
    id = ref.partition("#")[0]
    if not builder.exists("pack", id):
        hint = suggestion(id, all_layers.ids("pack")) or "packs are in packs/ID/VERSION.yaml"
        raise UnusableEnvironment("pack.unknown", f"no pack `{id}`", hint=hint)
    pack = builder.add_pack(ref)
    if pack is None:
        raise ProblemsFound(sort_problems(builder.problems))
    return pack


def reach_given_pack(
    registry: Registry, raw: Json, *, also: Iterable[str] = (), added_packs: Iterable[str] = ()
) -> Catalog:
    """Return the closure, as `reach_pack` does, for a pack without a file, from its checked mapping.

    Only trusted layers are used.
    """
    all_layers, registry = registry, registry.trusted_layers()
    builder, pack = registry.builder(), Pack.of(raw)
    builder.give_pack(pack, raw)
    for other in added_packs:
        _add_pack(builder, other, all_layers)
    return _close_pack(registry, builder, pack, also)


def _close_pack(
    registry: Registry, builder: CatalogBuilder, pack: Pack, also: Iterable[str]
) -> Catalog:
    plans = [Skill.of(raw) for raw in skills_of_templates(pack)]
    capabilities = [*_permitted_capabilities(pack), *_called_capabilities(plans), *also]
    catalog = registry.build_closure(builder, _nested_skills(pack, plans), capabilities)
    return with_pack_skills(catalog, pack)


def _nested_skills(pack: Pack, plans: Sequence[Skill]) -> list[str]:
    """Return the skills that the templates call and that are tools of the pack, without the templates."""
    own = {plan.id for plan in plans}
    called = [name for plan in plans for name in skills_of(plan) if name not in own]
    tools = [id.removeprefix(NESTED) for id in pack.permitted if id.startswith(NESTED)]
    return [*called, *tools]


def _permitted_capabilities(pack: Pack) -> list[str]:
    return [id for id in pack.permitted if not id.startswith(NESTED)]


def _called_capabilities(plans: Sequence[Skill]) -> list[str]:
    return [name for plan in plans for name in capabilities_of(plan)]


def agent_skill_id(pack: Pack) -> str:
    """Return the id of the skill that a run of the pack's agent has."""
    return f"agent.{pack.pack_id}"


def template_skill_id(pack: Pack, template_id: str) -> str:
    """Return the id of the skill that a template becomes."""
    return f"{agent_skill_id(pack)}.{template_id}"


def with_pack_skills(catalog: Catalog, pack: Pack) -> Catalog:
    """Return the catalog with the skill of the agent and the skill of each template added."""
    raws = [_build_skill(agent_skill_id(pack), pack.version, ()), *skills_of_templates(pack)]
    skills = {raw["id"]: Skill.of(raw, file=pack.file) for raw in raws}
    for number, raw in enumerate(raws[1:]):
        id = raw["id"]
        skills[id] = skills[id].replace(at=("decision_layer", "task_templates", number))
    return catalog._replace(
        skills={**catalog.skills, **skills},
        raw={**catalog.raw, **{f"skill:{raw['id']}": raw for raw in raws}},
    )


def skills_of_templates(pack: Pack) -> list[Json]:
    """Return the mapping of the skill that each template becomes, as a skill file would declare it."""
    return [template_skill(pack, template) for template in pack.decisions.task_templates.values()]


def template_skill(pack: Pack, template: TaskTemplate, prefix: str = "") -> Json:
    """Return the mapping of the skill that a template becomes. The ids of its steps get a prefix."""
    steps = [_build_step(pack, step, prefix) for step in template.steps]
    lanes = [
        step for step, declared in zip(steps, template.steps, strict=True) if is_lane(declared)
    ]
    for before, step in zip(lanes, lanes[MAX_LANES:], strict=False):
        _add_dependency(step, before["id"])
    return _build_skill(template_skill_id(pack, template.id), pack.version, steps)


def reply_template(reply: str) -> str:
    """Return the reply of a template as a request template, in which inputs and outputs are members of `input`."""
    return _OF_REPLY.sub(r"${input.\1.", reply)


class _StepKeys(Record):
    """The keys of a step of a template, or of its `config`, that are read here."""

    uses: str | None = None
    output: object = None
    config: Json | None = None
    foreach: Json | None = None
    depends_on: list[str] | None = None


class _ForeachKeys(Record):
    """The keys of a `foreach` that are read here."""

    max_parallel: int | None = None


def is_lane(step: Json) -> bool:
    """Return whether a step of a template is a lane."""
    return str(_StepKeys.of(step).uses or "").startswith(LANE)


def _build_step(pack: Pack, step: Json, prefix: str) -> Json:
    made: Json = {**step, "id": prefix + step["id"]}
    if is_lane(step):
        made["uses"] = NESTED + template_skill_id(pack, step["uses"].removeprefix(LANE))
    if "config" in step:
        config = made["config"] = dict(step["config"] or {})
        foreach = _StepKeys.of(config).foreach
        if foreach and is_lane(step):
            config["foreach"] = _limit_lanes(foreach)
        _add_prefix(config, prefix)
    _add_prefix(made, prefix)
    return made


def _limit_lanes(foreach: Json) -> Json:
    maximum = min(_ForeachKeys.of(foreach).max_parallel or MAX_LANES, MAX_LANES)
    return {**foreach, "max_parallel": maximum}


def _add_prefix(members: Json, prefix: str) -> None:
    """Add a prefix to the step ids among the dependencies in a step or in its config."""
    named = _StepKeys.of(members).depends_on
    if named is not None:
        members["depends_on"] = [prefix + name for name in named]


def _add_dependency(step: Json, earlier: str) -> None:
    """Add an earlier step to the declared dependencies of a step.

    A step that declares no dependencies already waits for the step before it.
    """
    holder = step if "depends_on" in step else _StepKeys.of(step).config or {}
    if "depends_on" in holder and earlier not in holder["depends_on"]:
        holder["depends_on"] = [*holder["depends_on"], earlier]


def _build_skill(id: str, version: str, steps: Sequence[Json]) -> Json:
    inputs = dict.fromkeys(name for text in _walk_texts(steps) for name in _INPUT.findall(text))
    written = _walk_texts([_StepKeys.of(step).output for step in steps])
    outputs = dict.fromkeys(name for text in written for name in _OUTPUT.findall(text))
    return {
        "id": id,
        "version": version,
        "name": id,
        "description": "a plan of an agent",
        "inputs": {name: {"type": "any", "required": True} for name in inputs},
        "outputs": {name: {"type": "any"} for name in outputs},
        "steps": list(steps),
    }


def _walk_texts(value: object) -> Iterator[str]:
    """Yield every string in a value, except those in literals."""
    if isinstance(value, str):
        yield value
    for name, item in members_of(value):
        if name != LITERAL:
            yield from _walk_texts(item)
