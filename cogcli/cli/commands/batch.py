"""`batch merge`: one result file from those of shards, or of failed lines that ran again
(docs/reference/batch.md#merge).
"""

from __future__ import annotations

import os
from typing import Annotated

from cogcli.base.errors import OK, UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.context import CommandContext
from cogcli.cli.options import OUTPUT, argument, command, switch, text, wrong_flag
from cogcli.report.humanize import count_of
from cogcli.scale.merge import merge_results, read_result_file


@command(
    examples=(
        ("cogcli batch merge out-1.jsonl out-2.jsonl -o all.jsonl", "the results of two shards"),
        ("cogcli batch merge out.jsonl again.jsonl -o all.jsonl", "later rows win"),
        ("cogcli batch merge out-*.jsonl -o all.jsonl --json", "for scripts"),
    ),
    exits=(0, 2, 3),
    maximum=65_536,
)
def merge(
    context: CommandContext,
    files: Annotated[list[str], argument("FILE")],
    *,
    o: Annotated[str | None, text("-o", "FILE", "the merged results", OUTPUT)] = None,
    force: Annotated[
        bool, switch("--force", help="overwrite the file of -o", panel=OUTPUT)
    ] = False,
) -> int:
    """Merge result files by line."""
    if o is None:
        raise wrong_flag("`batch merge` needs `-o FILE`", "name the file for the merged results")
    output = context.settings.require_inside(os.path.abspath(o))
    sources = [context.settings.require_inside(os.path.abspath(file)) for file in files]
    if output in sources:
        raise wrong_flag(f"`-o {o}` is one of the merged files", "name another file")
    if os.path.lexists(output) and not force:
        hint = "--force overwrites it; -o names another file"
        raise UsageError("output.exists", f"`{o}` exists", hint=hint)
    merged = merge_results([read_result_file(source) for source in sources], output)
    shown = context.settings.display_path(output)
    context.own["batch"] = {
        "lines": merged.lines,
        "by_status": merged.by_status,
        "by_code": merged.by_code,
        "output": shown,
    }
    context.answer(f"{visible(shown)}\n")
    counts = ", ".join(f"{each['count']} {name}" for name, each in merged.by_status.items())
    context.note(f"{count_of(merged.lines, 'line')}: {counts}")
    return OK
