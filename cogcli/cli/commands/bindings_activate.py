"""`bindings activate CAP BINDING`: choose a binding for this host; the answer is the file that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.errors import OK
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from cogcli.cli.context import CommandContext


def execute(context: CommandContext) -> int:
    """Write `active_bindings.json`, if all checks pass and it says otherwise now."""
    from cogcli.app.inventory.activation import activate

    capability, binding = context.arguments.words
    done = activate(context.settings, capability, binding)
    context.own["file"] = done.file
    context.own["explanation"] = {
        "capability_id": done.capability_id,
        "binding_id": done.binding_id,
        "before": done.before,
        "written": done.written,
    }
    if not context.json:
        context.screen.answer(visible(done.file) + "\n")
    if not context.screen.quiet:
        before = f", before `{done.before}`" if done.before and done.before != done.binding_id else ""
        told = f"`{done.capability_id}` is called through `{done.binding_id}`{before}"
        if not done.written:
            told = f"`{done.binding_id}` was active already"
        context.screen.notify(visible(told + ("; it is a candidate" if done.candidate else "")) + "\n")
    return OK
