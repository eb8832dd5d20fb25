"""The use case of a run: it adds settings and trust to `cogcli.run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from cogcli.app.file_scope import find_reads, with_file_scope
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import ensure_key
from cogcli.app.settings.runs_dir import signer_of
from cogcli.app.settings.user_dirs import cache_home, state_home
from cogcli.app.wings import AGENT_OF_LOG, OPEN_SAMPLER, SESSION_OF_LOG
from cogcli.base.allowed_hosts import parse_host
from cogcli.base.calls import PersonAtTerminal, TakeSample
from cogcli.base.errors import CogcliError, SkillNotFoundError, UsageError
from cogcli.base.jsonvalue import Json
from cogcli.base.problems import did_you_mean
from cogcli.declarations.envelope import Event
from cogcli.declarations.options import HOOKS, OPTIONS, RunOptions, normalized
from cogcli.declarations.run_start import start_of
from cogcli.policy.approvals import AnswerSignatures, SignedAnswer
from cogcli.run.given_inputs import RequestedRun
from cogcli.run.launch import Watch, launch_given
from cogcli.run.policy_request import PolicyRequest
from cogcli.run.prepare import AgentRun, RunEnvironment
from cogcli.run.results import RunResult
from cogcli.specs.catalog import Catalog
from cogcli.specs.selection import SelectionOptions

if TYPE_CHECKING:
    from cogcli.run.engine.ports import LimitLedger


def run_requested_skill(
    settings: Settings,
    requested: RequestedRun,
    watch: Watch,
    person: PersonAtTerminal | None = None,
) -> RunResult:
    """Run the skill that a command line names, and return the result. `watch` surrounds the run
    with its display and signals. `person` answers services while a call is open.

    Raise SkillNotFoundError, ServiceResolutionError `service.login` and the errors of
    `launch_given`."""
    environment = answering_environment(settings, person)
    requested = with_file_scope(settings, requested)
    request, registry = requested.request, environment.open_registry()
    try:
        catalog = registry.reach(request.skill_id, packs=request.pack_refs)
    except SkillNotFoundError as error:
        from cogcli.specs.sample_inputs import sample_arguments

        for meant in did_you_mean(request.skill_id, registry.ids("skill"), limit=1):
            skill = registry.reach(meant).skills.get(meant)
            error.samples = sample_arguments(skill) if skill else {}
        raise
    require_known_logins(settings, catalog, request.options)
    return launch_given(environment, catalog, requested, watch)


def require_known_logins(settings: Settings, catalog: Catalog, options: RunOptions) -> None:
    """Raise ServiceResolutionError `service.login` if a capability needs a login that this user does not have."""
    if _has_logins(catalog):
        selection = SelectionOptions.of(options, settings.environ)
        chains = list(_login_needs().select_chains(catalog, selection))
        _require_logins(settings, catalog, chains)


def _login_needs() -> ModuleType:
    from cogcli.app import login_needs  # most services have no login

    return login_needs


def _has_logins(catalog: Catalog) -> bool:
    return any("login" in service.settings for service in catalog.services.values())


def _require_logins(
    settings: Settings, catalog: Catalog, chains: Collection[Sequence[str]]
) -> None:
    if _has_logins(catalog):
        _login_needs().require_logins(catalog, chains, settings.environ, settings.clock.now())


def build_options(settings: Settings, flag_values: Json) -> RunOptions:
    """Combine the options of the command line and of the settings.

    Raise UsageError or UnusableEnvironment `config.key`."""
    values = dict(flag_values)
    for option in OPTIONS.values():
        if option.setting:
            values[option.name] = settings.value(option.name)
    if values.get("allow_hosts"):
        values["allow_hosts"] = parse_hosts(values["allow_hosts"])
    return RunOptions(**normalized(values))


def parse_hosts(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the values of `--allow-host`, normalized.

    Raise UsageError `usage.value` for a value that is not a public host."""
    hosts = []
    for text in texts:
        try:
            hosts.append(parse_host(text))
        except ValueError as error:
            raise UsageError("usage.value", f"`--allow-host {text[:100]}`: {error}") from error
    return tuple(hosts)


def resolve_pack_option(settings: Settings, options: RunOptions, skill_id: str = "") -> RunOptions:
    """Return the options with the exact version of the pack. Without `skill_id`, the run is the run of an agent. Raise
    UsageError `usage.flag` and the errors of `resolve_pack`.
    """
    _check_pack_options(options)
    if not options.pack:
        return options
    from cogcli.app.packs import resolve_pack  # most runs have no pack

    return options.replace(
        pack=resolve_pack(settings, options.pack, skill_id),
        with_packs=[resolve_pack(settings, name, skill_id) for name in options.with_packs],
    )


