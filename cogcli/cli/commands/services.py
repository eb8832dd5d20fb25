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
        context.note(visible(_summary(found)))
    return NO if found.differences and not found.accepted else OK


def service_object(found: RefreshResult) -> Json:
    """Build the `service` member of the envelope. The file is under `lock` for MCP, otherwise under `document`."""
    file = {"lock": found.file} if found.noun == "tool" else {"document": found.file}
    return {
        "id": found.service,
        "locked": found.known,
        "accepted": found.accepted,
        **file,
        "verdict": found.verdict,
        f"{found.noun}s": list(found.names),
        "differences": [
            {
                found.noun: d.name,
                "change": d.change,
                "fields": list(d.fields),
                "breaking": d.breaking,
            }
            for d in found.differences
        ],
    }


def change_lines(found: RefreshResult) -> list[StyledLine]:
    """Return a line per change: sign, name, changed fields, and whether it breaks calls."""
    lines: list[StyledLine] = []
    for d in found.differences:
        words = [f"{_MARKS[d.change]} {visible(d.name)}", *map(visible, d.fields)]
        if found.noun != "tool" and d.change != "added":
            words.append("(breaking)" if d.breaking else "(compatible)")
        lines.append([("  ".join(words), "")])
    return lines


def _summary(found: RefreshResult) -> str:
    offered = count_of(len(found.names), found.noun)
    accept = f"accept: cogcli services refresh {found.service} --accept"
    if found.noun == "tool":
        accept = accept.replace("accept:", "accept them:")
        if found.accepted:
            return f"{found.service}: {offered} locked in {found.file}"
        if not found.known:
            return f"{found.service}: {offered}, not locked; {accept}"
        if not found.differences:
            return f"{found.service}: {offered}, as locked in {found.file}"
    elif not found.differences:
        return f"{found.service}: {offered}, as in {found.file}"
    elif found.accepted:
        return f"{found.service}: {offered} written to {found.file}"
    changes = count_of(len(found.differences), "difference")
    verdict = "" if found.noun == "tool" else f", {found.verdict}"
    return f"{found.service}: {changes}{verdict}; {accept}"
