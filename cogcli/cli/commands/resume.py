"""`resume EP`: continue an interrupted or paused run, with answers to its open requests
(docs/reference/episode.md#doubts, docs/reference/execution.md#approvals).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

from cogcli.app import episodes
from cogcli.app.live_answers import deliver_decisions, is_live_session
from cogcli.app.resume import find_warning
from cogcli.app.run_skill import parse_hosts
from cogcli.app.signed_answers import sign_answers
from cogcli.app.wings import WingFunction, is_batch_word
from cogcli.base.errors import OK, CogcliError, UnusableEnvironment, UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.after_failure import commands_after_failure
from cogcli.cli.context import CommandContext
from cogcli.cli.inputs import parse_hash, parse_step_word, read_json_flag
from cogcli.cli.live_run import answer_pause, report_result, resume_run
from cogcli.cli.options import (
    EXECUTION,
    SAFETY,
    AllowHost,
    Flags,
    Progress,
    argument,
    command,
    seconds,
    switch,
    text,
    wrong_flag,
)
from cogcli.declarations.governance_events import AnswerSignature
from cogcli.declarations.value_types import Json
from cogcli.episode.history import DECLINE, history_of
from cogcli.episode.listing.episode_row import EpisodeFilter, read_row
from cogcli.episode.log_reader import iterate_events
from cogcli.report.humanize import fuzzy_time
from cogcli.run.answers import Approver
from cogcli.run.doubt_decisions import DoubtAnswer
from cogcli.run.engine.doubt import CHOICES
from cogcli.run.form_answers import FormAnswer
from cogcli.run.resume import ResumeRequest

_RESUMABLE = ("pending", "interrupted")
_MAX_LISTED = 5
_IN_DOUBT = "settle an effect that may have happened: rerun, skip, fail or done (repeatable)"


_RESUME_BATCH: Final = WingFunction("cogcli.cli.batch_resume", "resume_batch_command")


class ResumeFlags(Flags):
    """The flags that answer the open requests of a run."""

    approve: list[str] = text(
        "--approve", "ID|GATE|CAP", "allow this one action (repeatable)", SAFETY
    )
    reject: list[str] = text(
        "--reject", "ID|GATE|CAP", "refuse this one action: the step is vetoed (repeatable)", SAFETY
    )
    by: str | None = text(
        "--by", "NAME[:ROLE]", "the name of the approver", SAFETY, default="OS user"
    )
    sign: str | None = text(
        "--sign", "FILE", "sign the answer with this SSH key", SAFETY, completes="files"
    )
    reason: str | None = text("--reason", "TEXT", "the reason", SAFETY)
    in_doubt: list[str] = text("--in-doubt", "[STEP=]WORD", _IN_DOUBT, SAFETY, completes=CHOICES)
    output: list[str] = text(
        "--output",
        "[STEP=]JSON",
        "with done: the answer of the call, as JSON or @FILE (repeatable)",
        SAFETY,
    )
    answer: list[str] = text(
        "--answer",
        "[STEP=]JSON",
        "answer what a service asks for, as JSON or @FILE; or decline (repeatable)",
        SAFETY,
    )
    allow_changed_specs: bool = switch(
        "--allow-changed-specs", help="resume although specs have changed since", panel=SAFETY
    )
    allow_host: AllowHost
    head: str | None = text(
        "--head", "HASH", "allow what the log records: you know its last hash", SAFETY
    )
    shard: str | None = text("--shard", "I/N", "of a batch with several shards", EXECUTION)
    abort: bool = switch(
        "--abort", help="close the run: call nothing more, end it as aborted", panel=SAFETY
    )
    timeout: float | None = seconds(
        "--timeout",
        "limit of the rest of the run in seconds",
        EXECUTION,
        default="what is left of those it had",
    )
    progress: Progress


@command(
    examples=(
        ("cogcli resume @last --approve release.publish", "approve its request, and resume"),
        (
            "cogcli resume @last --in-doubt done --output @answer.json",
            "the call did happen, with this answer",
        ),
        ("cogcli resume @last --answer @answer.json", "answer what a service asks for"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6),
)
def resume(
    context: CommandContext,
    episode: Annotated[str | None, argument("[EP]", "episodes")],
    *,
    flags: ResumeFlags,
) -> int:
    """Resume an episode and return the exit code of the run. Raise UsageError, with the candidates,
    without an episode.
    """
    if episode is None:
        raise _missing_episode_error(context)
    if is_batch_word(episode):
        code: int = _RESUME_BATCH(context, episode, flags)
        return code
    if flags.shard is not None:
        raise wrong_flag("`--shard` is for a batch", "cogcli resume ba_... --shard 1/4")
    directory = episodes.find(context.settings, episode)
    context.warn_of_shared_runs()
    request = _parse_request(context, directory, flags)
    if not flags.abort:
        _warn_of_changes(context, directory)
    if request.in_doubt and is_live_session(read_row(directory)):
        return _decide_live(context, directory, request)
    try:
        result, listener = resume_run(context, directory, request)
    except UnusableEnvironment as error:
        context.keep_typed_flags(error, "--head")
        raise
    except UsageError as error:
        if error.code == "episode.sealed":
            _add_rerun_command(context, directory, error)
        raise
    if not flags.abort:
        result, listener = answer_pause(context, result, listener)
    report_result(context, result, listener, None, answer=True)
    return result.exit_code


def _warn_of_changes(context: CommandContext, directory: Path) -> None:
    """Warn if the specs of a run have changed."""
    with suppress(CogcliError):  # of a damaged log: `resume` refuses it
        warning = find_warning(context.settings, directory)
        if warning is not None:
            context.warn(warning)


def _parse_request(context: CommandContext, directory: Path, flags: ResumeFlags) -> ResumeRequest:
    """Return the request of the flags. Raise UsageError."""
    by = flags.by or context.user
    return ResumeRequest(
        approve=tuple(flags.approve),
        reject=tuple(flags.reject),
        by=by,
        signatures=_sign_answers(context, directory, flags, by),
        reason=flags.reason or "",
        in_doubt=_doubt_answers(context, flags.in_doubt, flags.output),
        inputs=tuple(_form_answer(context, typed) for typed in flags.answer),
        allow_changed_specs=flags.allow_changed_specs,
        abort=_wants_abort(flags),
        head=parse_hash(flags.head, "--head") if flags.head else "",
        durability=str(context.settings.value("durability")),
        timeout=flags.timeout,
        allow_hosts=parse_hosts(flags.allow_host),
    )


def _decide_live(context: CommandContext, directory: Path, request: ResumeRequest) -> int:
    """Pass decisions about calls in doubt to a session that is alive, and report them. Raise the errors of
    `deliver_decisions`.
    """
    approver = Approver(request.by, request.reason)
    steps = deliver_decisions(context.settings, directory, request.in_doubt, approver)
    context.answer([[(visible(f"decided {step}: the session goes on"), "")] for step in steps])
    return OK


def _sign_answers(
    context: CommandContext, directory: Path, flags: ResumeFlags, by: str
) -> Mapping[str, AnswerSignature]:
    """Return the signatures of the answers with the key of `--sign`, by request."""
    if flags.sign is None:
        return {}
    return sign_answers(context.settings, directory, flags.approve, flags.reject, by, flags.sign)


def _add_rerun_command(context: CommandContext, directory: Path, error: UsageError) -> None:
    """Add the command that continues an ended run as a new episode, from where it failed, to the error."""
    with suppress(CogcliError):
        log = tuple(iterate_events(directory))
        root = history_of(log).root
        if root is None:
            return
        name = (
            quote(str(directory))
            if directory.parent != Path(context.settings.runs_dir)
            else directory.name
        )
        found = commands_after_failure(context, root, log, name)
        again = [f"cogcli {line}{context.again}" for line in found if line.startswith("rerun ")]
        if again:
            error.next = tuple(again)


def _missing_episode_error(context: CommandContext) -> UsageError:
    """Return the error for a missing episode, with the runs that can be resumed, newest first."""
    found = episodes.list_episodes(
        context.settings, EpisodeFilter(outcomes=_RESUMABLE), _MAX_LISTED + 1
    )
    now, shown = context.settings.clock.now(), found[:_MAX_LISTED]
    rows = [
        f"{row.id}  {row.skill}  {row.status}  {fuzzy_time(row.started_at or '', now)}"
        for row in shown
    ]
    if len(found) > _MAX_LISTED:
        rows.append("and older ones: cogcli ls --all")
    hint = (
        "\n".join(["these can be resumed:", *rows])
        if rows
        else "no run waits, and none was interrupted"
    )
    lines = [f"cogcli resume {row.id}" for row in shown[:1]] or ["cogcli ls"]
    return UsageError("usage.value", "`resume` needs EP", hint=hint, next=tuple(lines))


def _wants_abort(flags: ResumeFlags) -> bool:
    """Return whether `--abort` is typed. Raise UsageError for a flag that contradicts it."""
    if not flags.abort:
        return False
    answers = {
        "--approve": flags.approve,
        "--reject": flags.reject,
        "--in-doubt": flags.in_doubt,
        "--answer": flags.answer,
        "--timeout": flags.timeout,
    }
    for flag, given in answers.items():
        if given:
            raise wrong_flag(f"`--abort` closes the run, `{flag}` continues with it", "keep one")
    return True


def _doubt_answers(
    context: CommandContext, words: Sequence[str], outputs: Sequence[str]
) -> tuple[DoubtAnswer, ...]:
    """Return the answers of `--in-doubt`, each with the `--output` of the same step.

    An answer and an output without a step are for the only call in doubt. Raise UsageError.
    """
    given = _outputs_by_step(context, outputs)
    answers = []
    for typed in words:
        step, word = parse_step_word(typed, "--in-doubt", CHOICES)
        output = given.pop(step, None) if word == "done" else None
        answers.append(DoubtAnswer(step, word, output))
    done = [n for n, answer in enumerate(answers) if answer.choice == "done"]
    if None in given and len(done) == 1 and answers[done[0]].output is None:
        answers[done[0]] = answers[done[0]]._replace(output=given.pop(None))
    for step in given:
        what = "`--output`" if step is None else f"`--output {step}=…`"
        hint = "name the call: --in-doubt STEP=done --output STEP=JSON"
        raise wrong_flag(f"{what} answers no `--in-doubt` with done", hint)
    return tuple(answers)


def _split_step(typed: str) -> tuple[str | None, str]:
    """Return the step and the rest of `[STEP=]JSON`. A text that begins with `{` or `@` has no step."""
    if typed.lstrip().startswith(("{", "@")):
        return None, typed
    step, equals, rest = typed.partition("=")
    return (step, rest) if equals else (None, typed)


def _form_answer(context: CommandContext, typed: str) -> FormAnswer:
    """Return the answer of `--answer [STEP=]JSON`, or of `[STEP=]decline`. Raise UsageError."""
    step, value = _split_step(typed)
    declined = value.strip() == DECLINE
    return FormAnswer(step, None if declined else read_json_flag(context, value, "--answer"))


def _outputs_by_step(context: CommandContext, texts: Sequence[str]) -> dict[str | None, Json]:
    """Return the objects of `--output` by step.

    A text that begins with `{` or `@` is an object without a step; in any other text the step is
    before `=`. Raise UsageError.
    """
    found: dict[str | None, Json] = {}
    for typed in texts:
        step, value = _split_step(typed)
        if step in found:
            raise wrong_flag("`--output` is given twice for one call", "keep one of them")
        found[step] = read_json_flag(context, value, "--output")
    return found
