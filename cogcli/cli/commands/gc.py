"""`gc`: remove episodes, but never a running, waiting or pinned one
(docs/reference/command-line.md#views).
"""

from __future__ import annotations

from shlex import quote

from cogcli.app import gc
from cogcli.base.errors import OK, UsageError
from cogcli.cli.context import CommandContext
from cogcli.cli.options import SAFETY, Flags, choice, command, integer, switch, text
from cogcli.cli.prompt import ask, can_ask
from cogcli.report.humanize import count_of, size

OUTCOMES = ("ok", "error", "vetoed", "aborted", "partial", "interrupted")


class GcFlags(Flags):
    """The flags that select the episodes to remove, and those to pin or unpin."""

    keep: int | None = integer("--keep", "keep the newest N episodes", minimum=0, maximum=10**9)
    older_than: str | None = text(
        "--older-than", "AGE", "only episodes older than AGE: 30d, 12h, 45m"
    )
    outcome: str | None = choice("--outcome", "WORD", OUTCOMES, "only episodes with this outcome")
    expired: bool = switch("--expired", help="only episodes past the retention of their pack")
    end_waiting: str | None = text(
        "--end-waiting",
        "AGE",
        "end runs that wait for longer than AGE; never those with an effect in doubt",
    )
    dry_run: bool = switch("--dry-run", help="list what would be removed; remove nothing")
    yes: bool = switch(
        "--yes", help="remove without a question; required without a terminal", panel=SAFETY
    )
    pin: list[str] = text(
        "--pin", "EP", "keep this episode always (repeatable)", SAFETY, completes="episodes"
    )
    unpin: list[str] = text(
        "--unpin", "EP", "remove the pin of this episode (repeatable)", SAFETY, completes="episodes"
    )


@command(
    examples=(
        ("cogcli gc --keep 50 --older-than 30d --dry-run", "what would be removed?"),
        ("cogcli gc --expired --yes", "for scripts: episodes past their retention"),
        ("cogcli gc --pin @last", "always keep this episode"),
    ),
    exits=(0, 2, 3, 130),
)
def sweep(context: CommandContext, *, flags: GcFlags) -> int:
    """Pin or unpin episodes, or remove those that match all criteria."""
    if flags.pin or flags.unpin:
        return _change_pins(context, flags)
    if flags.end_waiting is not None:
        if _has_criteria(flags):
            what = "`--end-waiting` ends runs and removes nothing"
            raise UsageError("usage.flag", what, hint="remove ended runs with a second `gc`")
        from cogcli.cli.end_waiting import end_waiting  # it can end a run; no other `gc` does

        return end_waiting(context, flags.end_waiting, dry_run=flags.dry_run, yes=flags.yes)
    wanted = gc.parse_criteria(
        context.settings,
        keep=flags.keep,
        older_than=flags.older_than,
        outcome=flags.outcome,
        expired=flags.expired,
    )
    planned = gc.plan_sweep(context.settings, wanted)
    if flags.dry_run:
        return _print_sweep(context, "would remove", planned, dry_run=True)
    if planned.rows and not flags.yes and not _prompt_for_removal(context, planned, flags):
        context.screen.notify("nothing was removed\n")
        return _print_sweep(context, "", planned._replace(rows=[], bytes=0), dry_run=False)
    return _print_sweep(
        context,
        "removed",
        gc.remove_planned_episodes(context.settings, wanted, planned),
        dry_run=False,
    )


def _change_pins(context: CommandContext, flags: GcFlags) -> int:
    """Pin and unpin the named episodes. Raise UsageError for any other flag."""
    if _has_criteria(flags) or flags.dry_run or flags.yes or flags.end_waiting is not None:
        raise UsageError("usage.flag", "pins are set by themselves", hint="leave the criteria out")
    actions = {"pinned": gc.set_pin, "unpinned": gc.remove_pin}
    changed: dict[str, list[str]] = {"pinned": [], "unpinned": []}
    for word, named in (("pinned", flags.pin), ("unpinned", flags.unpin)):
        for episode in named:
            id = actions[word](context.settings, episode)
            changed[word].append(id)
            context.answer(f"{word} {id}\n")
    context.own["removed"] = {"dry_run": False, "episodes": [], "bytes": 0, "kept": {}, **changed}
    return OK


def _has_criteria(flags: GcFlags) -> bool:
    return bool(flags.keep is not None or flags.older_than or flags.outcome or flags.expired)


def _prompt_for_removal(context: CommandContext, plan: gc.RemovalPlan, flags: GcFlags) -> bool:
    """Prompt for a confirmation of the removal. Raise UsageError without a terminal."""
    if not can_ask(context):
        what = f"`gc` would remove {_amount_text(plan)}, and there is no terminal to ask on"
        hint, again = (
            "--yes confirms in advance; --dry-run only lists",
            _criteria_flags(context, flags),
        )
        next = (f"cogcli gc{again} --dry-run", f"cogcli gc{again} --yes")
        raise UsageError("usage.flag", what, hint=hint, next=next)
    return ask(context, f"remove {_amount_text(plan)}? [y/N]") in ("y", "yes")


def _criteria_flags(context: CommandContext, flags: GcFlags) -> str:
    """Return the typed flags of the criteria, quoted for a shell."""
    given = {"--keep": flags.keep, "--older-than": flags.older_than, "--outcome": flags.outcome}
    typed = (f" {name} {quote(str(value))}" for name, value in given.items() if value is not None)
    return context.again + "".join(typed) + " --expired" * flags.expired


def _amount_text(plan: gc.RemovalPlan) -> str:
    return f"{count_of(len(plan.rows), 'episode')} ({size(plan.bytes)})"


def _print_sweep(
    context: CommandContext, verb: str, removed: gc.RemovalPlan, *, dry_run: bool
) -> int:
    """Write the number of removed and kept episodes, and fill the envelope."""
    kept = {reason: removed.kept[reason] for reason in gc.KEEP_REASONS if removed.kept[reason]}
    context.own["removed"] = {
        "dry_run": dry_run,
        "episodes": [row.id for row in removed.rows],
        "bytes": removed.bytes,
        "kept": kept,
    }
    if verb and not context.json:
        rest = (
            f"; keeps {', '.join(f'{count} {reason}' for reason, count in kept.items())}"
            if kept
            else ""
        )
        context.screen.answer(f"{verb} {_amount_text(removed)}{rest}\n")
    return OK
