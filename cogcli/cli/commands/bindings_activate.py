"""`bindings activate CAP BINDING`: choose a binding for this host, and print the file that records
the choice.
"""

from __future__ import annotations

from typing import Annotated

from cogcli.app.inventory.activation import activate
from cogcli.app.registry import untrusted_warning
from cogcli.base.errors import OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command


@command(
    examples=(
        (
            "cogcli bindings activate web.page.extract python_web_page_extract",
            "this one from now on",
        ),
        ("cogcli bindings explain text.keyword.extract", "what can be chosen?"),
        ("cogcli bindings activate web.page.extract python_web_page_extract --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def activate_binding(
    context: CommandContext,
    capability: Annotated[str, argument("CAP", "capabilities")],
    binding: Annotated[str, argument("BINDING", "bindings")],
) -> int:
    """Write `active_bindings.json` if all checks pass and the choice changes it."""
    done = activate(context.settings, capability, binding)
    context.own["file"] = done.file
    context.own["explanation"] = {
        "capability_id": done.capability_id,
        "binding_id": done.binding_id,
        "before": done.before,
        "written": done.written,
    }
    context.answer(visible(done.file) + "\n")
    before = f", before `{done.before}`" if done.before and done.before != done.binding_id else ""
    text = f"`{done.capability_id}` is called through `{done.binding_id}`{before}"
    if not done.written:
        text = f"`{done.binding_id}` was active already"
    context.note(visible(text + ("; it is a candidate" if done.candidate else "")))
    if (warning := untrusted_warning(context.settings, "capability", "")) is not None:
        context.warn(warning)
    return OK
