"""Skills: a graph of steps (docs/reference/skill.md#keys)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import NOTHING
from cogcli.specs.fields import Fields, fields_from

MERGE_STRATEGIES: Final = ("overwrite", "append", "deep_merge", "replace")
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


class Step(NamedTuple):
    """One step. `output` None: written by the capability's cognitive hints; `{}`: nothing is written."""

    id: str
    uses: str
    input: dict[str, Any] = NOTHING
    output: dict[str, str] | None = None
    config: StepConfig = StepConfig()
    description: str = ""

    @property
    def nested(self) -> str | None:
        """The id of the nested skill that this step runs, None for another step."""
        return self.uses[6:] if self.uses.startswith("skill:") else None


class Skill(NamedTuple):
    """A skill as its file declares it. `file` is the path shown to users."""

    id: str
    version: str
    name: str
    description: str
    inputs: Fields
    outputs: Fields
    steps: tuple[Step, ...]
    metadata: dict[str, Any] = NOTHING
    file: str = ""


def skill_from(raw: dict[str, Any], file: str = "") -> Skill:
    """A skill from its checked mapping."""
    return Skill(
        id=raw["id"],
        version=raw["version"],
        name=raw["name"],
        description=raw["description"],
        inputs=fields_from(raw["inputs"]),
        outputs=fields_from(raw["outputs"]),
        steps=tuple(_step_from(step) for step in raw["steps"]),
        metadata=raw.get("metadata") or {},
        file=file,
    )


def _step_from(raw: dict[str, Any]) -> Step:
    config = {**raw, **(raw.get("config") or {})}
    return Step(
        id=raw["id"],
        uses=raw.get("uses") or _implied_uses(config),
        input=raw.get("input") or {},
        output=raw.get("output"),
        config=_config_from(config),
        description=raw.get("description") or "",
    )


def _implied_uses(config: dict[str, Any]) -> str:
    return "_router" if config.get("router") else "_scatter"


def _config_from(raw: dict[str, Any]) -> StepConfig:
    depends_on = raw.get("depends_on")
    return StepConfig(
        depends_on=None if depends_on is None else tuple(depends_on),
        merge_strategy=raw.get("merge_strategy"),
        timeout_seconds=raw.get("timeout_seconds"),
        condition=raw.get("condition"),
        otherwise=raw.get("otherwise"),
        kind=raw.get("kind"),
        retry=_block_from(Retry, raw.get("retry")),
        foreach=_block_from(Foreach, raw.get("foreach"), {"as": "as_name", "index_as": "index_name"}),
        while_=_block_from(While, raw.get("while")),
        router=_block_from(Router, raw.get("router")),
        scatter=_scatter_from(raw.get("scatter")),
    )


def _block_from(cls: Any, raw: dict[str, Any] | None, renamed: dict[str, str] | None = None) -> Any:
    """The block as `cls`, with the defaults of `cls` for null members; None without a block."""
    if raw is None:
        return None
    names = renamed or {}
    return cls(**{names.get(k, k): v for k, v in raw.items() if v is not None and not k.startswith("x-")})


def _scatter_from(raw: dict[str, Any] | None) -> Scatter | None:
    if raw is None:
        return None
    targets = {}
    for entry in raw["capabilities"]:
        uses = entry if isinstance(entry, str) else entry["uses"]
        name = uses.removeprefix("skill:").replace(".", "_") if isinstance(entry, str) else entry["name"]
        targets[name] = uses
    return Scatter(targets, raw.get("merge") or "collect", raw.get("max_parallel"))
