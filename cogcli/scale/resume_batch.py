"""The command that a batch was begun with, from its folder (docs/reference/batch.md#resume)."""

from __future__ import annotations

import os
from contextlib import suppress

from cogcli.app.settings import Settings
from cogcli.app.settings.owner_key import find_key
from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.batch_records import BatchHeader, ShardCommand
from cogcli.declarations.options import RunOptions
from cogcli.run.given_inputs import RequestedRun
from cogcli.run.prepare import RunRequest
from cogcli.scale.batch_folder import LINES, BatchFolder, Shard, find_batch
from cogcli.scale.batch_request import BatchRequest
from cogcli.scale.shard_words import parse_shard


class RecordedBatch(NamedTuple):
    """A recorded batch: the run of each line, and the flags."""

    given: RequestedRun
    request: BatchRequest


def read_recorded_batch(settings: Settings, text: str, shard: str, in_doubt: str) -> RecordedBatch:
    """Return the batch that matches a user's text. `shard` selects one of several shards. Raise UsageError, or
    UnusableEnvironment `batch.foreign` if this user did not write the batch.
    """
    key = find_key(settings.environ)
    batch_id = find_batch(settings.runs_dir, text)
    with BatchFolder.open(settings.runs_dir, batch_id) as folder:
        header = folder.read_header(key)
        chosen = _choose_shard(folder, shard, settings)
        command = folder.read_own_command(chosen, key)
        lines = os.fspath(folder.folder.path / LINES)
        path = lines if folder.folder.holds(LINES) else header.input.path
    given = RequestedRun(RunRequest(header.skill, {}, RunOptions(**header.options)), [], ())
    return RecordedBatch(given, _build_request(header, command, chosen, path, in_doubt))


def _choose_shard(folder: BatchFolder, text: str, settings: Settings) -> Shard:
    if text:
        return parse_shard(text, settings.environ)
    shards = folder.shards()
    if len(shards) == 1:
        return shards[0]
    names = ", ".join(shard.name for shard in shards) or "none"
    text = f"`{folder.batch_id}` has several shards: name one"
    raise UsageError("usage.value", text, expected="--shard I/N", found=names)


def _build_request(
    header: BatchHeader, command: ShardCommand, shard: Shard, path: str, in_doubt: str
) -> BatchRequest:
    retry = ""
    with suppress(KeyError, TypeError):
        retry = str((header.retry or {})["file"])
    return BatchRequest(
        input=path,
        output=command.output,
        name=header.name,
        jobs=command.jobs,
        executor=command.executor,
        shard=shard,
        order=command.order,
        keep=command.keep,
        invalid=header.invalid,
        in_doubt=in_doubt,
        rates=command.rates,
        retry_failed=retry,
        batch_id=header.batch_id,
    )
