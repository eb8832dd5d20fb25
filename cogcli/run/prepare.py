"""From a request to a run that may start: its closure, read once by the caller, is what is checked, pinned and run
(docs/reference/execution.md#start)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cogcli.base.allowed_hosts import name_hosts
from cogcli.base.jsonvalue import preview
from cogcli.base.problems import Problem, ProblemsFound, meant_hint, sort_problems, suggestion
from cogcli.base.refs import FRAME_FIELDS
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.declarations.options import RunOptions
from cogcli.declarations.skill_spec import Skill
from cogcli.run.policy_request import PolicyRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.contradictions import NO_CONTRADICTIONS, Contradictions
from cogcli.specs.fields import fit_values
from cogcli.specs.selection import SelectionOptions

if TYPE_CHECKING:
    from cogcli.base.calls import Answer, Attempt
    from cogcli.base.file_roots import Roots
    from cogcli.base.system import Clock, IdSource
    from cogcli.declarations.envelope import Event
    from cogcli.episode.signing import Sign
    from cogcli.protocols.live.breaker import Circuits
    from cogcli.protocols.pythoncall.readable_files import Reads
    from cogcli.run.engine.ports import CallPolicy
    from cogcli.run.engine.run import RunProgram
    from cogcli.specs.registry import Registry

_TEXT: Final = FieldSpec(type="string")
_OBJECT: Final = FieldSpec(type="object")
FRAME: Final[Fields] = {
    "goal": _TEXT,
    "context": _OBJECT,
    "constraints": _OBJECT,
    "success_criteria": _OBJECT,
    "assumptions": FieldSpec(type="array", items=_TEXT),
    "priority": _TEXT,
}


class AgentRun(NamedTuple):
    """What the first event of an agent's run says beside that of a skill, and what the run does."""

    task: str
    payload: Mapping[str, Any]
    """The `agent` of `run.started`."""
    pins: Mapping[str, Any]
    program: RunProgram
    policy: CallPolicy
    secrets: LearnedSecrets | None = None
    """Those that the program itself reads, to be masked in the log."""
    open_model: Callable[[Iterable[Event]], object] = lambda events: None
    """Opens the model of a resumed run, if it has one, given the events of its log: called before anything of it goes
    on, and raises what is wrong with the model."""
    hold: Callable[[], AbstractContextManager[object]] = nullcontext
    """What a resumed run holds while it is live, so that no other run of its conversation is. Raises EnvironmentRefusal
    `session.busy`."""


class LearnedSecrets:
    """Secrets on their way to what masks them, which may come later than the first of them."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._add: Callable[[str], None] = self._waiting.append

    def add(self, secret: str) -> None:
        """A secret was read."""
        self._add(secret)

    def connect(self, add: Callable[[str], None]) -> None:
        """Pass all of them to `add`, those that were read already first."""
        self._add = add
        for secret in self._waiting:
            add(secret)


Intercept = Callable[["Attempt", "Callable[[Attempt], Answer]"], "Answer"]
"""Gives the answer to an attempt; the second argument makes the live call."""
AgentOf = Callable[["Event", Catalog], AgentRun]
"""An agent's run, by its first event and the catalog to go on with. How an agent works is known to the room above."""


class RunRequest(NamedTuple):
    """The skill, inputs and options of one run, not yet checked."""

    skill_id: str
    inputs: dict[str, Any]
    options: RunOptions
    origins: Mapping[str, str] = {}
    """By name where an input comes from, a word of `run.input_origins`; what is not in it is a default."""

    @property
    def frame(self) -> dict[str, Any]:
        """The given fields of the frame; a goal of its own counts before that of the frame."""
        goal = {} if self.options.goal is None else {"goal": self.options.goal}
        return {**self.options.frame, **goal}

    @property
    def pack_ref(self) -> str:
        """The pack that governs the run, as `id@version` with its hash; empty without one."""
        return self.options.pack

    @property
    def policy(self) -> PolicyRequest | None:
        """What governs the run; None for the default policy."""
        given = self.options.policy
        return PolicyRequest(**given) if given else None

    def with_options(self, **changes: Any) -> RunRequest:
        """A copy with other options."""
        return self._replace(options=self.options.replace(**changes))


class PreparedRun(NamedTuple):
    """A request that passed all checks: the skill with its closure, and checked inputs and frame."""

    request: RunRequest
    skill: Skill
    catalog: Catalog
    inputs: dict[str, Any]
    frame: dict[str, Any]
    selection: SelectionOptions
    warnings: list[Problem]
    policy: CallPolicy | None = None
    """What decides about its calls; None for the default policy."""
    agent: AgentRun | None = None
    """What an agent was asked; None for the run of a skill."""
    contradictions: Contradictions = NO_CONTRADICTIONS
    """What of its specs does not fit together, in lenient roots."""


