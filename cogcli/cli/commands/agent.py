"""`agent invoke`: one request to an agent (docs/reference/agent-run.md#invoke)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated

from cogcli.agent.use_cases.compile_context import GivenRequest, parse_request
from cogcli.agent.use_cases.invoke_agent import GivenInvocation, dry_run, invoke
from cogcli.agent.use_cases.jobs import work_after_answer
from cogcli.app.packs import resolve_pack
from cogcli.app.registry import is_untrusted
from cogcli.app.run_skill import options_of
from cogcli.base.errors import OK, VETOED, CogcliError, UsageError
from cogcli.cli.context import CommandContext
from cogcli.cli.envelope import dumps
from cogcli.cli.given_options import parse_pairs, read_options
from cogcli.cli.inputs import read_json_flag
from cogcli.cli.live_run import (
    DisplayListener,
    answer_pause,
    open_display,
    report_result,
    watch_start,
)
from cogcli.cli.options import argument, command
from cogcli.cli.run_flags import AgentFlags
from cogcli.cli.run_skill import warn_of_distrust
from cogcli.declarations.options import RunOptions
from cogcli.declarations.pack_spec import MODES
from cogcli.declarations.value_types import Json
from cogcli.policy.budgets import flatten
from cogcli.run.given_inputs import json_value, raise_together
from cogcli.run.input_origins import TYPED
from cogcli.run.prepare import PreparedRun, RunRequest
from cogcli.run.results import Control, RunResult


@command(
    examples=(
        ("cogcli agent invoke request.json", "a request in a file, with its pack"),
        (
            "cogcli agent invoke --message 'Refund ord_881' --user cust_7 --pack support-desk@4.0.0",
            "without a file",
        ),
        (
            "cogcli agent invoke request.json --dry-run",
            "context and plan; nothing is called or written",
        ),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6),
)
def invoke_agent(
    context: CommandContext,
    request: Annotated[str | None, argument("[REQUEST.json]")] = None,
    *,
    flags: AgentFlags,
) -> int:
    """Compile the context of a request, plan, act under the pack, and record the decision.

    Without a pack the agent may only read. Return the exit code of the run: 4 if the request was
    refused or denied, 5 if a person has to decide.
    """
    given = _read_request(context, request, flags)
    if flags.dry_run:
        found = dry_run(context.settings, given)
        context.own.update(found)
        context.answer(dumps(found, indent=True) + "\n")
        return VETOED if found["refused"] else OK
    warn_of_distrust(context, "pack", given.request.pack_ref)
    listener = DisplayListener(open_display(context))

    def watch(prepared: PreparedRun, control: Control) -> AbstractContextManager[DisplayListener]:
        context.warnings += [warning.to_payload() for warning in prepared.warnings]
        return watch_start(context, listener, control)

    given = given._replace(on_response=listener.display.on_response)
    result: RunResult = invoke(context.settings, given, watch)
    result, listener = answer_pause(context, result, listener)
    report_result(context, result, listener, None, answer=True)
    if given.memory and not is_untrusted(context.settings, "pack", given.request.pack_ref):
        context.afterwards.append(partial(work_after_answer, context.settings, given.model))
    return result.exit_code


def _read_request(context: CommandContext, file: str | None, flags: AgentFlags) -> GivenInvocation:
    """Return the request of the command line. Raise all its problems together."""
    if bool(file) is bool(flags.message):
        lacking = "give a file or `--message`, not both" if file else "give a file, or `--message`"
        raise UsageError("usage.flag", lacking, hint="cogcli agent invoke REQUEST.json")
    raw: Json = (
        read_json_flag(context, f"@{file}", "request") if file else {"message": flags.message}
    )
    return read_given(context, raw, flags)


def read_given(context: CommandContext, raw: Json, flags: AgentFlags) -> GivenInvocation:
    """Return the invocation for a request and these flags. Raise all problems together."""
    problems: list[CogcliError] = []
    given = parse_request(raw)
    options = options_of(context.settings, read_options(flags, problems))
    request = given.request
    given = given._replace(
        request=request._replace(
            intent=options.intent or request.intent,
            user=request.user._replace(user_id=options.user or request.user.user_id),
            params={**request.params, **_parse_params(flags.param, problems)},
            session_id=flags.session or request.session_id,
        )
    )
    options = _merge_options(context, given, options, problems)
    raise_together(problems)
    origins = dict.fromkeys(_parse_params(flags.param, []), TYPED)
    run = RunRequest("", {}, options, origins)
    debug = context.verbose or context.call.flags.debug
    return GivenInvocation(
        given, run, not flags.no_memory, flags.model or "", flags.mode or "adapt", debug
    )


def _parse_params(texts: list[str], problems: list[CogcliError]) -> Json:
    """Return the parameters of `--param`: `k=text` or `k:=JSON`."""
    found: Json = {}
    for name, value in parse_pairs(texts, "--param", "k=v", problems).items():
        typed = name.endswith(":")
        found[name.rstrip(":")] = json_value(value, "--param") if typed else value
    return found


def _merge_options(
    context: CommandContext, given: GivenRequest, options: RunOptions, problems: list[CogcliError]
) -> RunOptions:
    """Return the options of the flags and of the request together.

    A flag wins over the request, but can only tighten the safety mode and the budget; `--pack`
    replaces the first pack of the request, and what further packs add stays. An empty pack stands
    for the built-in one. The intent is left to the request.
    """
    budget = _budget_limits(given.budget, problems)
    for key, value in options.budget.items():
        budget[key] = min(value, budget.get(key, value))
    primary = options.pack or next(iter(given.pack_refs), "")
    added = [*given.pack_refs[1:], *options.with_packs]
    return options.replace(
        safety_mode=_stricter_mode(options.safety_mode, given.safety_mode, problems),
        pack=resolve_pack(context.settings, primary) if primary else "",
        with_packs=[resolve_pack(context.settings, name) for name in added],
        intent="",
        user=given.request.user.user_id,
        budget=budget,
        trace_id=options.trace_id or given.trace_id or None,
        tags={**given.tags, **options.tags},
    )


def _budget_limits(budget: Json, problems: list[CogcliError]) -> dict[str, int]:
    """Return the limits of a budget by path. A limit that is not a number is added to `problems`."""
    found = {}
    for key, value in flatten(budget):
        if type(value) is int and value >= 0:
            found[key] = value
        else:
            problems.append(
                UsageError("input.type", f"`budget.{key}` of the request: expected a number")
            )
    return found


def _stricter_mode(flag: str, wanted: str, problems: list[CogcliError]) -> str:
    """Return the stricter of two safety modes; empty if neither is set."""
    if wanted and wanted not in MODES:
        problems.append(
            UsageError("usage.value", "`safety_mode` of the request", hint=", ".join(MODES))
        )
        return flag
    named = [mode for mode in (flag, wanted) if mode]
    return min(named, key=MODES.index) if named else ""
