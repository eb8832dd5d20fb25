"""Resume and rerun: checks whether the permissions that a log records may be used again.

Permissions are the trust level, confirmations, approvals, passed gates, selected bindings and so
on.

A copied episode may be forged. Its log can contain any trust level, approval and gate answer, and
its hashes match, because the writer of a log computes them. So a recorded permission is used only
if a checkpoint vouches for its event (docs/reference/episode.md#checkpoint). This applies in every
project and in every directory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Final

from cogcli.app.ask_again import (
    agent_rerun_error,
    invoke_command,
    is_agent_run,
    is_built_in,
    read_start,
)
from cogcli.app.file_scope import with_file_scope
from cogcli.app.plan_skill import reads_of
from cogcli.app.registry import open_registry, selection_options, untrusted_warning
from cogcli.app.run_skill import agent_of, answering_environment, signatures_of
from cogcli.app.settings import WHOLE_TABLE, Settings
from cogcli.app.settings.config import variable
from cogcli.app.settings.model_adapters import TEMPLATE
from cogcli.app.settings.owner_key import find_key
from cogcli.app.settings.runs_dir import signer_of
from cogcli.base.calls import BindingChain, PersonAtTerminal
from cogcli.base.errors import (
    BindingResolutionError,
    CogcliError,
    SkillNotFoundError,
    UnusableEnvironment,
    UsageError,
)
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible
from cogcli.declarations.capability_spec import CONFORMANCE_RANKS, TRUST_RANKS
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import AnswerSignature
from cogcli.declarations.options import RunOptions, options_from_log
from cogcli.declarations.run_start import (
    EarlierApproval,
    PinnedModel,
    RecordedRequest,
    RecordedStart,
    RequestUser,
    RunPins,
    start_of,
)
from cogcli.declarations.value_types import Json
from cogcli.episode import refusals
from cogcli.episode.checkpoint import TrustedEvents, read_trusted_events
from cogcli.episode.journal import Journal, has_standing_permissions
from cogcli.episode.log_reader import Warn, iterate_events
from cogcli.run import resume as runs
from cogcli.run.answers import Approver, RequestAnswer, require_approvers
from cogcli.run.earlier_approvals import find_unused_approvals, is_in_runs_dir
from cogcli.run.engine.plan import StepPlan, plan_skill
from cogcli.run.file_inputs import files_in_payload
from cogcli.run.given_inputs import RequestedRun, prepare_given
from cogcli.run.input_origins import TYPED
from cogcli.run.log_index import LogIndex
from cogcli.run.prepare import PreparedRun, RunRequest
from cogcli.run.replay import reach_recorded, read_pinned_catalog
from cogcli.run.rerun import (
    ReusedSteps,
    find_failed_loops,
    find_first_step,
    find_open_loops,
    keep_equal_items,
    plan_reuse,
    read_source_request,
)
from cogcli.run.results import Control, RunResult
from cogcli.specs.catalog import Catalog
from cogcli.specs.contradictions import Contradictions
from cogcli.specs.registry import Registry
from cogcli.specs.selection import SelectionOptions, select

_SHOWN: Final = 200


def resume(
    settings: Settings,
    directory: Path,
    request: runs.ResumeRequest,
    *,
    listener: Callable[[Event], None],
    control: Control,
    on_response: Callable[[str], None] | None = None,
    person: PersonAtTerminal | None = None,
    hooks: bool = True,
) -> RunResult:
    """Resume a run if its recorded permissions are verified as the user's own.

    `on_response` receives the text of an agent's response repeatedly while it grows. `person`
    answers services while a call is open, unless the run is an agent's. `hooks` is whether hooks are
    called. Raise the errors of `run.resume`, and UnusableEnvironment `resume.untrusted`.
    """
    is_own = False

    def open_specs() -> Registry:
        return _registry_of(settings, is_own=is_own)

    def consent(log: LogIndex, journal: Journal) -> None:
        nonlocal is_own
        _require_own_consent(settings, directory, request, log, journal, open_specs)
        is_own = log.started is not None and journal.is_allowed(log.started.seq)

    own_agent = partial(agent_of, settings, on_response=on_response)
    environment = answering_environment(settings, person)._replace(
        agent_of=own_agent, open_registry=open_specs
    )
    if not hooks:
        environment = environment._replace(hooks=None)
    try:
        return runs.resume(
            environment, directory, request, consent, listener=listener, control=control
        )
    except SkillNotFoundError as error:
        raise _missing_skill_error(error, directory, "resume") from error
    except UsageError as error:
        if error.code == "episode.sealed":
            _add_repeat_command(error, directory)
        raise


def find_warning(settings: Settings, directory: Path) -> CogcliError | None:
    """Return the warning of a resumption that ignores parts of a project that is not trusted.

    Return None if it ignores nothing, or if the log has no first event. Raise UnusableEnvironment
    `episode.unreadable`."""
    first = next(iterate_events(directory), None)
    if first is None:
        return None
    start = read_start(first)
    if not is_agent_run(start):
        return untrusted_warning(settings, "skill", start.skill.id)
    pack = start.policy.pack if start.policy else ""
    return untrusted_warning(settings, "pack", "" if is_built_in(start.policy) else pack)


def _registry_of(settings: Settings, *, is_own: bool) -> Registry:
    """Return the registry for resuming or rerunning an episode.

    In a project that is not trusted, an episode without a checkpoint may contain inputs of the
    project. So its run may only call services that are open to the project, even if its skill is a
    shipped one."""
    registry = open_registry(settings)
    return registry if is_own else registry.without_trust("this episode is not known to be yours")


def _is_own(settings: Settings, directory: Path, log: LogIndex) -> bool:
    """Return whether a checkpoint vouches for the first event of a log."""
    if log.started is None:
        return False
    vouched = _read_vouched_events(settings, directory)
    return vouched.allows(log.started.seq) and not vouched.differs


def _read_vouched_events(settings: Settings, directory: Path) -> TrustedEvents:
    """Return the events that the checkpoints of an episode vouch for."""
    with refusals.open_episode(directory) as folder:
        return read_trusted_events(folder, find_key(settings.environ), signer_of(settings))


def _add_repeat_command(error: UsageError, directory: Path) -> None:
    """Add the command that repeats the request to the error for a finished run of an agent."""
    first = next(iterate_events(directory), None)
    if first is not None and is_agent_run(start := read_start(first)):
        error.hint, error.next = "ask the agent again", (invoke_command(start),)


class RerunRequest(NamedTuple):
    """The changes that a rerun makes to the earlier run."""

    from_step: str | None
    failed_items: bool
    """Whether only the unfinished items of loops run again."""
    overrides: Json
    """Options of the run, by name."""
    inputs: Mapping[str, object]
    """Changed inputs by name; a InputText has no type yet."""
    problems: Sequence[CogcliError] = ()
    """The problems of reading the request."""
    origins: Mapping[str, str] = {}
    """The origin of each changed input, by name."""


def prepare_rerun(
    settings: Settings, directory: Path, rerun_request: RerunRequest, warn: Warn
) -> tuple[PreparedRun, ReusedSteps]:
    """Return the prepared run of a rerun, and the results that it reuses.

    If the episode is not verified as the user's own, the current bindings, conformance, user and typed inputs are used
    instead of the recorded ones. Raise the errors of `prepare_given`, UnusableEnvironment `resume.untrusted` for a
    trust level above the current one, and UsageError for the run of an agent.
    """
    request, log = read_source_request(directory, rerun_request.overrides, warn)
    start = start_of(log.started) if log.started else None
    if start is not None and is_agent_run(start):
        raise agent_rerun_error(directory.name, start)
    is_own = _is_own(settings, directory, log)
    typed = start.typed if start is not None and is_own else []
    if start is not None and is_own:
        request = request._replace(earlier_files=tuple(files_in_payload(start.files)))
    elif start is not None:
        request = _request_as_this_user(settings, directory, log, request, rerun_request, warn)
    try:
        registry = _registry_of(settings, is_own=is_own)
        catalog = registry.reach(request.skill_id, packs=request.pack_refs)
    except SkillNotFoundError as error:
        raise _missing_skill_error(error, directory, "rerun") from error
    origins = {name: TYPED for name in typed if name not in rerun_request.inputs}
    again = request._replace(
        inputs={**request.inputs, **rerun_request.inputs},
        origins={**origins, **rerun_request.origins},
    )
    given = with_file_scope(
        settings, RequestedRun(again, rerun_request.problems, rerun_request.inputs)
    )
    prepared = prepare_given(catalog, given, settings.environ)
    plan = plan_skill(prepared.skill, catalog.by_name, catalog.skills)
    changed = _find_steps_to_repeat(plan, request, prepared, rerun_request.inputs)
    reuse = _select_reuse(rerun_request, log, plan, changed, prepared.inputs)
    _warn_of_unvouched_results(settings, directory, log, reuse, warn)
    if is_own and (rerun_request.from_step or rerun_request.failed_items):
        approvals = _find_own_approvals(settings, directory, log, prepared)
        reuse = reuse._replace(approvals=approvals)
    return prepared, reuse


def _request_as_this_user(
    settings: Settings,
    directory: Path,
    log: LogIndex,
    request: RunRequest,
    rerun_request: RerunRequest,
    warn: Warn,
) -> RunRequest:
    """Return the request of an episode that is not verified as the user's own, with this user's choices."""
    if "trust_level" not in rerun_request.overrides:
        _require_own_level(settings, directory, log)
    return _replace_choices(settings, request, rerun_request.overrides, warn)


def _select_reuse(
    rerun_request: RerunRequest,
    log: LogIndex,
    plan: StepPlan,
    reasons_by_step: Mapping[str, str],
    inputs: Mapping[str, object],
) -> ReusedSteps:
    """Return the results that a rerun reuses. `reasons_by_step` are steps that must run, each with the reason."""
    if rerun_request.failed_items:
        failed = find_failed_loops(log, plan)
        reuse = plan_reuse(log, plan, {**reasons_by_step, **failed}, loops=failed)
        return keep_equal_items(reuse, log, plan, inputs) if reasons_by_step else reuse
    loops = find_open_loops(log, plan) - reasons_by_step.keys() if rerun_request.from_step else ()
    first = find_first_step(plan, rerun_request.from_step)
    return plan_reuse(log, plan, {**reasons_by_step, **first}, loops=loops)


def _find_own_approvals(
    settings: Settings, directory: Path, log: LogIndex, prepared: PreparedRun
) -> list[EarlierApproval]:
    """Return the unused approvals of an ended run in the runs directory, all events of which are vouched for."""
    vouched_events = _read_vouched_events(settings, directory)
    count = (log.last.seq or 0) + 1 if log.last else 0
    if vouched_events.missing(count) or not is_in_runs_dir(directory, settings.runs_dir):
        return []
    return find_unused_approvals(log, prepared)


def _warn_of_unvouched_results(
    settings: Settings, directory: Path, log: LogIndex, reuse: ReusedSteps, warn: Warn
) -> None:
    """Warn about reused results that no checkpoint vouches for. The new episode and everything derived from these
    results become the user's own.
    """
    if log.started is None or not reuse.steps:
        return
    vouched = _read_vouched_events(settings, directory)
    closings = [(step, log.closings.get((log.started.run_id, step))) for step in reuse.why]
    steps = [
        step
        for step, closing in closings
        if closing is not None
        and reuse.why[step] == "reused"
        and (vouched.differs or not vouched.allows(closing.seq))
    ]
    if steps:
        text = f"nothing vouches for the results of {', '.join(steps)}, which are reused as the episode records them"
        warn(UnusableEnvironment("resume.untrusted", text))


def _find_steps_to_repeat(
    plan: StepPlan, earlier: RunRequest, prepared: PreparedRun, given_names: Iterable[str]
) -> dict[str, str]:
    """Return the steps that read a changed input, each with the reason to run it again."""
    changed = {
        f"inputs.{name}"
        for name in given_names
        if earlier.inputs.get(name) != prepared.inputs.get(name)
    }
    found = {}
    for planned in plan.steps:
        read = next(
            (each for each in reads_of(planned) if ".".join(each.split(".")[:2]) in changed), None
        )
        if read is not None:
            found[planned.step.id] = f"{read} is another"
    return found


def _missing_skill_error(
    error: SkillNotFoundError, directory: Path, verb: str
) -> SkillNotFoundError:
    """Return the error for an episode whose skill does not exist in this project. `verb` is the
    command, which needs the project of the earlier run."""
    found = SkillNotFoundError(
        error.code,
        f"{error.message} here: `{verb}` needs the project that `{directory.name}` ran in",
        hint="start there with -C DIR, or add its specs with --registry DIR; replay and trace need no project",
    )
    found.next = (f"cogcli replay {quote(str(directory))}", f"cogcli trace {quote(str(directory))}")
    return found


def _replace_choices(
    settings: Settings, request: RunRequest, overrides: Mapping[str, object], warn: Warn
) -> RunRequest:
    """Return the request of an episode of unknown origin with the current choices of the user.

    It has no bindings and no named user. Preferences and conformance are those of the settings.
    Flags of the command are unchanged."""
    options = request.options
    own = options.replace(
        bind={},
        prefer=list(settings.value("prefer")),
        no_fallback=settings.value("no_fallback"),
        conformance=_stricter_profile(options.conformance, settings.value("conformance")),
        user="",
    )
    changed = {
        name: getattr(own, name)
        for name in ("bind", "prefer", "no_fallback", "conformance", "user")
        if name not in overrides and getattr(own, name) != getattr(options, name)
    }
    if changed:
        words = ["binds" if name == "bind" else name for name in changed]
        text = f"this episode is not known to be yours, so what it records of {', '.join(words)} does not count"
        warn(UnusableEnvironment("resume.untrusted", text))
    return request.with_options(**changed)


def _stricter_profile(profile: str | None, other_profile: str | None) -> str | None:
    """Return the stricter of two required conformance profiles. None is no requirement."""
    return max(profile, other_profile, key=lambda name: CONFORMANCE_RANKS.get(name or "", -1))


def _require_own_consent(
    settings: Settings,
    directory: Path,
    request: runs.ResumeRequest,
    log: LogIndex,
    journal: Journal,
    open_specs: Callable[[], Registry],
) -> None:
    """Check all recorded permissions of a log before the run is resumed.

    A permission is accepted if a checkpoint vouches for its event, or if the user repeats it by
    naming the hash of the last event. Raise UnusableEnvironment `resume.untrusted` for any other
    permission, for a log that was truncated or altered after a checkpoint, and for a wrong hash."""
    if log.started is None:
        return
    head = journal.head
    if request.head in (head, journal.found_head):
        journal.renew_permissions()
        return
    if request.head:
        raise _untrusted_error(
            f"the log ends with {head}, not with {request.head}", directory, head
        )
    own = selection_options(settings)._replace(allow_hosts=request.allow_hosts)

    def find_choices(started: Event) -> list[str]:
        return _describe_changed_choices(own, directory, started, open_specs())

    recorded = _describe_unvouched_permissions(settings, log.started, log, journal, find_choices)
    if journal.vouched.differs:
        raise _untrusted_error(
            f"this log was cut or altered: {journal.vouched.differs}", directory, head, recorded
        )
    if recorded:
        raise _untrusted_error("this episode is not known to be yours", directory, head, recorded)
    standing = _describe_standing_permissions(settings, log.started)
    if standing and not (journal.allows_all or log.is_only_answered):
        raise _untrusted_error(
            "the end of this log is not known to be yours", directory, head, standing
        )


def _describe_unvouched_permissions(
    settings: Settings,
    started: Event,
    log: LogIndex,
    journal: Journal,
    find_choices: Callable[[Event], list[str]],
) -> list[str]:
    """Describe the recorded permissions that no checkpoint vouches for.

    `find_choices` describes those that can be checked only with the specs."""
    # A waypoint leaves out no event that carries a permission.
    ids, steps = set(log.unvouched_events), log.unvouched_steps
    found = []
    if started.id in ids:
        found = _describe_start_permissions(settings, started)
        try:
            found += find_choices(started)
        except CogcliError:
            if not found and not journal.vouched.differs:
                raise
    signed = _find_signed_answers(settings, log) if started.id not in ids else set[str]()
    found += _describe_answers(log, ids - signed, steps)
    return list(dict.fromkeys(found))


def _find_signed_answers(settings: Settings, log: LogIndex) -> set[str]:
    """Return the ids of other users' approvals that a valid signature vouches for now.

    The signer must be a person in the settings, and the answer must follow the rules for a request of this user. So the
    writer of the log cannot have granted the permission to itself.
    """
    started, found = log.started, set[str]()
    if started is None:
        return found
    for each in log.approvals:
        asked = log.requests.get(each.asked.approval_id)
        if each.signed is None or each.event not in log.unvouched_events or asked is None:
            continue
        if asked.id in log.unvouched_events:
            continue
        statement = each.signed.statement
        by = f"{statement.by}:{statement.role}" if statement.role else statement.by
        signature = AnswerSignature(key="", value=each.signed.signature)
        approver = Approver(by, signatures={statement.approval_id: signature})
        at = each.at if each.used else settings.clock.now()
        with suppress(CogcliError):
            answer = RequestAnswer(asked, each.granted)
            require_approvers(started, [answer], approver, signatures_of(settings), at)
            found.add(each.event)
    return found


def _describe_answers(
    log: LogIndex, ids: Collection[str | None], steps: Collection[str | None]
) -> list[str]:
    """Describe the answers of persons in these events, and the gates that these steps passed."""
    approved = [each.asked for each in log.approvals if each.granted and each.event in ids]
    decided = [event for event in log.decisions.values() if event.id in ids]
    return [
        *(f"`{asked.capability or asked.step_id}` approved" for asked in approved),
        *(f"a gate passed ({step})" for step in log.gates_passed if step in steps),
        *(f"`{event.step_id}` decided, in doubt" for event in decided),
    ]


def _describe_standing_permissions(settings: Settings, started: Event) -> list[str]:
    """Describe the permissions in the first event that apply to all later calls."""
    if not has_standing_permissions(started.payload):
        return []
    return _describe_levels(settings, options_from_log(started.payload))


def _describe_start_permissions(settings: Settings, started: Event) -> list[str]:
    """Describe the permissions in the first event that a new run would not have without the user's
    consent.

    These are trust level, confirmations, typed files and the user, and for an agent its consent,
    conversation, model and rules."""
    start = start_of(started)
    request = start.agent.request if start.agent else None
    user = (request.user if request else None) or RequestUser()
    policy_user = start.policy.user if start.policy else ""
    named = {policy_user, user.user_id} - {"", "default"}
    found = [
        *_describe_levels(settings, options_from_log(started.payload)),
        *_describe_changed_variables(settings, start.pins),
        *(f"file of the input `{name}`" for name in start.typed),
        *(f"sending `{each.path}`" for each in files_in_payload(start.files)),
        *(f"user `{name}`" for name in sorted(named)),
        *(f"approvals of {origin}" for origin in _find_approval_origins(start)),
    ]
    if request is None:
        return found
    model = _describe_changed_model(settings, start.pins.model)
    return [*found, *_describe_agent_permissions(request, user, start), *model]


def _find_approval_origins(start: RecordedStart) -> list[str]:
    """Return the ids of the episodes whose approvals the run may reuse."""
    return sorted({each.origin.episode_id for each in start.approvals.values()})


def _describe_agent_permissions(
    request: RecordedRequest, user: RequestUser, start: RecordedStart
) -> Iterator[str]:
    """Describe the permissions that only a request to an agent has."""
    if user.role:
        yield f"role `{user.role}`"
    yield from (f"consent to `{name}`" for name in user.consent)
    if request.session_id:
        yield f"conversation `{request.session_id}`"
    if is_built_in(start.policy):
        yield "the rules of the agent without a pack"


def _describe_changed_model(settings: Settings, model: PinnedModel | None) -> list[str]:
    """Describe the language model of an agent's run; empty if the settings name the same model."""
    if model is None or model.adapter in ("", TEMPLATE):
        return []
    named = f"{model.adapter}:{model.name}"
    configured = f"{settings.value('model.adapter')}:{settings.value('model.name')}"
    own = settings.environ.get(variable(WHOLE_TABLE)) or configured
    return [] if own == named else [f"model {named}"]


