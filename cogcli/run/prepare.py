"""The preparation of a run: its closure, which the caller reads once, is checked and pinned
(docs/reference/execution.md#start).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from cogcli.base.allowed_hosts import name_hosts
from cogcli.base.jsonvalue import preview
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import Problem, ProblemsFound, sort_problems, suggestion, suggestion_hint
from cogcli.base.refs import FRAME_FIELDS
from cogcli.declarations.field_spec import Fields, FieldSpec
from cogcli.declarations.options import RunOptions
from cogcli.declarations.skill_spec import Skill
from cogcli.declarations.value_types import Json
from cogcli.policy.approvals import UNCHECKED, AnswerSignatures
from cogcli.run.file_inputs import FindScope, pin_inputs
from cogcli.run.policy_request import PolicyRequest
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.contradictions import NO_CONTRADICTIONS, Contradictions
from cogcli.specs.fields import fit_values
from cogcli.specs.selection import SelectionOptions

if TYPE_CHECKING:
    from cogcli.base.calls import Answer, Attempt, PersonAtTerminal, ProgressNotice, TakeQuestion
    from cogcli.base.errors import CogcliError
    from cogcli.base.file_roots import Roots
    from cogcli.base.pinned_file import PinnedFile
    from cogcli.base.system import Clock, IdSource
    from cogcli.declarations.envelope import Event
    from cogcli.episode.signing import Sign
    from cogcli.protocols.live.breaker import Circuits
    from cogcli.protocols.pythoncall.readable_files import ReadableFiles
    from cogcli.run.engine.ports import CallPolicy, LimitLedger
    from cogcli.run.engine.run import RunProgram
    from cogcli.run.model_budget import OpenSampler
    from cogcli.run.results import RunResult
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
    """The members that only an agent's run has in its first event, and the program of the run. The agent is built-in,
    or the client of a gateway.
    """

    task: str
    payload: Mapping[str, object]
    """The `agent` of `run.started`. Empty for a session of a gateway."""
    pins: Mapping[str, object]
    program: RunProgram
    policy: CallPolicy | None
    """None for a session of a gateway without a pack."""
    secrets: LearnedSecrets | None = None
    """Secrets that the program itself reads, to be masked in the log."""
    open_model: Callable[[Iterable[Event]], object] = lambda events: None
    """Opens the model of a resumed run, given the events of its log. Called before any work continues; raises the error
    of an unusable model."""
    gateway: Mapping[str, object] = {}
    """The `gateway` of `run.started`."""
    hold: Callable[[], AbstractContextManager[object]] = nullcontext
    """Returns the lock of the conversation, which a resumed run holds while it is active. Raises
    UnusableEnvironment `session.busy`.
    """


class LearnedSecrets:
    """Passes secrets to the redactor, including those that were read before the redactor was connected."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._add: Callable[[str], None] = self._waiting.append

    def add(self, secret: str) -> None:
        """Pass a secret to the redactor, or store it until a redactor is connected."""
        self._add(secret)

    def connect(self, add: Callable[[str], None]) -> None:
        """Pass all stored secrets to `add` in order, and each later one when it is read."""
        self._add = add
        for secret in self._waiting:
            add(secret)


Intercept = Callable[["Attempt", "Callable[[Attempt], Answer]"], "Answer"]
"""A function that answers an attempt. The second argument makes the live call."""
AgentOf = Callable[["Event", Catalog], AgentRun]
"""A function that returns an agent's run, given its first event and the catalog to continue with. A layer above
supplies it."""


class RunRequest(NamedTuple):
    """The skill, inputs and options of one run, not yet checked."""

    skill_id: str
    inputs: Json
    options: RunOptions
    origins: Mapping[str, str] = {}
    """By name the origin of an input, a word of `run.input_origins`. An input without an entry is a default."""
    find_files: FindScope | None = None
    """Returns where the files of its inputs may lie. None: its inputs name no files."""
    earlier_files: tuple[PinnedFile, ...] = ()
    """The files of the run that is run again, which its inputs may name again."""

    @property
    def frame(self) -> Json:
        """The requested fields of the frame. The option `goal` overrides the frame's goal."""
        goal = {} if self.options.goal is None else {"goal": self.options.goal}
        return {**self.options.frame, **goal}

    @property
    def pack_ref(self) -> str:
        """The pack that governs the run, as `id@version` with its hash. Empty without a pack."""
        return self.options.pack

    @property
    def pack_refs(self) -> tuple[str, ...]:
        """The pack that governs the run, then its additional packs. Empty without a pack."""
        return (self.options.pack, *self.options.with_packs) if self.options.pack else ()

    @property
    def policy(self) -> PolicyRequest | None:
        """The policy flags, or None for the default policy."""
        given = self.options.policy
        return PolicyRequest(**given) if given else None

    def with_options(self, **changes: object) -> RunRequest:
        """Return a copy with these options changed."""
        return self._replace(options=self.options.replace(**changes))


