"""What a Dask worker runs for a batch: its admission, then lines. Arguments and results are bytes of JSON.

1. A worker decides about trust, secrets and permissions by itself, from its own environment and settings.
2. It keeps one runner for each batch and thread. A restarted worker has none, and must be admitted again.
3. Python imports a module once. So a worker that lives longer than a source is refused.
4. A line of a batch whose files it does not share stays here until the batch has its episode (`apart`).
5. Every error becomes an answer: an exception of a task would be pickled.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson

from cogcli.app.limits import find_ledger_id
from cogcli.base.errors import CogcliError, InternalError
from cogcli.base.problems import ProblemsFound
from cogcli.declarations.value_types import Json
from cogcli.scale.batch_folder import batches_dir
from cogcli.scale.cluster.apart import ReturnedLine, UnsharedLines, remove_copies, run_apart
from cogcli.scale.cluster.facts import (
    Versions,
    WorkerFacts,
    compare_facts,
    compare_versions,
    find_facts,
    find_identity,
    find_versions,
)
from cogcli.scale.cluster.groups import LONGEST
from cogcli.scale.cluster.meeting import RendezvousFile, sees_locked_file
from cogcli.scale.frames import completion_to_frame, error_to_frame, task_from_frame
from cogcli.scale.identity import LineTask
from cogcli.scale.line_runner import LineRunner
from cogcli.scale.worker import batch_from_frame, open_runner, settings_from_frame

MOVED: Final = "moved"
"""The kind of an answer of another worker than the one that a line was sent to."""
UNKNOWN: Final = "unknown"
"""The kind of an answer of a worker that was not admitted since it started."""


class _OpenBatch(threading.local):
    """The runners of this thread, by the nonce of their client."""

    def __init__(self) -> None:
        self.runners: dict[str, LineRunner] = {}


_opened: Final = _OpenBatch()
_admitted: Final[dict[str, Json]] = {}
"""The first frames of the admitted clients, by nonce."""
_lock: Final = threading.Lock()
"""Held while a client is admitted, and while a task looks whether its client is."""
_apart: Final = UnsharedLines()
_meetings: Final[dict[str, RendezvousFile]] = {}
_MOST_BATCHES: Final = 64
"""Batches that are kept. A batch whose client was killed is never closed."""
_sources: Final[dict[str, str]] = {}
"""The digest of each module of a service, from before this process imported it."""


def admit(data: bytes) -> bytes:
    """Admit a client if this worker matches its batch. Return the differences, the identifiers of
    the worker's user, and a nonce.

    The nonce is that of a locked file that the worker made in the batch folder. It is empty if the worker does not see
    the client's file.
    """
    first: Json = orjson.loads(data)
    try:
        settings = settings_from_frame(first)
        differences = _find_differences(first)
        answer: Json = {
            "differences": differences,
            "nonce": "",
            "identity": list(find_identity(settings, first["nonce"])),
            "worker": _find_own_id(),
        }
        if not differences:
            answer["nonce"] = _mark_shared_folder(
                first, os.path.join(batches_dir(settings.runs_dir), first["batch"])
            )
            _record_admission(first)
    except ProblemsFound as error:
        answer = {"differences": [f"{each.code}: {each.message}" for each in error.problems[:5]]}
    except CogcliError as error:
        answer = {"differences": [f"{error.code}: {error.message}"]}
    except Exception as error:
        answer = {"differences": [f"{type(error).__name__}: {error}"]}
    return orjson.dumps(answer)


def _find_own_id() -> str:
    """Return the id of this worker, which no other process ever has, unlike its name and its address."""
    from distributed import get_worker

    return str(get_worker().id)


def _record_admission(first: Json) -> None:
    """Record an admitted client. An earlier client of the same part of the batch is gone, so its tasks may begin no
    more lines.
    """
    same = (first["batch"], first["part"])
    with _lock:
        for nonce, other in list(_admitted.items()):
            if (other["batch"], other["part"]) == same:
                del _admitted[nonce]
        _admitted[first["nonce"]] = first
        old = list(_admitted)[:-_MOST_BATCHES]
        for nonce in old:
            del _admitted[nonce]
    for nonce in old:
        end_meeting(nonce)


def _find_differences(first: Json) -> list[str]:
    if differences := compare_versions(Versions(*first["versions"]), find_versions()):
        return differences
    batch = batch_from_frame(first)
    if first["ledger"] and find_ledger_id(batch.settings, batch.catalog) != first["ledger"]:
        return ["it does not share the counters of the pack's limits"]
    facts = find_facts(batch.prepare())
    return [*compare_facts(WorkerFacts(*first["facts"]), facts), *_find_stale_modules(facts)]


def _find_stale_modules(facts: WorkerFacts) -> Iterator[str]:
    """Yield a text for each module that this process imported before its source was changed."""
    for module, digest in facts.modules.items():
        if module not in sys.modules:
            _sources[module] = digest
        elif _sources.setdefault(module, digest) != digest:
            yield f"module {module} was changed after this worker imported it: start the worker again"


def _mark_shared_folder(first: Json, folder: str) -> str:
    """Return the nonce of this worker's file; empty if the folder of the batch is not shared."""
    if not sees_locked_file(folder, first["nonce"]):
        return ""
    nonce = os.urandom(16).hex()
    try:
        _meetings[first["nonce"]] = RendezvousFile(folder, nonce)
    except OSError:
        return ""
    return nonce