def _describe_changed_choices(
    own: SelectionOptions, directory: Path, started: Event, registry: Registry
) -> list[str]:
    """Describe the bindings and lenient contracts in the first event that a new run would not
    use."""
    start, pinned = start_of(started), partial(read_pinned_catalog, started, directory)
    catalog = reach_recorded(registry, started, pinned)
    options = options_from_log(started.payload).replace(allow_hosts=list(own.allow_hosts))
    recorded = SelectionOptions.of(options, own.environ)
    chains, found = runs.recorded_chains(started), []
    for id in sorted(catalog.capabilities):
        bindings = _select_recorded_bindings(catalog, id, recorded, chains.get(id))
        if bindings and bindings != _select_bindings(catalog, id, own):
            found.append(f"`{id}` through {', '.join(f'`{each}`' for each in bindings)}")
    lenient = (
        Contradictions.from_log(start.contracts).lenient - Contradictions.of(catalog, ()).lenient
    )
    return [*found, *(f"lenient contracts of `{spec}`" for spec in sorted(lenient))]


def _select_recorded_bindings(
    catalog: Catalog, capability_id: str, options: SelectionOptions, chain: BindingChain | None
) -> tuple[str, ...]:
    """Return the bindings that a log selects for a capability, in order; empty if none can be
    called now."""
    if chain is None:
        return _select_bindings(catalog, capability_id, options)
    ids = [member.binding_id for member in chain.members]
    named = options._replace(binds={**options.binds, capability_id: ids[0]})
    return tuple(id for id in _select_bindings(catalog, capability_id, named) if id in ids)