class PreparedRun(NamedTuple):
    """A request that passed all checks: the skill with its closure, and checked inputs and frame."""

    request: RunRequest
    skill: Skill
    catalog: Catalog
    inputs: Json
    frame: Json
    selection: SelectionOptions
    warnings: list[Problem]
    policy: CallPolicy | None = None
    """The policy for its calls. None for the default policy."""
    agent: AgentRun | None = None
    """The agent's part of the run. None for the run of a skill."""
    contradictions: Contradictions = NO_CONTRADICTIONS
    """Mismatches between its specs in lenient roots."""
    files: tuple[PinnedFile, ...] = ()
    """The files that the run may send, as its inputs pinned them."""


def prepare(catalog: Catalog, request: RunRequest, environ: Mapping[str, str]) -> PreparedRun:
    """Check the closure of a skill together with the inputs, and return the prepared run.

    Only files of inputs are read, nothing is written, and no process is started. Raise ProblemsFound with every
    problem: those of specs (exit 3, or 4 if all are `safety.scope`) before those of inputs (exit 2).
    """
    skill = catalog.skills.get(request.skill_id)
    inputs, files, wrong = (
        pin_and_check_inputs(skill.inputs, request) if skill else CheckedInputs({})
    )
    frame, wrong_frame = check_frame(request.frame)
    try:
        prepared = prepare_without_inputs(catalog, request, environ, [*wrong, *wrong_frame])
    except ProblemsFound as error:
        raise ProblemsFound(
            [_add_host_hint(problem, skill, inputs) for problem in error.problems]
        ) from error
    return prepared._replace(
        inputs=inputs,
        files=files,
        frame=frame,
        policy=call_policy(catalog, request.policy, request.skill_id, inputs),
    )


def _warn_of_shadow(request: RunRequest) -> list[Problem]:
    """Return the warning that no rule is enforced, if that is so."""
    if not request.options.shadow:
        return []
    text = f"no rule of `{request.pack_ref.partition('#')[0]}` is enforced: `--shadow` only records what each decides"
    return [Problem("policy.shadow", "W", "", 0, 0, "", text)]


def prepare_for_inputs(
    catalog: Catalog, request: RunRequest, environ: Mapping[str, str]
) -> PreparedRun:
    """Return a prepared run whose inputs `prepare_again` sets, once or many times. Raise ProblemsFound."""
    frame, wrong = check_frame(request.frame)
    return prepare_without_inputs(catalog, request, environ, wrong)._replace(frame=frame)


def prepare_again(prepared: PreparedRun, request: RunRequest) -> PreparedRun:
    """Return a prepared run of the same skill and closure with the inputs of another request.

    Its options may differ in tags only: the closure is not checked again. Raise ProblemsFound with every problem of
    the inputs.
    """
    inputs, files, wrong = pin_and_check_inputs(prepared.skill.inputs, request)
    if wrong:
        raise ProblemsFound(wrong)
    policy = call_policy(prepared.catalog, request.policy, request.skill_id, inputs)
    return prepared._replace(request=request, inputs=inputs, files=files, policy=policy)


def _add_host_hint(problem: Problem, skill: Skill | None, inputs: Mapping[str, object]) -> Problem:
    """Return the problem with a hint that names the host the step would call, if the inputs determine it."""
    given: object = inputs
    match problem.path.split("/"):
        case ["", "steps", number, *_] if skill is not None and problem.file == skill.file:
            step = skill.steps[int(number)]
            given = [_resolve_value(text, inputs) for text in step.input.values()]
    return problem._replace(hint=name_hosts(problem.hint, given))


def _resolve_value(value: object, inputs: Mapping[str, object]) -> object:
    """Return a step's input value before the run: the run input that it references. Return any other value
    unchanged.
    """
    if isinstance(value, str) and value.startswith("inputs."):
        return inputs.get(value.split(".")[1])
    return value


