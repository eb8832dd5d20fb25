"""The words of `--shard`: a part and a number of parts, or what a scheduler says of its tasks
(docs/reference/batch.md#shards)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogcli.base.errors import UsageError
from cogcli.scale.batch_folder import Shard

MOST_PARTS: Final = 100_000
_EXPECTED: Final = f"I/N with I from 1 to N and N up to {MOST_PARTS}, auto, or auto/N"


def parse_shard(text: str, environ: Mapping[str, str]) -> Shard:
    """Return the shard that a text names. Raise UsageError."""
    first, slash, second = text.partition("/")
    if first != "auto":
        return _shard(text, _number(first) - 1, _number(second) if slash else 0)
    parts = _number(second) if slash else 0
    if "SLURM_ARRAY_TASK_ID" in environ:
        return _slurm_shard(text, environ, parts)
    if "JOB_COMPLETION_INDEX" in environ:
        return _kubernetes_shard(text, environ, parts)
    raise UsageError(
        "usage.value",
        f"`--shard {text}`: this is no task of a Slurm array or of an indexed Kubernetes job",
        expected="SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX in the environment",
        hint="name the part: --shard 1/4",
    )


def _slurm_shard(text: str, environ: Mapping[str, str], parts: int) -> Shard:
    """Return the shard of a task of an array, whose indices may begin anywhere and have a step."""
    first = _number(environ.get("SLURM_ARRAY_TASK_MIN", "0"))
    step = max(_number(environ.get("SLURM_ARRAY_TASK_STEP", "1")), 1)
    count = _number(environ.get("SLURM_ARRAY_TASK_COUNT", ""))
    place = (_number(environ["SLURM_ARRAY_TASK_ID"]) - first) // step
    return _shard(text, place, parts or max(count, 0))


def _kubernetes_shard(text: str, environ: Mapping[str, str], parts: int) -> Shard:
    """Return the shard of a pod of an indexed job. A pod does not know how many there are."""
    if not parts:
        hint = "give the completions of the job: --shard auto/8"
        raise UsageError("usage.value", f"`--shard {text}`: how many parts are there?", hint=hint)
    return _shard(text, _number(environ["JOB_COMPLETION_INDEX"]), parts)


def _number(text: str) -> int:
    """Return a whole number of at most 6 digits, otherwise -1."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else -1


def _shard(text: str, place: int, parts: int) -> Shard:
    if not (1 <= parts <= MOST_PARTS and 0 <= place < parts):
        found = (
            f"`--shard {text[:60]}`: part {place + 1} of {parts}" if "auto" in text else text[:60]
        )
        raise UsageError("usage.value", f"`--shard`: found `{found}`", expected=_EXPECTED)
    return Shard(place, parts)