def _check_pack_options(options: RunOptions) -> None:
    """Raise UsageError for a pack option without the other options that it requires."""
    if bool(options.pack) != bool(options.intent):
        lacking = "--intent" if options.pack else "--pack"
        hint = "give both: `--pack ID@VERSION --intent ID`"
        raise UsageError("usage.flag", f"a run under a pack needs `{lacking}`, too", hint=hint)
    given_alone = {
        "`--user` is for the rules of a pack": options.user,
        "`--with-pack` adds to the pack of `--pack`": options.with_packs,
        "`--shadow` is for the rules of a pack": options.shadow,
    }
    for message, value in given_alone.items():
        if value and not options.pack:
            raise UsageError("usage.flag", message, hint="add --pack and --intent")
    user = OPTIONS["user"].type
    if options.user and not user.accepts(options.user):
        text = f"the user of a run: found `{options.user[:60]}`"
        raise UsageError("usage.value", text, expected=user.expected)


def environment_of(settings: Settings) -> RunEnvironment:
    """Return the environment of a run, which depends on settings and trust.

    Raise UsageError or UnusableEnvironment `config.key`."""
    accepted = settings.project is not None and settings.trust.state == "accepted"
    write_roots = settings.file_roots("files.write_roots")
    return RunEnvironment(
        runs_dir=settings.runs_dir,
        state_dir=state_home(settings.environ),
        environ=settings.environ,
        clock=settings.clock,
        ids=settings.ids,
        open_registry=partial(open_registry, settings),
        signer=partial(signer_of, settings),
        owner=partial(ensure_key, settings.environ),
        shared=settings.shares_episodes,
        signatures=signatures_of(settings),
        store_dir=settings.store_dir,
        limits=partial(_open_limits, settings),
        bytecode_dir=os.path.join(cache_home(settings.environ), "bytecode") if accepted else "",
        use_env_proxy=settings.value("use_env_proxy"),
        reads=find_reads(settings),
        write_roots=tuple(map(tuple, write_roots)),
        agent_of=partial(agent_of, settings),
        export=_trace_exporter(settings),
        hooks=_hook_sender(settings),
        require_logins=partial(_require_logins, settings),
        pauses_for_input=True,
    )


def answering_environment(settings: Settings, person: PersonAtTerminal | None) -> RunEnvironment:
    """Return the environment of a run whose services may ask inside a call: `person`, and the configured model if
    their declarations allow it.
    """

    def open_sampler(
        learn: Callable[[str], None], catalog: Catalog, policy: PolicyRequest | None, spent: Mapping[str, int]
    ) -> TakeSample | None:  # fmt: skip
        sampler: TakeSample | None = OPEN_SAMPLER(settings, learn, catalog, policy, spent)
        return sampler

    return environment_of(settings)._replace(person=person, open_sampler=open_sampler)


def signatures_of(settings: Settings) -> AnswerSignatures:
    """Return the verifier of signatures on answers, which uses the keys of the settings."""
    return AnswerSignatures(
        partial(_explain_signature, settings), with_role=settings.shares_episodes
    )


def _explain_signature(settings: Settings, answer: SignedAnswer, at: str) -> str:
    from cogcli.app.settings.approvers import ApproverKeys  # most answers are not signed

    return ApproverKeys(settings).find_rejection_reason(answer, at)


def _open_limits(settings: Settings) -> LimitLedger:
    from cogcli.app.limits import open_limits  # most runs have no limits

    return open_limits(settings)


def _trace_exporter(settings: Settings) -> Callable[[str], str] | None:
    """Return the function that sends the traces of finished runs to a collector; None if no
    collector is configured."""
    if not settings.value("export.otlp"):
        return None
    from cogcli.app.trace_push import trace_exporter  # most runs have no collector

    return trace_exporter(settings)


def _hook_sender(settings: Settings) -> Callable[[RunResult], tuple[CogcliError, ...]] | None:
    """Return the function that calls the hooks of the settings; None if they declare none."""
    if not any(settings.value(f"hooks.{name}") for name in HOOKS):
        return None
    from cogcli.app.hooks import find_hooks  # most settings have none

    hooks = find_hooks(settings)
    return hooks.send if hooks else None


def agent_of(
    settings: Settings | None,
    started: Event,
    catalog: Catalog,
    on_response: Callable[[str], None] | None = None,
) -> AgentRun:
    """Return the agent whose run a log records, or the session of a gateway. If `settings` is None, the agent stores
    nothing.

    `on_response` receives the text of a response repeatedly while it grows."""
    if start_of(started).gateway is not None:
        session: AgentRun = SESSION_OF_LOG(started, catalog)
        return session
    agent: AgentRun = AGENT_OF_LOG(settings, started, catalog, on_response)
    return agent
