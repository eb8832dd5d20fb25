"""`run SKILL`: check a skill, run it, and write its outputs to stdout
(docs/reference/command-line.md#streams, docs/reference/command-line.md#flags,
docs/reference/command-line.md#inputs, docs/reference/command-line.md#views).
"""

from __future__ import annotations

from typing import Final

from cogcli.app.wings import WingFunction
from cogcli.cli.batch_flags import BatchFlags
from cogcli.cli.context import CommandContext
from cogcli.cli.options import Skill, command
from cogcli.cli.run_flags import RunFlags

_RUN_BATCH: Final = WingFunction("cogcli.cli.batch_run", "run_batch_command")
"""Most runs are no batch, and load nothing of it."""


@command(
    examples=(
        ("cogcli run text.summarize -p text=@notes.md", "one input from a file"),
        ("cogcli run text.summarize --input-file in.json | jq .", "all inputs from a file"),
        ("cogcli run text.summarize --batch in.jsonl -o out.jsonl", "one run per line"),
    ),
    exits=(0, 1, 2, 3, 4, 5, 6, 70, 130, 143),
)
def run(context: CommandContext, skill: Skill, *, flags: RunFlags, batch: BatchFlags) -> int:
    """Run a skill, or once per line of a batch, and return the exit code."""
    if batch.batch is not None:
        code: int = _RUN_BATCH(context, skill, flags, batch)
        return code
    batch.require_batch()
    from cogcli.cli.run_skill import (
        run_skill,
    )  # help and completion of its flags need nothing of a run

    return run_skill(context, skill, flags)
