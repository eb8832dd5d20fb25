"""Skills: a graph of steps (docs/reference/skill.md#keys)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.problems import KeyPath
from cogcli.specs.fields import Fields, Value, fields_from, value_from

NESTED: Final = "skill:"
"""The prefix of a nested skill among the targets of a step."""
STEP_KINDS: Final = ("detect", "analyze", "plan", "act", "verify", "review")


class Retry(NamedTuple):
    """The attempts of a step and the delays between them; `max_attempts` counts the first."""

    max_attempts: int = 3
    backoff_seconds: float = 1.0
    backoff_multiplier: float = 2.0


class Foreach(NamedTuple):
    """One invocation per item; `items` is an expression or a list."""

    items: Any
    as_name: str = "item"
    index_name: str | None = None
    max_parallel: int = 1
    max_items: int = 10_000


class While(NamedTuple):
    """Iterations until the condition is false or the limit is reached."""

    condition: Any
    max_iterations: int = 10


class Router(NamedTuple):
    """Chooses the target to call by the text of an expression."""

    on: str
    cases: dict[str, str]
    default: str | None = None


class Scatter(NamedTuple):
    """Calls several targets with one input; `targets` maps a result name to its target."""

    targets: dict[str, str]
    merge: str = "collect"
    max_parallel: int | None = None


class StepConfig(NamedTuple):
    """The config of a step. `depends_on` None: the step before it in the file, `()`: no step."""

    depends_on: tuple[str, ...] | None = None
    merge_strategy: str | None = None
    timeout_seconds: float | None = None
    condition: Any = None
    otherwise: dict[str, Any] | None = None
    kind: str | None = None
    retry: Retry | None = None
    foreach: Foreach | None = None
    while_: While | None = None
    router: Router | None = None
    scatter: Scatter | None = None
    rationale: str = ""


class Step(NamedTuple):
    """One step. `output` None: written by the capability's cognitive hints; `{}`: nothing is written."""

    id: str
    uses: str
    input: dict[str, Any] = NOTHING
    output: dict[str, str] | None = None
    config: StepConfig = StepConfig()
    description: str = ""

    @property
    def rationale(self) -> str:
        """Why the step exists, as the plan says it."""
        return self.config.rationale or self.description

    @property
    def nested(self) -> str | None:
        """The id of the nested skill that this step runs, None for another step."""
        return self.uses[len(NESTED) :] if self.uses.startswith(NESTED) else None

    @property
    def loop_names(self) -> frozenset[str]:
        """What the item and the index of its `foreach` are called; nothing without one."""
        foreach = self.config.foreach
        return (
            frozenset(filter(None, (foreach.as_name, foreach.index_name)))
            if foreach
            else frozenset()
        )


class Skill(NamedTuple):
    """A skill as its file declares it. `file` is the path shown to users, `at` where in it the skill is declared: empty
    but for a template of a pack."""

    id: str
    version: str
    name: str
    description: str
    inputs: Fields
    outputs: Fields
    steps: tuple[Step, ...]
    metadata: dict[str, Any] = NOTHING
    file: str = ""
    at: KeyPath = ()


def skill_from(raw: dict[str, Any], file: str = "") -> Skill:
    """A skill from its checked mapping."""
    return value_from(
        Skill,
        raw,
        inputs=fields_from(raw["inputs"]),
        outputs=fields_from(raw["outputs"]),
        steps=tuple(map(_step_from, raw["steps"])),
        file=file,
    )


def _step_from(raw: dict[str, Any]) -> Step:
    config = {**raw, **(raw.get("config") or {})}
    implied = "_router" if config.get("router") else "_scatter"
    return value_from(Step, raw, uses=raw.get("uses") or implied, config=_config_from(config))


def _config_from(raw: dict[str, Any]) -> StepConfig:
    depends_on, foreach, scatter = raw.get("depends_on"), raw.get("foreach"), raw.get("scatter")
    if foreach is not None:
        foreach = value_from(
            Foreach,
            foreach,
            as_name=foreach.get("as") or "item",
            index_name=foreach.get("index_as"),
        )
    if scatter is not None:
        entries = scatter["capabilities"]
        targets = [
            (result_name(e), e) if isinstance(e, str) else (e["name"], e["uses"]) for e in entries
        ]
        scatter = value_from(Scatter, scatter, targets=dict(targets))
    return value_from(
        StepConfig,
        raw,
        depends_on=None if depends_on is None else tuple(depends_on),
        retry=_block_from(Retry, raw.get("retry")),
        foreach=foreach,
        while_=_block_from(While, raw.get("while")),
        router=_block_from(Router, raw.get("router")),
        scatter=scatter,
    )


def _block_from(cls: type[Value], raw: dict[str, Any] | None) -> Value | None:
    return None if raw is None else value_from(cls, raw)


def result_name(target: str) -> str:
    """The name of the result of a `scatter` target without one of its own."""
    return target.removeprefix(NESTED).replace(".", "_")


def targets_of(step: Step) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every target that a step may call, as (path below the step, name)."""
    router, scatter = step.config.router, step.config.scatter
    if router:
        for case, target in router.cases.items():
            yield ("config", "router", "cases", case), target
        if router.default:
            yield ("config", "router", "default"), router.default
    elif scatter:
        for index, target in enumerate(scatter.targets.values()):
            yield ("config", "scatter", "capabilities", index), target
    else:
        yield ("uses",), step.uses


def list_targets(skill: Skill) -> list[str]:
    """The capabilities and nested skills that the steps of a skill may call, in order, each once."""
    return list(dict.fromkeys(target for step in skill.steps for _, target in targets_of(step)))


def capabilities_of(skill: Skill) -> list[str]:
    """The capabilities among `list_targets`, by id or alias."""
    return [target for target in list_targets(skill) if not target.startswith(NESTED)]


def skills_of(skill: Skill) -> list[str]:
    """The ids of the nested skills among `list_targets`."""
    return [target[len(NESTED) :] for target in list_targets(skill) if target.startswith(NESTED)]
