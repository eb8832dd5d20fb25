"""`resume ba_...`: continue a batch as it was begun (docs/reference/batch.md#resume)."""

from __future__ import annotations

from cogcli.cli.batch_run import perform_batch
from cogcli.cli.context import CommandContext
from cogcli.cli.options import Flags, wrong_flag, wrong_value
from cogcli.cli.run_skill import warn_of_distrust
from cogcli.scale.resume_batch import read_recorded_batch

_CHOICES = ("rerun", "skip", "fail")
_FOR_BATCHES = frozenset(("in_doubt", "shard", "progress"))


def resume_batch_command(context: CommandContext, text: str, flags: Flags) -> int:
    """Continue a batch, report its totals, and return the exit code."""
    given = {name: value for name, value in vars(flags).items() if value not in (None, False, [])}
    for name in given:
        if name not in _FOR_BATCHES:
            flag = f"--{name.replace('_', '-')}"
            raise wrong_flag(f"`{flag}` is for one run", "name a line: cogcli resume ba_.../LINE")
    words = given.get("in_doubt") or []
    if len(words) > 1 or any(word not in _CHOICES for word in words):
        raise wrong_value("`--in-doubt` of a batch is one word", expected=", ".join(_CHOICES))
    recorded = read_recorded_batch(
        context.settings, text, str(given.get("shard") or ""), words[0] if words else ""
    )
    warn_of_distrust(context, "skill", recorded.given.request.skill_id)
    return perform_batch(context, recorded.given, recorded.request)
