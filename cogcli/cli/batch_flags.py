"""The flags of `run SKILL --batch` (docs/reference/batch.md#command).

The annotations are read, so they are values here and no text: this file has no `from __future__ import annotations`.
"""

from cogcli.cli.options import (
    EXECUTION,
    INPUT,
    OUTPUT,
    SAFETY,
    Flags,
    choice,
    switch,
    text,
    wrong_flag,
)


class BatchFlags(Flags):
    """The flags of a batch. They need `--batch`."""

    batch: str | None = text(
        "--batch", "FILE|-", "run once per line, an input object each (.jsonl)", INPUT
    )
    batch_name: str | None = text(
        "--batch-name", "NAME", "what the batch is continued under", INPUT, default="that of -o"
    )
    retry_failed: str | None = text(
        "--retry-failed", "FILE", "only lines that this result file has no good result for", INPUT
    )
    shard: str | None = text(
        "--shard", "I/N|auto", "one of N parts of the lines (needs --batch-name)", INPUT
    )
    invalid: str | None = choice(
        "--invalid",
        "WORD",
        ("stop", "record"),
        "lines that are no valid input: stop (run nothing) or record (as failed)",
        INPUT,
        default="stop",
    )
    jobs: str | None = text(
        "--jobs", "N|auto", "worker processes; 1: run the lines in this one", EXECUTION, default="1"
    )
    executor: str | None = text(
        "--executor",
        "local|dask[:ADDR]",
        "where lines run (extra scale)",
        EXECUTION,
        default="local",
    )
    max_failures: str | None = text(
        "--max-failures", "N|P%", "stop sending after more failed lines than this", EXECUTION
    )
    rate: list[str] = text(
        "--rate", "SERVICE=N/s", "call a service at most N times a second (repeatable)", EXECUTION
    )
    in_doubt: str | None = choice(
        "--in-doubt",
        "WORD",
        ("rerun", "skip", "fail"),
        "settle effects that may have happened, in all lines",
        SAFETY,
        default="ask",
    )
    o: str | None = text("-o", "FILE", "the results of a batch", OUTPUT, default="stdout")
    keep: str | None = choice(
        "--keep",
        "WORD",
        ("auto", "folders", "archived"),
        "how episodes are kept: archived above 1,000 lines (auto), or always one way",
        OUTPUT,
        default="auto",
    )
    order: str | None = choice(
        "--order", "WORD", ("input", "done"), "of the results", OUTPUT, default="input"
    )
    force: bool = switch("--force", help="overwrite -o; run a finished batch again", panel=OUTPUT)

    def require_batch(self) -> None:
        """Raise UsageError for a flag that was typed without `--batch`."""
        given = [name for name, value in vars(self).items() if value not in (None, False, [])]
        if given:
            names = " and ".join(map(_flag_name, given))
            hint = "cogcli run SKILL --batch in.jsonl -o out.jsonl"
            raise wrong_flag(f"{names}: needs `--batch`", hint)


def _flag_name(name: str) -> str:
    return f"`-{name}`" if len(name) == 1 else f"`--{name.replace('_', '-')}`"
