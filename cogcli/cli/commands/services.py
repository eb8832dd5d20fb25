"""`services refresh ID`: a server's tools against those agreed to; 1 if they differ and are not accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogcli.core.display import visible
from cogcli.core.errors import NO, OK
from cogcli.report.words import counted

if TYPE_CHECKING:
    from cogcli.app.services import Refreshed
    from cogcli.cli.context import Context

_MARKS = {"added": "+", "removed": "-", "changed": "~"}


def execute(context: Context) -> int:
    """Show the differences; with `--accept` write the lock."""
    from cogcli.app.services import refresh

    found = refresh(context.settings, context.arguments.words[0], accept=context.arguments.on("--accept"))
    context.own["services"] = [
        {
            "id": found.service,
            "locked": found.locked,
            "accepted": found.accepted,
            "lock": found.lock,
            "tools": list(found.tools),
            "differences": [
                {"tool": d.tool, "change": d.change, "fields": list(d.fields)} for d in found.differences
            ],
        }
    ]
    if not context.json:
        context.screen.answer_lines(_lines(found))
        if not context.screen.quiet:
            context.screen.tell(f"{visible(_summary(found))}\n")
    return NO if found.differences and not found.accepted else OK


def _lines(found: Refreshed) -> list[list[tuple[str, str]]]:
    """One line per difference: a mark, the tool, and the fields of a changed one."""
    return [
        [("  ".join([f"{_MARKS[d.change]} {visible(d.tool)}", *d.fields]), "")] for d in found.differences
    ]


def _summary(found: Refreshed) -> str:
    tools = counted(len(found.tools), "tool")
    if found.accepted:
        return f"{found.service}: {tools} locked in {found.lock}"
    if not found.locked:
        return f"{found.service}: {tools}, not locked; accept them: cogcli services refresh {found.service} --accept"
    if not found.differences:
        return f"{found.service}: {tools}, as locked in {found.lock}"
    changes = counted(len(found.differences), "difference")
    return f"{found.service}: {changes}; accept them: cogcli services refresh {found.service} --accept"