def _select_bindings(
    catalog: Catalog, capability_id: str, options: SelectionOptions
) -> tuple[str, ...]:
    """Return the bindings that these options select for a capability, in order; empty if none can
    be called."""
    try:
        return select(catalog, capability_id, options).usable
    except BindingResolutionError:
        return ()


def _describe_changed_variables(settings: Settings, pins: RunPins) -> list[str]:
    """Describe the services whose recorded variables differ from the current values.

    A variable may be the address that receives a token, or the program that is started."""
    recorded = pins.variables
    if not recorded:
        return []
    builder = open_registry(settings).builder()
    services = {id: builder.add_service(id) for id in recorded}
    return [
        f"other variables of service `{id}`: {_join_values(recorded[id])}"
        for id, service in services.items()
        if service is not None and service.values != recorded[id]
    ]


def _join_values(values: Mapping[str, str]) -> str:
    """Return recorded variables as one line of text."""
    pairs = (f"{name}={value}" for name, value in values.items())
    return visible(", ".join(pairs))[:_SHOWN] or "none"


def _describe_levels(settings: Settings, options: RunOptions) -> list[str]:
    """Describe a trust level above the user's, and the confirmed capabilities."""
    confirmed = sorted(options.confirm)
    shadow = ["no rule of its pack enforced"] if options.shadow else []
    return [
        *_describe_higher_level(settings, options),
        *(f"`{id}` confirmed" for id in confirmed),
        *shadow,
    ]