def prepare(catalog: Catalog, request: RunRequest, environ: Mapping[str, str]) -> PreparedRun:
    """Check the closure of a skill and the inputs together. Nothing is read, started or written.

    Raises ProblemsFound with every problem: those of specs (exit 3, or 4 where all are `safety.scope`) before those of
    inputs (exit 2).
    """
    skill = catalog.skills.get(request.skill_id)
    inputs, wrong = check_inputs(skill.inputs, request.inputs) if skill else ({}, [])
    frame, wrong_frame = check_frame(request.frame)
    try:
        prepared = prepare_without_inputs(catalog, request, environ, [*wrong, *wrong_frame])
    except ProblemsFound as error:
        raise ProblemsFound(
            [_with_hosts(problem, skill, inputs) for problem in error.problems]
        ) from error
    return prepared._replace(
        inputs=inputs,
        frame=frame,
        policy=call_policy(catalog, request.policy, request.skill_id, inputs),
    )


def _with_hosts(problem: Problem, skill: Skill | None, inputs: Mapping[str, Any]) -> Problem:
    """A problem whose hint names the host that a step would call, as far as the inputs of the run tell."""
    given: Any = inputs
    match problem.path.split("/"):
        case ["", "steps", number, *_] if skill is not None and problem.file == skill.file:
            step = skill.steps[int(number)]
            given = [_value_of(text, inputs) for text in step.input.values()]
    return problem._replace(hint=name_hosts(problem.hint, given))


def _value_of(value: Any, inputs: Mapping[str, Any]) -> Any:
    """What a member of the input of a step is before the run: the input that it names, else what it says."""
    if isinstance(value, str) and value.startswith("inputs."):
        return inputs.get(value.split(".")[1])
    return value


def call_policy(
    catalog: Catalog, request: PolicyRequest | None, skill_id: str, inputs: Mapping[str, Any]
) -> CallPolicy | None:
    """What decides about the calls of the run of a skill; None for the default policy. Raises as `policy_of`."""
    if request is None:
        return None
    from cogcli.run.policy import policy_of  # most runs have the default one

    return policy_of(catalog, request, skill_id, inputs)


def prepare_without_inputs(
    catalog: Catalog, request: RunRequest, environ: Mapping[str, str], wrong: Sequence[Problem] = ()
) -> PreparedRun:
    """As `prepare`, for a skill whose inputs come later: both inputs and frame are empty. `wrong` is found already."""
    selection = SelectionOptions.of(request.options, environ)
    found = check(catalog, options=selection)
    blocking = [problem for problem in found if problem.severity != "W"] + [*wrong]
    if blocking:
        raise ProblemsFound(blocking)
    warnings = [problem for problem in found if problem.severity == "W"]
    skill, contradictions = (
        skill_of(catalog, request.skill_id),
        Contradictions.of(catalog, warnings),
    )
    return PreparedRun(
        request, skill, catalog, {}, {}, selection, warnings, contradictions=contradictions
    )


def skill_of(catalog: Catalog, skill_id: str) -> Skill:
    """The skill of a closure. Raises ProblemsFound where its file has errors."""
    skill = catalog.skills.get(skill_id)
    if skill is None:
        raise ProblemsFound(sort_problems(catalog.problems))
    return skill