def call_policy(
    catalog: Catalog, request: PolicyRequest | None, skill_id: str, inputs: Mapping[str, object]
) -> CallPolicy | None:
    """Return the policy for the calls of a skill's run, or None for the default policy. Raise the same errors as
    `build_policy`.
    """
    if request is None:
        return None
    from cogcli.run.policy import build_policy  # most runs have the default one

    return build_policy(catalog, request, skill_id, inputs)


def prepare_without_inputs(
    catalog: Catalog, request: RunRequest, environ: Mapping[str, str], wrong: Sequence[Problem] = ()
) -> PreparedRun:
    """Return a prepared run with empty inputs and frame, for a skill that gets its inputs later.

    Raise the same errors as `prepare`. `wrong` are problems that were found before.
    """
    selection = SelectionOptions.of(request.options, environ)
    found = check(catalog, options=selection)
    blocking = [problem for problem in found if problem.severity != "W"] + [*wrong]
    if blocking:
        raise ProblemsFound(blocking)
    warnings = [problem for problem in found if problem.severity == "W"]
    warnings += _warn_of_shadow(request)
    skill, contradictions = (
        skill_of(catalog, request.skill_id),
        Contradictions.of(catalog, warnings),
    )
    return PreparedRun(
        request, skill, catalog, {}, {}, selection, warnings, contradictions=contradictions
    )


def skill_of(catalog: Catalog, skill_id: str) -> Skill:
    """Return the skill with this id from a closure. Raise ProblemsFound if its file has errors."""
    skill = catalog.skills.get(skill_id)
    if skill is None:
        raise ProblemsFound(sort_problems(catalog.problems))
    return skill


class CheckedInputs(NamedTuple):
    """Inputs with defaults applied and files pinned, those files, and all problems."""

    inputs: Json
    files: tuple[PinnedFile, ...] = ()
    problems: Sequence[Problem] = ()


def pin_and_check_inputs(fields: Fields, request: RunRequest) -> CheckedInputs:
    """Return the checked inputs of a request, whose files are read and pinned."""
    earlier = {each.path: each for each in request.earlier_files}
    pinned = pin_inputs(fields, request.inputs, request.origins, request.find_files, earlier)
    rest = {name: field for name, field in fields.items() if name not in pinned.problems}
    inputs, problems = check_inputs(rest, pinned.values)
    return CheckedInputs(inputs, pinned.files, [*problems, *pinned.problems.values()])


