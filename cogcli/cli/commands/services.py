"""`services refresh ID`: compare a service with its lock or document; exit code 1 for changes without `--accept`."""

from __future__ import annotations

from typing import Annotated

from cogcli.app import services
from cogcli.app.services import RefreshResult
from cogcli.base.errors import NO, OK
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import SAFETY, argument, command, switch
from cogcli.declarations.value_types import Json
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import StyledLine

_MARKS = {"added": "+", "removed": "-", "changed": "~"}


@command(
    examples=(
        ("cogcli services refresh clock", "what is different"),
        ("cogcli services refresh clock --accept", "agree to it"),
        ("cogcli services refresh clock --json | jq .services", "for scripts"),
    ),
    exits=(0, 1, 2, 3, 4, 6),
)
def refresh(
    context: CommandContext,
    service: Annotated[str, argument("ID", "services")],
    *,
    accept: Annotated[
        bool,
        switch(
            "--accept",
            help="accept the offer: write cogcli.lock.json, or the document",
            panel=SAFETY,
        ),
    ] = False,
) -> int:
    """Display the differences; with `--accept` write the lock or the document."""
    found = services.refresh(context.settings, service, accept=accept)
    context.own["services"] = [service_object(found)]
    context.answer(change_lines(found))
    if not context.json:
        context.note(visible(_refresh_summary(found)))
    return NO if found.differences and not found.accepted else OK


def service_object(result: RefreshResult) -> Json:
    """Build the `service` member of the envelope. The file is under `lock` for MCP, otherwise under `document`."""
    file = {"lock": result.file} if result.noun == "tool" else {"document": result.file}
    return {
        "id": result.service,
        "locked": result.known,
        "accepted": result.accepted,
        **file,
        "verdict": result.verdict,
        f"{result.noun}s": list(result.names),
        "differences": [
            {
                result.noun: d.name,
                "change": d.change,
                "fields": list(d.fields),
                "breaking": d.breaking,
            }
            for d in result.differences
        ],
    }


def change_lines(result: RefreshResult) -> list[StyledLine]:
    """Return a line per change: sign, name, changed fields, and whether it breaks calls."""
    lines: list[StyledLine] = []
    for d in result.differences:
        columns = [f"{_MARKS[d.change]} {visible(d.name)}", *map(visible, d.fields)]
        if result.noun != "tool" and d.change != "added":
            columns.append("(breaking)" if d.breaking else "(compatible)")
        lines.append([("  ".join(columns), "")])
    return lines


def _refresh_summary(result: RefreshResult) -> str:
    offered = count_of(len(result.names), result.noun)
    accept = f"accept: cogcli services refresh {result.service} --accept"
    if result.noun == "tool":
        accept = accept.replace("accept:", "accept them:")
        if result.accepted:
            return f"{result.service}: {offered} locked in {result.file}"
        if not result.known:
            return f"{result.service}: {offered}, not locked; {accept}"
        if not result.differences:
            return f"{result.service}: {offered}, as locked in {result.file}"
    elif not result.differences:
        return f"{result.service}: {offered}, as in {result.file}"
    elif result.accepted:
        return f"{result.service}: {offered} written to {result.file}"
    changes = count_of(len(result.differences), "difference")
    verdict = "" if result.noun == "tool" else f", {result.verdict}"
    return f"{result.service}: {changes}{verdict}; {accept}"