def _describe_higher_level(settings: Settings, options: RunOptions) -> list[str]:
    """Describe a trust level above the user's; empty for any other level."""
    level = options.trust_level
    own = TRUST_RANKS[settings.value("trust_level")]
    return [f"trust level {level}"] if TRUST_RANKS.get(level, own + 1) > own else []


def _untrusted_error(
    message: str, directory: Path, head: str, permissions: Sequence[str] = ()
) -> UnusableEnvironment:
    """Return the error for permissions that may not be used again. `head` is the hash with which
    the user can accept them."""
    more = f" and {len(permissions) - 5} more" if len(permissions) > 5 else ""
    shown = ", ".join(visible(each[:_SHOWN]) for each in permissions[:5])
    found = f"; it records: {shown}{more}" if permissions else ""
    place = quote(str(directory))
    return UnusableEnvironment(
        "resume.untrusted",
        f"{message}{found}",
        hint="look at the log; if you allow what it records, name the hash that it ends with: --head HASH",
        next=(f"cogcli trace {place}", f"cogcli resume {place} --head {head}"),
    )


def _require_own_level(settings: Settings, directory: Path, log: LogIndex) -> None:
    """Raise UnusableEnvironment `resume.untrusted` if an episode of unknown origin records a trust
    level above the user's."""
    if log.started is None:
        return
    options = options_from_log(log.started.payload)
    higher = _describe_higher_level(settings, options)
    if not higher:
        return
    raise UnusableEnvironment(
        "resume.untrusted",
        f"this episode is not known to be yours; it records: {higher[0]}",
        hint="give the trust level yourself, if you allow it",
        next=(f"cogcli rerun {quote(str(directory))} --trust-level {quote(options.trust_level)}",),
    )