def run_lines(nonce: str, data: bytes) -> bytes:
    """Run lines of an admitted batch in order. Return their completions as frames, with their duration in seconds.
    Lines that did not begin in time have no frame.
    """
    work: Json = orjson.loads(data)
    frames: list[Json] = []
    begin = time.monotonic()
    seconds = 0.0
    for frame in work["lines"]:
        frames.append(_run_line_as_frame(nonce, task_from_frame(frame), work))
        seconds = time.monotonic() - begin
        if seconds > LONGEST or frames[-1]["kind"] == UNKNOWN:
            break
    return orjson.dumps({"frames": frames, "seconds": seconds})


def _run_line_as_frame(nonce: str, task: LineTask, work: Json) -> Json:
    """Run a line, and return its completion or its error as a frame."""
    try:
        return _run_apart(nonce, task, work) if work["worker"] else _run_line(nonce, task)
    except CogcliError as error:
        return error_to_frame(error)
    except Exception as error:
        text = f"a worker failed: {type(error).__name__}: {error}"
        return error_to_frame(InternalError("internal", text))


def _run_line(nonce: str, task: LineTask) -> Json:
    """Run a line in the runs directory of the batch."""
    first = _admitted.get(nonce)
    if first is None:
        return {"kind": UNKNOWN}
    return completion_to_frame(_find_runner(nonce, first).run(task))


def _run_apart(nonce: str, task: LineTask, work: Json) -> Json:
    """Run a line in the runs directory of this worker, unless the line was sent to another one."""
    if _find_own_id() != work["worker"]:
        return {"kind": MOVED}
    returned = [ReturnedLine(*each) for each in work["returned"]]
    with _lock:
        first = _admitted.get(nonce)
        if first is None:
            return {"kind": UNKNOWN}
        runner = _find_runner(
            nonce, {**first, "archives": False}
        )  # an episode travels from its folder
        directory = runner.directory_of(task)
        _apart.give(first["batch"], returned)
        refused = _apart.begin(first["batch"], task, directory.name)
    remove_copies(directory.parent, returned)
    if refused is not None:
        return refused
    try:
        return run_apart(runner, task, work["batch"])
    finally:
        with _lock:
            _apart.end(directory.name)


def _find_runner(nonce: str, first: Json) -> LineRunner:
    """Return the runner of this thread for a batch."""
    runner = _opened.runners.get(nonce)
    if runner is None:
        _opened.runners.clear()
        runner = _opened.runners[nonce] = open_runner(first)
    return runner


def end_stay(nonce: str, data: bytes) -> None:
    """Forget a batch, and remove the episodes that the batch has received."""
    returned = [ReturnedLine(*each) for each in orjson.loads(data)]
    with _lock:
        first = _admitted.pop(nonce, None)
        if first is None:
            return
        _apart.give(first["batch"], returned)
    remove_copies(Path(settings_from_frame(first).runs_dir), returned)


def end_meeting(nonce: str) -> None:
    """Remove the file that this worker made for a client."""
    if (meeting := _meetings.pop(nonce, None)) is not None:
        meeting.close()
