"""`resume EP`: continue an interrupted or paused run, with answers to what it waits for
(docs/reference/episode.md#doubts, docs/reference/execution.md#approvals)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.app import episodes
from cogcli.cli.answers import doubt_answers
from cogcli.cli.live_run import answer_pause, report_result, resume_run
from cogcli.core.errors import UsageError

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext
    from cogcli.runs.resume import ResumeRequest


def execute(context: CommandContext) -> int:
    """Resume the episode of the first word; returns the exit code of the run."""
    directory = episodes.find(context.settings, context.arguments.words[0])
    context.warn_of_shared_runs()
    result, listener = resume_run(context, directory, _request(context))
    if not context.arguments.on("--abort"):
        result, listener = answer_pause(context, result, listener)
    report_result(context, result, listener, None, answer=True)
    return result.exit_code


def _request(context: CommandContext) -> ResumeRequest:
    from cogcli.runs.resume import ResumeRequest

    given = context.arguments
    return ResumeRequest(
        approve=tuple(given.many("--approve")),
        reject=tuple(given.many("--reject")),
        by=given.text("--by") or context.user,
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
