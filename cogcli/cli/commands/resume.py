"""`resume EP`: go on with an interrupted or paused run, or answer what it asks
(docs/reference/episode.md#doubts, docs/reference/execution.md#approvals)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cogcli.app import episodes
from cogcli.cli.answers import doubt_answers
from cogcli.cli.commands.run import DisplayListener, Signals, tell
from cogcli.cli.progress import display_for
from cogcli.core.errors import UsageError

if TYPE_CHECKING:
    from cogcli.app.resume import ResumeRequest
    from cogcli.app.run_skill import RunResult
    from cogcli.cli.context import CommandContext
    from cogcli.cli.progress import Display


def execute(context: CommandContext) -> int:
    """Go on with the episode of the first word."""
    directory = episodes.find(context.settings, context.arguments.words[0])
    context.warn_of_shared_runs()
    result, heard = continue_run(context, directory, _request(context))
    if not context.arguments.on("--abort"):
        result, heard = ask_person(context, result, heard)
    tell(context, result, heard, None, answer=True)
    return result.exit_code


def ask_person(
    context: CommandContext, result: RunResult, heard: DisplayListener
) -> tuple[RunResult, DisplayListener]:
    """How a paused run stands once the person at the terminal, if there is one, has answered what it asks."""
    if result.status != "pending":
        return result, heard
    from cogcli.cli.approve import ask_approval

    listening = [heard]

    def go_on(request: ResumeRequest) -> RunResult:
        durable = request._replace(durability=str(context.settings.value("durability")))
        after, listener = continue_run(context, Path(result.directory), durable)
        listening.append(listener)
        return after

    return ask_approval(context, result, user_of(context), go_on), listening[-1]


def continue_run(
    context: CommandContext, directory: Path, request: ResumeRequest
) -> tuple[RunResult, DisplayListener]:
    """Go on with a run, showing what happens."""
    from cogcli.app.resume import resume
    from cogcli.app.run_skill import Control

    settings = context.settings
    display = display_for(
        context.screen, str(settings.value("progress")), verbose=context.arguments.on("--verbose")
    )
    _recall(display, directory)
    control, heard = Control(), DisplayListener(display)
    context.screen.claim_stdout()
    try:
        with Signals(context, control, display):
            result = resume(settings, directory, request, listener=heard, control=control)
    finally:
        display.close()
    return result, heard


def _recall(display: Display, directory: Path) -> None:
    """What the run told before; whether its log is fit to go on with, is judged by who goes on with it."""
    from contextlib import suppress

    from cogcli.app.logs import each_event
    from cogcli.core.errors import CogcliError

    with suppress(CogcliError):
        display.recall(each_event(directory))


def _request(context: CommandContext) -> ResumeRequest:
    from cogcli.app.resume import ResumeRequest

    given = context.arguments
    return ResumeRequest(
        approve=tuple(given.many("--approve")),
        reject=tuple(given.many("--reject")),
        by=given.text("--by") or user_of(context),
        reason=given.text("--reason") or "",
        in_doubt=doubt_answers(given.many("--in-doubt"), given.many("--output")),
        allow_changed_specs=given.on("--allow-changed-specs"),
        abort=_abort(context),
        durability=str(context.settings.value("durability")),
    )


def _abort(context: CommandContext) -> bool:
    given = context.arguments
    if not given.on("--abort"):
        return False
    for flag in ("--approve", "--reject", "--in-doubt"):
        if given.many(flag):
            raise UsageError(
                "usage.flag", f"`--abort` closes the run, `{flag}` goes on with it", hint="keep one"
            )
    return True


def user_of(context: CommandContext) -> str:
    """Who the machine says this is."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return context.environ.get("USER") or "somebody"
