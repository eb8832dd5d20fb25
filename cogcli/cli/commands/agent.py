"""`agent invoke`: one request to an agent (docs/reference/agent-run.md#invoke)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Annotated

from cogcli.agent.use_cases.compile_context import parse_request
from cogcli.agent.use_cases.invoke_agent import AgentCommandInput, dry_run, invoke
from cogcli.agent.use_cases.jobs import work_after_answer
from cogcli.agent.use_cases.request_options import merge_options, with_options
from cogcli.app.registry import is_untrusted
from cogcli.app.run_skill import build_options
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
from cogcli.declarations.value_types import Json
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


def _read_request(
    context: CommandContext, file: str | None, flags: AgentFlags
) -> AgentCommandInput:
    """Return the request of the command line. Raise all its problems together."""
    if bool(file) is bool(flags.message):
        lacking = "give a file or `--message`, not both" if file else "give a file, or `--message`"
        raise UsageError("usage.flag", lacking, hint="cogcli agent invoke REQUEST.json")
    raw: Json = (
        read_json_flag(context, f"@{file}", "request") if file else {"message": flags.message}
    )
    return read_invocation(context, raw, flags)


def read_invocation(context: CommandContext, raw: Json, flags: AgentFlags) -> AgentCommandInput:
    """Return the invocation for a request and these flags. Raise all problems together."""
    problems: list[CogcliError] = []
    given = parse_request(raw)
    options = build_options(context.settings, read_options(flags, problems))
    request = given.request
    given = with_options(
        given._replace(
            request=request._replace(
                params={**request.params, **_parse_params(flags.param, problems)},
                session_id=flags.session or request.session_id,
            )
        ),
        options,
    )
    options = merge_options(context.settings, given, options, problems)
    raise_together(problems)
    origins = dict.fromkeys(_parse_params(flags.param, []), TYPED)
    run = RunRequest("", {}, options, origins)
    debug = context.verbose or context.call.flags.debug
    return AgentCommandInput(
        given, run, not flags.no_memory, flags.model or "", flags.mode or "adapt", debug
    )


def _parse_params(texts: list[str], problems: list[CogcliError]) -> Json:
    """Return the parameters of `--param`: `k=text` or `k:=JSON`."""
    found: Json = {}
    for name, value in parse_pairs(texts, "--param", "k=v", problems).items():
        typed = name.endswith(":")
        found[name.rstrip(":")] = json_value(value, "--param") if typed else value
    return found
