"""A worker process of a batch: `python -P -m cogcli.scale.worker`. It reads lines from its standard input and writes
their completions, as frames. It ends when its input does, after the line that it runs.

1. It decides about trust, permissions and specs by itself, from the same settings as the command that started it. The
   command sends flags, options and lines, never specs, secrets or trust.
2. Frames use descriptors of their own: what functions print to stdout is dropped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.canonical import digest_of
from cogcli.base.errors import CogcliError, InternalError, UnusableEnvironment
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.options import RunOptions
from cogcli.declarations.value_types import Json
from cogcli.run.prepare import PreparedRun, RunRequest, prepare_for_inputs
from cogcli.scale.frames import (
    completion_to_frame,
    error_to_frame,
    read_frames,
    task_from_frame,
    write_frame,
)
from cogcli.scale.identity import BatchKey
from cogcli.scale.line_runner import LineRunner
from cogcli.specs.catalog import Catalog
from cogcli.specs.spec_snapshot import document_of

READY = "ready"


def main() -> int:
    """Run lines until the input ends. Return the exit code of the process."""
    source, sink = _detach_pipes()
    frames = read_frames(source)
    try:
        try:
            _run_frames(frames, sink)
        except CogcliError as error:
            write_frame(sink, error_to_frame(error))
        except Exception as error:
            bug = InternalError("internal", f"a worker failed: {type(error).__name__}: {error}")
            write_frame(sink, error_to_frame(bug))
    except OSError:  # the batch is gone
        return 1
    return 0


def _detach_pipes() -> tuple[int, int]:
    """Return duplicates of stdin's and stdout's descriptors, and redirect both streams to the null device."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return source, sink


def _run_frames(frames: Iterator[Json], sink: int) -> None:
    """Run the lines of the frames. Raise CogcliError for an error that affects the whole batch."""
    first = next(frames, None)
    if first is None:
        return
    runner = open_runner(first)
    write_frame(sink, {"kind": READY})
    try:
        for frame in frames:
            write_frame(sink, completion_to_frame(runner.run(task_from_frame(frame))))
    finally:
        runner.close()


class WorkerBatch(NamedTuple):
    """The batch in a worker process, with the worker's settings and specs."""

    settings: Settings
    request: RunRequest
    catalog: Catalog

    def prepare(self) -> PreparedRun:
        """Return the run without inputs. Raise ProblemsFound."""
        return prepare_for_inputs(self.catalog, self.request, self.settings.environ)


def settings_from_frame(first: Json) -> Settings:
    """Return this process's settings for a batch."""
    return Settings(first["flags"], os.environ, base=first["base"])


def batch_from_frame(first: Json) -> WorkerBatch:
    """Return the batch that the first frame describes. Raise CogcliError."""
    settings = settings_from_frame(first)
    request = RunRequest(first["skill"], {}, RunOptions(**first["options"]))
    catalog = open_registry(settings).reach(request.skill_id, packs=request.pack_refs)
    return WorkerBatch(settings, request, catalog)


def open_runner(first: Json) -> LineRunner:
    """Return the line runner for the batch that the first frame describes. Raise CogcliError."""
    batch = batch_from_frame(first)
    if digest_of(document_of(batch.catalog)) != first["specs"]:
        raise UnusableEnvironment(
            "batch.worker-differs",
            "a worker reads other specs than the batch: they were changed",
            hint="run the command again: changed specs are another batch",
        )
    settings, prepared = batch.settings, batch.prepare()
    key = BatchKey(first["batch"], first["created_ms"])
    return LineRunner(
        settings,
        prepared,
        key,
        first["in_doubt"],
        counts_calls=first["counts_calls"],
        archives=first["archives"],
    )


if __name__ == "__main__":
    sys.exit(main())
