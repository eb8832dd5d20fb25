"""`gc`: remove episodes, never a running, waiting or pinned one (docs/reference/command-line.md#views)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.app import gc
from cogcli.core.errors import OK, UsageError
from cogcli.report.humanize import count_of, size

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def execute(context: CommandContext) -> int:
    """Pin, unpin, or remove the episodes that fit all criteria."""
    given = context.arguments
    if given.given("--pin") or given.given("--unpin"):
        return _pins(context)
    wanted = gc.parse_criteria(
        context.settings,
        keep=given.integer("--keep", 0) if given.given("--keep") else None,
        older_than=given.text("--older-than"),
        outcome=given.text("--outcome"),
    )
    planned = gc.plan_sweep(context.settings, wanted)
    if given.on("--dry-run"):
        return _print_sweep(context, "would remove", planned, dry_run=True)
    if planned.rows and not given.on("--yes") and not _confirm(context, planned):
        context.screen.notify("nothing was removed\n")
        return _print_sweep(context, "", planned._replace(rows=[], bytes=0), dry_run=False)
    return _print_sweep(
        context, "removed", gc.remove_planned(context.settings, wanted, planned), dry_run=False
    )


def _pins(context: CommandContext) -> int:
    given = context.arguments
    if any(given.given(name) for name in ("--keep", "--older-than", "--outcome", "--dry-run", "--yes")):
        raise UsageError("usage.flag", "pins are set by themselves", hint="leave the criteria out")
    actions = {"pinned": gc.set_pin, "unpinned": gc.remove_pin}
    changed: dict[str, list[str]] = {"pinned": [], "unpinned": []}
    for word, name in (("pinned", "--pin"), ("unpinned", "--unpin")):
        for episode in given.many(name):
            id = actions[word](context.settings, episode)
            changed[word].append(id)
            if not context.json:
                context.screen.answer(f"{word} {id}\n")
    context.own["removed"] = {"dry_run": False, "episodes": [], "bytes": 0, "kept": {}, **changed}
    return OK


def _confirm(context: CommandContext, planned: gc.Sweep) -> bool:
    from cogcli.cli.prompt import can_ask, confirm

    if not can_ask(context):
        raise UsageError(
            "usage.flag",
            f"`gc` would remove {_amount(planned)}, and there is no terminal to ask on",
            hint="--yes says so in advance; --dry-run only tells",
            next=(
                f"cogcli gc{_criteria_flags(context)} --dry-run",
                f"cogcli gc{_criteria_flags(context)} --yes",
            ),
        )
    return confirm(context, f"remove {_amount(planned)}?")


def _criteria_flags(context: CommandContext) -> str:
    """The criteria as they were typed."""
    from shlex import quote

    given = context.arguments.values
    names = ("--keep", "--older-than", "--outcome")
    return context.again + "".join(f" {name} {quote(str(given[name]))}" for name in names if name in given)


def _amount(planned: gc.Sweep) -> str:
    return f"{count_of(len(planned.rows), 'episode')} ({size(planned.bytes)})"


def _print_sweep(context: CommandContext, verb: str, done: gc.Sweep, *, dry_run: bool) -> int:
    kept = {reason: done.kept[reason] for reason in gc.KEEP_REASONS if done.kept[reason]}
    context.own["removed"] = {
        "dry_run": dry_run,
        "episodes": [row.id for row in done.rows],
        "bytes": done.bytes,
        "kept": kept,
    }
    if verb and not context.json:
        rest = f"; keeps {', '.join(f'{count} {reason}' for reason, count in kept.items())}" if kept else ""
        context.screen.answer(f"{verb} {_amount(done)}{rest}\n")
    return OK