def check_inputs(fields: Fields, given: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The inputs with defaults, and all problems: unknown names first, then missing and wrong values."""
    problems = [
        _problem(
            "input.unknown",
            f"inputs/{name}",
            f"no input `{name}`",
            suggestion(name, fields)
            or f"this skill takes {', '.join(f'`{f}`' for f in fields) or 'no inputs'}",
        )
        for name in given
        if name not in fields
    ]
    kept, violations = fit_values(fields, given)
    for kind, place, message in violations:
        hint = _meaning(fields[place]) if kind == "missing" else ""
        if kind == "schema" and (url := _with_scheme(fields, given, place)):
            found = url.partition("://")[2]
            message = f"`{place}`: a URL begins with https:// or http://, found `{found}`"
            hint = meant_hint([url])
        problems.append(_problem(f"input.{kind}", f"inputs/{place}", f"input {message}", hint))
    return kept, problems


_ADDRESS: Final = r"(?:[\w-]+\.)+[A-Za-z]{2,}(?::\d+)?(?:[/?#]\S*)?|localhost(?::\d+)?(?:/\S*)?"
"""The pattern of the address of a page without its scheme."""


def _with_scheme(fields: Fields, given: dict[str, Any], place: str) -> str:
    """The address at a place of the inputs with a scheme in front of it, if the schema accepts that, else empty."""
    name, *rest = place.split("/")
    field: FieldSpec | None = fields[name]
    value = given.get(name)
    for part in rest:
        field = field.items if field else None
        value = value[int(part)] if isinstance(value, list) and part.isdigit() else None
    if field is None or not isinstance(value, str) or not re.fullmatch(_ADDRESS, value):
        return ""
    url = f"{'http' if value.startswith('localhost') else 'https'}://{value}"
    return "" if fit_values({name: field}, {name: url})[1] else url


def _meaning(field: FieldSpec) -> str:
    """`integer: Length in words.`, with the values that it may have."""
    options = f", one of {', '.join(map(preview, field.enum[:10]))}" if field.enum else ""
    about = f": {' '.join(field.description.split())}" if field.description else ""
    return f"{field.type}{options}{about}"


def check_frame(given: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The given fields of the frame, and all problems."""
    problems = [
        _problem(
            "frame.field",
            f"frame/{name}",
            f"the frame has no `{name}`",
            suggestion(name, FRAME_FIELDS),
        )
        for name in given
        if name not in FRAME
    ]
    kept, violations = fit_values(FRAME, given)
    problems += [
        _problem("frame.field", f"frame/{v.place}", f"frame {v.message}") for v in violations
    ]
    return kept, problems


def _problem(code: str, path: str, message: str, hint: str = "") -> Problem:
    return Problem(code, "E", "", 0, 0, f"/{path}", message, hint)


class RunEnvironment(NamedTuple):
    """Decided before a run, by settings and trust; nothing in a run changes it. Paths are absolute."""

    runs_dir: str
    state_dir: str
    environ: Mapping[str, str]
    clock: Clock
    ids: IdSource
    open_registry: Callable[[], Registry]
    """Called where specs are needed: a broken configuration file is an error there only."""
    signer: Callable[[], Sign | None] = lambda: None
    """Called where a manifest may be signed, for the same reason; None without a key."""
    owner: Callable[[], bytes | None] = lambda: None
    """Called where a log is written: the key that makes its episode known (docs/reference/episode.md#checkpoint)."""
    use_env_proxy: bool = False
    store_dir: str = ""
    """Where functions keep what outlives a run; empty where nothing does."""
    bytecode_dir: str = ""
    """Where Python programs that are started keep bytecode; empty for next to their sources. What was accepted are the
    sources (docs/reference/service.md#accepted)."""
    reads: Reads | None = None
    """The files that shipped functions may read; None for any (docs/reference/service.md#trust)."""
    write_roots: Roots = ()
    """Where functions write files; () for the working directory (docs/reference/service.md#roots)."""
    circuits: Circuits | None = None
    """Circuit breakers; None for those that all runs of this process share."""
    agent_of: AgentOf | None = None
    """An agent's run as its log has it; None where no agent can run."""
    intercept: Intercept | None = None
    """What each attempt goes through instead of the live call (tests of skills); None for nothing."""
    export: Callable[[Path], str] | None = None
    """Sends the trace of a sealed episode to a collector, and gives what went wrong; None for no collector."""


def one_step_skill(
    head: Mapping[str, str], uses: str, values: Mapping[str, Any], outputs: Mapping[str, Any], names: Iterable[str],
    step: Mapping[str, Any] = {},
) -> dict[str, Any]:  # fmt: skip
    """The specification of a skill whose only step calls `uses` with these values and gives its outputs of these names.

    `head` has id, name and description; `step` more members of the step, or others instead of these."""
    call = {
        "id": "call",
        "uses": uses,
        "input": {name: {"$literal": value} for name, value in values.items()},
        "output": {name: f"outputs.{name}" for name in names},
        **step,
    }
    return {**head, "version": "1.0.0", "inputs": {}, "outputs": dict(outputs), "steps": [call]}


def prepare_one_step(
    catalog: Catalog,
    skill: dict[str, Any],
    request: RunRequest,
    selection: SelectionOptions,
    file: str = "",
) -> PreparedRun:
    """A run of such a skill, alone in the catalog. `file` is named where something is wrong with it."""
    specs = {key: spec for key, spec in catalog.raw.items() if not key.startswith("skill:")}
    id: str = skill["id"]
    alone = catalog._replace(
        skills={id: Skill.of(skill, file=file)}, raw={**specs, f"skill:{id}": skill}
    )
    return PreparedRun(
        request._replace(skill_id=id), alone.skills[id], alone, {}, request.frame, selection, []
    )
