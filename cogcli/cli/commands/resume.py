"""`resume EP`: go on with an interrupted or paused run, or answer what it asks (cli.md 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.app import inspect
from cogcli.cli.commands.run import Heard, Signals, tell
from cogcli.cli.progress import display_for
from cogcli.core.errors import UsageError

if TYPE_CHECKING:
    from cogcli.app.resume import ResumeRequest
    from cogcli.cli.context import Context


def execute(context: Context) -> int:
    """Go on with the episode of the first word."""
    from cogcli.app.resume import resume
    from cogcli.app.run_skill import Control

    settings = context.settings
    directory = inspect.find(settings, context.arguments.words[0])
    display = display_for(
        context.screen, str(settings.value("progress")), verbose=context.arguments.on("--verbose")
    )
    control, heard = Control(), Heard(display)
    context.screen.claim_stdout()
    try:
        with Signals(context, control, display):
            result = resume(settings, directory, _request(context), listener=heard, control=control)
    finally:
        display.close()
    tell(context, result, heard, None, answer=True)
    return result.exit_code


def _request(context: Context) -> ResumeRequest:
    from cogcli.app.resume import ResumeRequest

    given = context.arguments
    return ResumeRequest(
        approve=tuple(given.many("--approve")),
        reject=tuple(given.many("--reject")),
        by=given.text("--by") or _user(context),
        reason=given.text("--reason") or "",
        in_doubt=given.text("--in-doubt"),
        allow_changed_specs=given.on("--allow-changed-specs"),
        abort=_abort(context),
        durability=str(context.settings.value("durability")),
    )


def _abort(context: Context) -> bool:
    given = context.arguments
    if not given.on("--abort"):
        return False
    for flag in ("--approve", "--reject", "--in-doubt"):
        if given.many(flag) if flag != "--in-doubt" else given.text(flag):
            raise UsageError(
                "usage.flag", f"`--abort` closes the run, `{flag}` goes on with it", hint="keep one"
            )
    return True


def _user(context: Context) -> str:
    """Who the machine says this is."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return context.environ.get("USER") or "somebody"
