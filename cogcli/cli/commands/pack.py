"""`pack check`, `pack hash`: is a pack right as a whole, and which one is it? (docs/reference/pack.md#check)."""

from __future__ import annotations

from typing import Annotated

from cogcli.app.packs import check_pack_file, find_pack
from cogcli.cli.code_frame import Sources
from cogcli.cli.context import CommandContext
from cogcli.cli.options import argument, command
from cogcli.cli.render_error import problem_lines
from cogcli.core.errors import NO, OK
from cogcli.core.terminal_text import visible
from cogcli.report.check_report import problems_summary
from cogcli.report.styled_text import StyledLine

PackName = Annotated[str, argument("ID@VERSION|FILE", "packs")]


@command(
    examples=(
        ("cogcli pack check support-desk@4.0.0", "references, rules, contradictions"),
        ("cogcli pack check packs/support-desk/4.0.0.yaml", "by its file"),
        ("cogcli pack check support-desk@4.0.0 --json", "for scripts"),
    ),
    exits=(0, 1, 2, 3),
)
def check(context: CommandContext, pack: PackName) -> int:
    """Check a pack as a whole."""
    checked = check_pack_file(context.settings, pack)
    context.own["problems"] = [problem.to_payload() for problem in checked.problems]
    sources, width = Sources(context.base, {}), context.screen.out.width
    lines: list[StyledLine] = []
    for problem in checked.problems:
        lines += [*problem_lines(problem, width=width, as_error=False, sources=sources), [("", "")]]
    context.answer([*lines, [(problems_summary(checked.problems), "")]])
    if checked.errors:
        first = next(problem for problem in checked.problems if problem.severity == "E")
        context.fail(first.to_payload())
    return NO if checked.errors else OK


@command(
    examples=(
        ("cogcli pack hash support-desk@4.0.0", "the reference that names exactly this pack"),
        ("cogcli pack hash packs/support-desk/4.0.0.yaml", "by its file"),
        ("cogcli pack hash support-desk@4.0.0 --json", "for scripts"),
    ),
    exits=(0, 2, 3),
)
def hash_of(context: CommandContext, pack: PackName) -> int:
    """Print a pack's reference with its hash."""
    found = find_pack(context.settings, pack).pack
    context.own["pack"] = {"pack_id": found.pack_id, "pack_version": found.version, "hash": found.hash}
    context.answer(visible(found.ref) + "\n")
    return OK
