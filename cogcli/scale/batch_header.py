"""The header of the batch that a command names: a new one, or one that exists (docs/reference/batch.md#ids)."""

from __future__ import annotations

import os
import time
from typing import Final

from cogcli import __version__
from cogcli.app.settings import Settings
from cogcli.base.canonical import digest_of
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.declarations.batch_records import BatchHeader, BatchInput
from cogcli.declarations.options import OPTIONS
from cogcli.declarations.value_types import Json
from cogcli.episode.folder import disk_refusal
from cogcli.scale.batch_folder import HEADER, BatchFolder, batches_with_output, read_header
from cogcli.scale.batch_request import STDOUT, BatchRequest, PreparedBatch
from cogcli.scale.identity import batch_id_of
from cogcli.scale.output import PART
from cogcli.scale.spool import STDIN
from cogcli.scale.totals import Totals
from cogcli.specs.spec_snapshot import document_of

_WITHOUT_EFFECT: Final = ("trace_id", "max_workers", "durability")
"""Options that change no result: a batch is continued under other ones."""


def describe_batch(batch: PreparedBatch, request: BatchRequest) -> BatchHeader:
    """Return the header of the batch, with an empty id."""
    given = batch.prepared.request
    options = given.options.json
    return BatchHeader(
        schema_version="batch/1",
        batch_id="",
        created_ms=time.time_ns() // 1_000_000,
        name=request.name or request.output,
        generation=0,
        skill=given.skill_id,
        specs=digest_of(document_of(batch.prepared.catalog)),
        options={name: options[name] for name in OPTIONS if name in options},
        input=BatchInput(
            path=STDIN if request.input == STDIN else os.path.realpath(request.input),
            sha256=batch.digest.sha256,
            bytes=batch.digest.bytes,
            lines=batch.digest.lines,
        ),
        invalid="record" if request.invalid == "record" else "stop",
        retry=None if batch.retry is None else batch.retry.to_payload(),
        pins={"cogcli": __version__, "specs": dict(sorted(batch.prepared.catalog.pins.items()))},
        mac="",
    )


def _with_generation(header: BatchHeader, generation: int) -> BatchHeader:
    """Return the header with this generation number and the id that follows from it."""
    options = {name: value for name, value in header.options.items() if name not in _WITHOUT_EFFECT}
    identifying: Json = {
        "skill": header.skill,
        "specs": header.specs,
        "options": {**options, "invalid": header.invalid},
        "input": header.input.sha256,
        "name": header.name,
        "generation": generation,
        "retry": header.retry and header.retry["selection"],
    }
    return header.replace(batch_id=batch_id_of(identifying), generation=generation)


def find_generation(
    settings: Settings, header: BatchHeader, batch: PreparedBatch, request: BatchRequest, key: bytes
) -> BatchHeader:
    """Return the header of the batch's newest generation. With `--force`, return the next generation's header if the
    newest one is complete. Raise UsageError `batch.changed` if the batch to resume has another id.
    """
    runs_dir = settings.runs_dir
    if request.batch_id:
        return _require_same_batch(settings, header, request.batch_id, key)
    found = _with_generation(header, 0)
    if not _batch_exists(runs_dir, found):
        return found
    while _batch_exists(runs_dir, after := _with_generation(header, found.generation + 1)):
        found = after
    with BatchFolder.open(runs_dir, found.batch_id) as folder:
        folder.read_header(key)
        totals = Totals()
        for entry in folder.read_ledger(request.shard) if request.force else ():
            totals.apply(entry)
    is_complete = totals.done.count == batch.count_lines(request.shard)
    return after if request.force and is_complete else found


def _require_same_batch(
    settings: Settings, header: BatchHeader, batch_id: str, key: bytes
) -> BatchHeader:
    """Return the header with the generation of a batch. Raise UsageError `batch.changed` if it has another id."""
    with BatchFolder.open(settings.runs_dir, batch_id) as folder:
        before = folder.read_header(key)
    found = _with_generation(header, before.generation)
    if found.batch_id == batch_id:
        return found
    names = " and ".join(_find_differences(before, header))
    raise UsageError(
        "batch.changed",
        f"`{batch_id}` cannot be continued: {names} changed since",
        hint="put it back, or run the batch as another one: cogcli run SKILL --batch ... -o OTHER",
    )


def _batch_exists(runs_dir: str, header: BatchHeader) -> bool:
    """Return whether the batch of a header has a folder."""
    try:
        with BatchFolder.open(runs_dir, header.batch_id) as folder:
            return folder.folder.holds(HEADER)
    except UsageError:
        return False


def require_output(
    settings: Settings, header: BatchHeader, request: BatchRequest, key: bytes
) -> None:
    """Raise UsageError if the output or its unfinished part belongs to another batch. With `--force`, a file that no
    batch writes is replaced.
    """
    output = request.output
    if output == STDOUT or _wrote_output(settings, header, request, key):
        return
    has_part = os.path.lexists(output + PART)
    others = [id for id in batches_with_output(settings.runs_dir, output) if id != header.batch_id]
    if others and has_part:
        raise _changed_error(settings, others[-1], header, output)
    existing = [path for path in (output, output + PART) if os.path.lexists(path)]
    if existing and not request.force:
        shown = settings.display_path(existing[0])
        hint = "--force overwrites it; -o names another file"
        raise UsageError("output.exists", f"`{shown}` exists", hint=hint)
    if has_part:
        _remove_part(output + PART)


def _wrote_output(
    settings: Settings, header: BatchHeader, request: BatchRequest, key: bytes
) -> bool:
    """Return whether this batch's last run wrote to the output, according to a command that the user's own process
    recorded.
    """
    if not _batch_exists(settings.runs_dir, header):
        return False
    with BatchFolder.open(settings.runs_dir, header.batch_id) as folder:
        try:
            return folder.read_own_command(request.shard, key).output == request.output
        except UnusableEnvironment:
            return False


def _remove_part(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        raise disk_refusal(path, error) from error


def _changed_error(settings: Settings, other: str, header: BatchHeader, output: str) -> UsageError:
    """Return the error for an output that belongs to another, unfinished batch. The error lists the differences between
    both batches.
    """
    with BatchFolder.open(settings.runs_dir, other) as folder:
        names = _find_differences(read_header(folder.folder), header)
    shown = settings.display_path(output)
    return UsageError(
        "batch.changed",
        f"`{shown}` is the output of another batch that is not finished: {', '.join(names)} differs",
        hint=f"finish that one first, name another -o, or remove {shown}{PART}",
        next=(f"cogcli resume {other}",),
    )


def _find_differences(before: BatchHeader, header: BatchHeader) -> list[str]:
    """Return the differences between the headers of two batches, as phrases for a message."""
    pairs = {
        "the skill": (before.skill, header.skill),
        "the specs": (before.specs, header.specs),
        "the options": (before.options, header.options),
        "the input": (before.input.sha256, header.input.sha256),
        "the name": (before.name, header.name),
        "--invalid": (before.invalid, header.invalid),
        "--retry-failed": (before.retry, header.retry),
    }
    return [name for name, (old, new) in pairs.items() if old != new]
