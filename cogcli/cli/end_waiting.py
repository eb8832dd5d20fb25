"""The screen of `gc --end-waiting` (docs/reference/command-line.md#views)."""

from __future__ import annotations

from shlex import quote

from cogcli.app.end_waiting import end_runs, plan_ends
from cogcli.app.episodes import parse_age
from cogcli.base.errors import OK, UsageError
from cogcli.cli.context import CommandContext
from cogcli.cli.prompt import ask, can_ask
from cogcli.report.humanize import count_of


def end_waiting(context: CommandContext, age: str, *, dry_run: bool, yes: bool) -> int:
    """End the runs that have waited for longer than an age, and return the exit code. Raise UsageError without `yes`
    and without a terminal.
    """
    settings = context.settings
    before = parse_age(settings, "--end-waiting", age) or ""
    planned = plan_ends(settings, before, context.warn)
    amount = count_of(len(planned.rows), "waiting run")
    done = planned
    if not dry_run and planned.rows:
        if not yes and not _confirm_end(context, amount, age):
            done = planned._replace(rows=[])
        else:
            done = end_runs(settings, planned, context.user, context.warn)
    kept = dict(sorted(done.kept.items()))
    ids = [row.id for row in done.rows]
    context.own["ended"] = {"dry_run": dry_run, "episodes": ids, "kept": kept}
    verb = "would end" if dry_run else "ended"
    rest = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in kept.items())
    text = f"{verb} {count_of(len(done.rows), 'waiting run')}"
    context.answer(f"{text}{f'; keeps {rest}' if rest else ''}\n")
    return OK


def _confirm_end(context: CommandContext, amount: str, age: str) -> bool:
    """Prompt for a confirmation. Raise UsageError without a terminal."""
    if not can_ask(context):
        what = f"`gc` would end {amount}, and there is no terminal to ask on"
        line = f"cogcli gc --end-waiting {quote(age)}{context.again}"
        raise UsageError(
            "usage.flag",
            what,
            hint="--yes confirms in advance; --dry-run only lists",
            next=(f"{line} --dry-run", f"{line} --yes"),
        )
    return ask(context, f"end {amount}? [y/N]") in ("y", "yes")
