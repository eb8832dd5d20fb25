"""`explain CODE`: the meaning of a code, an example and a fix, without network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from cogcli.app.explain import page, pages
from cogcli.base.errors import OK, UsageError
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command, switch
from cogcli.report.styled_text import StyledLine


@command(
    examples=(
        ("cogcli explain ref.unwritten", "one code"),
        ("cogcli explain --list", "every code"),
        ("cogcli explain input.type --json", "for scripts"),
    )
)
def explain(
    context: CommandContext,
    code: Annotated[str | None, argument("[CODE]", "codes")] = None,
    *,
    list: Annotated[bool, switch("--list", help="every code")] = False,
) -> int:
    """Write the page of a code, or the list of all codes with their meanings."""
    if list:
        meanings = {code: meaning for code, (meaning, _, _) in pages().items()}
        context.own["explanation"] = meanings
        lines = _list_lines(meanings)
    elif code is not None:
        found = page(code)
        context.own["explanation"] = found
        lines = _page_lines(found)
    else:
        raise UsageError("usage.value", "`explain` needs a code", next=("cogcli explain --list",))
    context.answer(lines)
    return OK


def _list_lines(meanings: Mapping[str, str]) -> list[StyledLine]:
    """Return a line per code, sorted."""
    size = max(map(len, meanings))
    return [[(f"{code:<{size}}  ", ""), (meanings[code], "")] for code in sorted(meanings)]


def _page_lines(page: dict[str, object]) -> list[StyledLine]:
    """Return the lines of a page. On a terminal, a wrapped text continues below its own first column."""
    lines: list[StyledLine] = [
        [(str(page["code"]), "")],
        [],
        [("  ", ""), (str(page["means"]), "")],
        [],
        [("  example  ", ""), (str(page["example"]), "")],
        [("  cure     ", ""), (str(page["cure"]), "")],
    ]
    if page["exit_code"] is not None:
        retry = ", may be retried" if page["retryable"] else ""
        lines.append([("  exit     ", ""), (f"{page['exit_code']}{retry}", "")])
    return lines
