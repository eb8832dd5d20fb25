"""A request for approval on a screen: the same rows everywhere (`report/approval_view.py`)."""

from __future__ import annotations

from collections.abc import Callable

from cogcli.cli.context import CommandContext
from cogcli.cli.prompt import terminal_safe
from cogcli.report.approval_view import ApprovalView
from cogcli.report.styled_text import StyledLine


def request_lines(
    context: CommandContext, view: ApprovalView, *, in_full: bool = False
) -> list[StyledLine]:
    """Return the lines of a request. Unless `in_full`, long texts that decide nothing are cut."""
    rows = view.rows(in_full=in_full)
    width = max(len(name) for name, _ in rows)
    lines: list[StyledLine] = []
    for name, text in rows:
        style = "bold" if name == "action" else ""
        for number, line in enumerate(text.split("\n")):
            head = "" if number else name
            lines.append([(f"  {head:<{width}}  ", "dim"), (terminal_safe(context, line), style)])
    return lines


def write_request(
    context: CommandContext,
    view: ApprovalView,
    write: Callable[[list[StyledLine]], None],
    *,
    in_full: bool = False,
) -> None:
    """Write the lines of a request with `write`."""
    write(request_lines(context, view, in_full=in_full))
