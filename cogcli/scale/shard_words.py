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
        return _build_shard(text, _parse_number(first) - 1, _parse_number(second) if slash else 0)
    parts = _parse_number(second) if slash else 0
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


_WHOLE_ARRAY: Final = {
    "SLURM_ARRAY_TASK_MIN": "0",
    "SLURM_ARRAY_TASK_STEP": "1",
    "SLURM_ARRAY_TASK_COUNT": "",
}
"""The values of the variables that an environment may lack."""


def _slurm_shard(text: str, environ: Mapping[str, str], parts: int) -> Shard:
    """Return the shard of a task in a Slurm array. The array's indices may begin at any number and have a step."""
    array = {**_WHOLE_ARRAY, **environ}
    first = _parse_number(array["SLURM_ARRAY_TASK_MIN"])
    step = max(_parse_number(array["SLURM_ARRAY_TASK_STEP"]), 1)
    count = _parse_number(array["SLURM_ARRAY_TASK_COUNT"])
    place = (_parse_number(array["SLURM_ARRAY_TASK_ID"]) - first) // step
    return _build_shard(text, place, parts or max(count, 0))


def _kubernetes_shard(text: str, environ: Mapping[str, str], parts: int) -> Shard:
    """Return the shard of a pod in an indexed job. The number of pods must be in the text, because a pod does not know
    it.
    """
    if not parts:
        hint = "give the completions of the job: --shard auto/8"
        raise UsageError("usage.value", f"`--shard {text}`: how many parts are there?", hint=hint)
    return _build_shard(text, _parse_number(environ["JOB_COMPLETION_INDEX"]), parts)


def _parse_number(text: str) -> int:
    """Return a whole number of at most 6 digits; -1 for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else -1


def _build_shard(text: str, place: int, parts: int) -> Shard:
    if not (1 <= parts <= MOST_PARTS and 0 <= place < parts):
        found = (
            f"`--shard {text[:60]}`: part {place + 1} of {parts}" if "auto" in text else text[:60]
        )
        raise UsageError("usage.value", f"`--shard`: found `{found}`", expected=_EXPECTED)
    return Shard(place, parts)
