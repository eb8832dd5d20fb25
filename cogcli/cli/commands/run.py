"""`run SKILL`: check a skill, run it, and write its outputs to stdout
(docs/reference/command-line.md#streams, docs/reference/command-line.md#flags,
docs/reference/command-line.md#inputs, docs/reference/command-line.md#views).
"""

from __future__ import annotations

from cogcli.cli.context import CommandContext
from cogcli.cli.options import Skill, command
from cogcli.cli.run_flags import RunFlags


@command(
    examples=(
        ("cogcli run text.summarize -p text=@notes.md", "one input from a file"),
        ("cogcli run text.summarize --input-file in.json | jq .", "all inputs from a file"),
        ("cogcli run text.summarize -p text=@notes.md --plan", "what would run?"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6, 70, 130, 143),
)
def run(context: CommandContext, skill: Skill, *, flags: RunFlags) -> int:
    """Run a skill, and return the exit code of the run."""
    from cogcli.cli.run_skill import (
        run_skill,
    )  # help and completion of its flags need nothing of a run

    return run_skill(context, skill, flags)
