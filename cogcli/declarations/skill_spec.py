"""Skills: a graph of steps (docs/reference/skill.md#keys)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.merge import STRATEGIES
from cogcli.base.problems import KeyPath
from cogcli.declarations.field import key, place
from cogcli.declarations.field_spec import Fields
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_ceilings import HIGHEST
from cogcli.declarations.spec_types import (
    LONGEST_ID,
    NESTED,
    SKILL_ID,
    STEP_ID,
    FieldName,
    Seconds,
    Version,
    Words,
)
from cogcli.declarations.value_types import Json, StepKind

SkillId = Annotated[
    str,
    SpecLimits(
        pattern=SKILL_ID,
        code="id.format",
        longest=LONGEST_ID,
        expected="`domain.slug` in lower case",
    ),
]
StepId = Annotated[
    str,
    SpecLimits(pattern=STEP_ID, code="id.format", expected="1 to 64 letters, digits, `_` or `-`"),
]
Target = Annotated[Words, SpecLimits(ids="targets")]
"""A capability by id or alias, or `skill:` and the id of a nested skill."""
Condition = str | bool
Dependencies = Annotated[tuple[str, ...], SpecLimits(hint="write [a]")]
Parallel = Annotated[int, SpecLimits(minimum=1, maximum=256)]


class Retry(Spec):
    """The attempts of a step and the delays between them."""

    max_attempts: Annotated[int, SpecLimits(minimum=1, maximum=100)] = 3
    """The first one counts."""
    backoff_seconds: Annotated[float, SpecLimits(minimum=0, maximum=3600)] = 1.0
    """The first wait."""
    backoff_multiplier: Annotated[float, SpecLimits(minimum=1, maximum=10)] = 2.0
    """Each wait is so many times the one before, at most 60 s."""


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


class Foreach(Spec):
    """One invocation per item."""

    items: str | list[Any]
    """A list, or an expression whose value is a list."""
    as_name: FieldName = key(default="item", name="as")
    """The name of an item."""
    index_name: FieldName | None = key(default=None, name="index_as")
    """The name of its number, from 0."""
    max_parallel: Parallel = 1
    """So many at a time."""
    max_items: Annotated[int, SpecLimits(minimum=1, maximum=HIGHEST.max_items)] = 10_000
    """More is `foreach.limit`; at most the setting [`limits.max_items`](spec-files.md#ceilings)."""
    on_error: Literal["stop", "collect"] = "stop"
    """`collect`: an item that fails is null, the others go on, and the run is [partial](execution.md#collect)."""

    @property
    def collects(self) -> bool:
        """Whether items that fail do not fail the step."""
        return self.on_error == "collect"

    @property
    def expression(self) -> str | None:
        """Return the expression for the items; None if they are listed."""
        return _text_or_none(self.items)


class While(Spec):
    """Iterations until the condition is false or the limit is reached."""

    condition: Condition
    """Asked after each round."""
    max_iterations: Annotated[int, SpecLimits(minimum=1, maximum=HIGHEST.max_iterations)] = 10
    """Then the step is done; at most the setting [`limits.max_iterations`](spec-files.md#ceilings)."""

    @property
    def expression(self) -> str | None:
        """Return the expression of the condition; None if it is a constant."""
        return _text_or_none(self.condition)


class Router(Spec):
    """The choice of a target by the value of an expression."""

    on: Words
    """An expression."""
    cases: Annotated[dict[str, Target], SpecLimits(foreign=True, filled=True)]
    """Its value as text, to a capability or `skill:` target; at least one."""
    default: Target | None = None
    """The target for any other value."""


class ScatterTarget(Spec):
    """A target with a name for its result."""

    name: FieldName
    """The name of its result."""
    uses: Annotated[str, SpecLimits(ids="targets")]
    """The target."""


class Scatter(Spec):
    """Calls of several targets with one input."""

    capabilities: Annotated[tuple[Target | ScatterTarget, ...], SpecLimits(minimum=2, maximum=100)]
    """Targets."""
    merge: Literal["collect", "concat_lists", "first_success"] = "collect"
    """The way to merge the results."""
    max_parallel: Parallel | None = None
    """So many at a time.
    Default: all"""

    @property
    def targets(self) -> dict[str, str]:
        """Return the targets by the names of their results."""
        return dict(
            (result_name(entry), entry) if isinstance(entry, str) else (entry.name, entry.uses)
            for entry in self.capabilities
        )


def result_name(target: str) -> str:
    """Return the default name of the result of a `scatter` target."""
    return target.removeprefix(NESTED).replace(".", "_")


MergeStrategy = Annotated[str, SpecLimits(choices=STRATEGIES)]


class StepConfig(Spec):
    """The execution rules of a step, such as loops, retries and time limits."""

    depends_on: Dependencies | None = None
    """Ids of steps that must end first. With `[]`, the step starts immediately.
    Default: the step before in the file"""
    merge_strategy: MergeStrategy | dict[Words, MergeStrategy] | None = None
    """The way to [write](#merges): a strategy for all targets, or target to strategy.
    Default: `overwrite`, or that of the hints"""
    timeout_seconds: Seconds | None = None
    """Limit of one invocation with all its attempts.
    Default: [by the options of the run](execution.md#limits)"""
    condition: Condition | None = None
    """An [expression](#expressions); where it is false the step is [skipped](#condition)."""
    otherwise: Json | None = None
    """Produced field to value, for a step that is skipped."""
    kind: StepKind | None = None
    """The kind under which the step is displayed.
    Default: [from the capability](capability.md#effects)"""
    rationale: str = ""
    """The reason for the step: `rationale` in the plan of `state.json`.
    Default: the step's `description`"""
    retry: Retry | None = None
    """[More attempts](#retry).
    Default: no repeats"""
    foreach: Foreach | None = None
    """[Once for each item](#foreach)."""
    while_: While | None = key(default=None, name="while")
    """The condition for [another round](#while)."""
    router: Router | None = None
    """[One of several](#router)."""
    scatter: Scatter | None = None
    """[Several at once](#scatter)."""

    @property
    def is_loop(self) -> bool:
        """Whether the step is repeated, for each item or while a condition holds."""
        return self.foreach is not None or self.while_ is not None

    @property
    def expression(self) -> str | None:
        """Return the expression of the condition; None if it is absent or a constant."""
        return _text_or_none(self.condition)

    def strategy_of(self, target: str) -> str | None:
        """Return the declared strategy of a write; None if it follows from elsewhere."""
        declared = self.merge_strategy
        return declared.get(target) if isinstance(declared, dict) else declared


class Step(Spec):
    """One step."""

    thing = "step"
    id: StepId
    """Unique in the skill."""
    uses: Target = key(default="")
    """A capability by id or alias, or `skill:` and the id of a [nested skill](#nested).
    Default: required, unless `config` has `router` or `scatter`"""
    input: Json = NOTHING
    """Field to value: [references](#references)."""
    output: dict[str, str] | None = None
    """Produced path to target: [writing](#merges); `{}` writes nothing.
    Default: by the capability's [hints](capability.md#hints)"""
    config: StepConfig = StepConfig()
    """[Below](#config)."""
    description: str = ""
    """The purpose of the step."""
    depends_on: Dependencies | None = None
    timeout_seconds: Seconds | None = None
    """The same as there; in both places: `step.alias`.
    Default: as in `config`"""

    @classmethod
    def of(cls, json: Json, **places: object) -> Self:
        """Return the step of a checked mapping.

        The step's own `depends_on` and `timeout_seconds` come from its config. A step that chooses
        its target uses `_router` or `_scatter`.
        """
        config = json.get("config") or {}
        own = {name: json[name] for name in _OF_CONFIG if json.get(name) is not None}
        if own:
            json = {**json, "config": {**own, **config}}
        if not json.get("uses"):
            json = {**json, "uses": "_router" if config.get("router") else "_scatter"}
        return super().of(json, **places)

    @property
    def rationale(self) -> str:
        """Return why the step exists, in the words of the plan."""
        return self.config.rationale or self.description

    @property
    def nested(self) -> str | None:
        """Return the id of the nested skill that this step runs; None for another step."""
        return self.uses[len(NESTED) :] if self.uses.startswith(NESTED) else None

    @property
    def loop_names(self) -> frozenset[str]:
        """Return the names of the item and the index of its `foreach`; empty without one."""
        foreach = self.config.foreach
        names = (foreach.as_name, foreach.index_name) if foreach else ()
        return frozenset(filter(None, names))


_OF_CONFIG: Final = ("depends_on", "timeout_seconds")


class Skill(Spec):
    """A skill as declared in its file."""

    id: SkillId
    """[Its name](spec-files.md#ids), that of its place."""
    version: Version
    """SemVer, quoted."""
    name: Words
    """A title."""
    description: Words
    """The purpose of the skill, by which it is found and chosen."""
    inputs: Fields = key(nullable=True)
    """The inputs of a run. Null: none."""
    outputs: Fields = key(nullable=True)
    """The outputs of a run. Null: none."""
    steps: Annotated[
        tuple[Step, ...], SpecLimits(minimum=1, maximum=HIGHEST.steps, code="skill.steps")
    ]
    """[Steps](#steps), at most the setting [`limits.steps`](spec-files.md#ceilings); none: `skill.steps`."""
    metadata: Annotated[Json, SpecLimits(foreign=True)] = NOTHING
    """Your metadata. The skill is [found](command-line.md#search) by its `tags` and `use_cases`."""
    status: str | None = None
    """Stated for readers."""
    triggers: Any = None
    """Stated for readers."""
    channel: str | None = None
    domain: str | None = None
    slug: str | None = None
    """Must be those of its place (`layout.id`).
    Default: those of its place"""
    file: str = place(default="")
    """The path shown to users."""
    at: KeyPath = place(default=())
    """The position of the skill in its file; empty unless it is a template of a pack."""