def check_inputs(fields: Fields, given: Json) -> tuple[Json, list[Problem]]:
    """Return the inputs with defaults applied, and all problems: unknown names first, then missing and wrong values."""
    problems = [
        _build_problem(
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
        hint = _describe_field(fields[place]) if kind == "missing" else ""
        if kind == "schema" and (url := _suggest_scheme(fields, given, place)):
            found = url.partition("://")[2]
            message = f"`{place}`: a URL begins with https:// or http://, found `{found}`"
            hint = suggestion_hint([url])
        problems.append(
            _build_problem(f"input.{kind}", f"inputs/{place}", f"input {message}", hint)
        )
    return kept, problems


_ADDRESS: Final = r"(?:[\w-]+\.)+[A-Za-z]{2,}(?::\d+)?(?:[/?#]\S*)?|localhost(?::\d+)?(?:/\S*)?"
"""The pattern of a page's address without its scheme."""


def _suggest_scheme(fields: Fields, given: Json, place: str) -> str:
    """Return the address at a place of the inputs with a scheme prefixed, if the schema accepts that. Empty
    otherwise.
    """
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


def _describe_field(field: FieldSpec) -> str:
    """Return a description such as `integer: Length in words.`, with the allowed values."""
    options = f", one of {', '.join(map(preview, field.enum[:10]))}" if field.enum else ""
    about = f": {' '.join(field.description.split())}" if field.description else ""
    return f"{field.type}{options}{about}"


def check_frame(given: Json) -> tuple[Json, list[Problem]]:
    """Return the requested fields of the frame, and all problems."""
    problems = [
        _build_problem(
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
        _build_problem("frame.field", f"frame/{v.place}", f"frame {v.message}") for v in violations
    ]
    return kept, problems


def _build_problem(code: str, path: str, message: str, hint: str = "") -> Problem:
    return Problem(code, "E", "", 0, 0, f"/{path}", message, hint)


class RunEnvironment(NamedTuple):
    """The settings and permissions of a run, fixed before it starts. Paths are absolute."""

    runs_dir: str
    state_dir: str
    environ: Mapping[str, str]
    clock: Clock
    ids: IdSource
    open_registry: Callable[[], Registry]
    """Called only if specs are needed, so that a broken configuration file fails only then."""
    signer: Callable[[], Sign | None] = lambda: None
    """Called only if a manifest may be signed, for the same reason. Returns None without a key."""
    owner: Callable[[], bytes | None] = lambda: None
    """Called when a log is written. Returns the key that marks its episode as one of this user
    (docs/reference/episode.md#checkpoint)."""
    use_env_proxy: bool = False
    shared: bool = False
    """Whether the group of the runs directory may read and continue the episodes."""
    store_dir: str = ""
    """The folder in which functions keep data beyond a run. Empty if there is none."""
    limits: Callable[[], LimitLedger] | None = None
    """Returns the counters of cumulative limits. Called only if a pack has limits. None if this program has none."""
    bytecode_dir: str = ""
    """The folder for bytecode of started Python programs. Empty means next to their sources, since only the sources
    were accepted (docs/reference/service.md#accepted)."""
    reads: ReadableFiles | None = None
    """The files that shipped functions may read; None for any (docs/reference/service.md#trust)."""
    files: frozenset[PinnedFile] = frozenset()
    """The files that the run may send: those that its own inputs pinned (docs/reference/protocols.md#files)."""
    write_roots: Roots = ()
    """The folders in which functions write files. `()` means the working directory
    (docs/reference/service.md#roots)."""
    circuits: Circuits | None = None
    """Circuit breakers. None for those that all runs of this process share."""
    agent_of: AgentOf | None = None
    """Returns an agent's run from its log. None if this program can run no agent."""
    signatures: AnswerSignatures = UNCHECKED
    """Verifies the signatures of people's answers."""
    intercept: Intercept | None = None
    """Answers attempts instead of the live call (tests of skills). None for live calls."""
    on_question: TakeQuestion | None = None
    """Passes a question that a service asks inside a call to a person. None if no one is asked."""
    person: PersonAtTerminal | None = None
    """Who answers the questions of services at the terminal, while a call is open. None for no one."""
    open_sampler: OpenSampler | None = None
    """Opens the configured model for services that may ask it inside a call. None if no service may."""
    require_logins: Callable[[Catalog, Collection[Sequence[str]]], None] | None = None
    """Raises ServiceResolutionError `service.login` if all services of one of these chains need a login that this user
    lacks. A resumed run calls it before it starts anything. None for no such check."""
    pauses_for_input: bool = False
    """Whether the run waits for a person if a service leaves a call unfinished and asks for input."""
    on_progress: Callable[[ProgressNotice], None] | None = None
    """Receives the progress of calls, from any thread. None if no one waits for it."""
    export: Callable[[str], str] | None = None
    """Sends the trace of a sealed episode to a collector, and returns the error text. None for no collector."""
    hooks: Callable[[RunResult], tuple[CogcliError, ...]] | None = None
    """Calls the hooks for the end or the pause of a run, and returns a warning for each that failed. None for no
    hooks."""


def one_step_skill(
    head: Mapping[str, str], uses: str, values: Mapping[str, object], outputs: Mapping[str, object],
    names: Iterable[str], step: Mapping[str, object] = {},
) -> Json:  # fmt: skip
    """Return the spec of a skill with a single step that calls `uses` with these values and returns the outputs
    in `names`.

    `head` has id, name and description. `step` adds or replaces members of the step.
    """
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
    skill: Json,
    request: RunRequest,
    selection: SelectionOptions,
    file: str = "",
) -> PreparedRun:
    """Return a prepared run of a `one_step_skill`, whose catalog has no other skill. Errors about the skill name
    `file`.
    """
    specs = {key: spec for key, spec in catalog.raw.items() if not key.startswith("skill:")}
    id: str = skill["id"]
    alone = catalog._replace(
        skills={id: Skill.of(skill, file=file)}, raw={**specs, f"skill:{id}": skill}
    )
    return PreparedRun(
        request._replace(skill_id=id), alone.skills[id], alone, {}, request.frame, selection, []
    )
