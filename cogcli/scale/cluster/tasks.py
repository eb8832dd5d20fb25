"""What a Dask worker runs for a batch: its admission, then lines. Arguments and results are bytes of JSON.

1. A worker decides about trust, secrets and permissions by itself, from its own environment and settings.
2. It keeps one runner for each batch and thread. A restarted worker has none, and must be admitted again.
3. Python imports a module once. So a worker that lives longer than a source is refused.
4. Every error becomes an answer: an exception of a task would be pickled.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Final

import orjson

from cogcli.base.errors import CogcliError, InternalError
from cogcli.base.problems import ProblemsFound
from cogcli.declarations.value_types import Json
from cogcli.scale.cluster.facts import (
    Versions,
    WorkerFacts,
    compare_facts,
    compare_versions,
    find_facts,
    find_versions,
)
from cogcli.scale.cluster.meeting import MeetingFile, sees_locked_file
from cogcli.scale.frames import completion_to_frame, error_to_frame, task_from_frame
from cogcli.scale.line_runner import LineRunner
from cogcli.scale.worker import open_runner, reach_batch

UNKNOWN: Final = "unknown"
"""The kind of an answer of a worker that was not admitted since it started."""


class _OpenBatch(threading.local):
    """The runners of this thread, by the nonce of their client."""

    def __init__(self) -> None:
        self.runners: dict[str, LineRunner] = {}


_opened: Final = _OpenBatch()
_admitted: Final[dict[str, Json]] = {}
"""The first frames of the admitted clients, by nonce."""
_meetings: Final[dict[str, MeetingFile]] = {}
_MOST_BATCHES: Final = 64
"""Batches that are kept. One whose client was killed never says goodbye."""
_sources: Final[dict[str, str]] = {}
"""The digest of each module of a service, from before this process imported it."""


def admit(data: bytes) -> bytes:
    """Compare this worker with a batch, and return either how it differs, or the nonce of a locked file that it made
    in the batch folder; empty if it does not see the client's.
    """
    first: Json = orjson.loads(data)
    try:
        differences = _find_differences(first)
        answer: Json = {"differences": differences, "nonce": ""}
        if not differences:
            answer["nonce"] = _meet(first)
            _admitted[first["nonce"]] = first
            _forget_old_batches()
    except ProblemsFound as error:
        answer = {"differences": [f"{each.code}: {each.message}" for each in error.problems[:5]]}
    except CogcliError as error:
        answer = {"differences": [f"{error.code}: {error.message}"]}
    except Exception as error:
        answer = {"differences": [f"{type(error).__name__}: {error}"]}
    return orjson.dumps(answer)


def _find_differences(first: Json) -> list[str]:
    if differences := compare_versions(Versions(*first["versions"]), find_versions()):
        return differences
    facts = find_facts(reach_batch(first).prepare())
    return [*compare_facts(WorkerFacts(*first["facts"]), facts), *_find_stale_modules(facts)]


def _find_stale_modules(facts: WorkerFacts) -> Iterator[str]:
    """Yield in words each module that this process imported before its source was changed."""
    for module, digest in facts.modules.items():
        if module not in sys.modules:
            _sources[module] = digest
        elif _sources.setdefault(module, digest) != digest:
            yield f"module {module} was changed after this worker imported it: start the worker again"


def _forget_old_batches() -> None:
    for nonce in list(_admitted)[:-_MOST_BATCHES]:
        del _admitted[nonce]
        end_meeting(nonce)


def _meet(first: Json) -> str:
    """Return the nonce of this worker's file; empty if the folder is not shared."""
    folder = first["folder"]
    if not sees_locked_file(folder, first["nonce"]):
        return ""
    nonce = os.urandom(16).hex()
    try:
        _meetings[first["nonce"]] = MeetingFile(folder, nonce)
    except OSError:
        return ""
    return nonce


def run_line(nonce: str, data: bytes) -> bytes:
    """Run a line of an admitted batch, and return its completion as a frame."""
    try:
        frame = _run(nonce, data)
    except CogcliError as error:
        frame = error_to_frame(error)
    except Exception as error:
        text = f"a worker failed: {type(error).__name__}: {error}"
        frame = error_to_frame(InternalError("internal", text))
    return orjson.dumps(frame)


def _run(nonce: str, data: bytes) -> Json:
    first = _admitted.get(nonce)
    if first is None:
        return {"kind": UNKNOWN}
    runner = _opened.runners.get(nonce)
    if runner is None:
        _opened.runners.clear()
        runner = _opened.runners[nonce] = open_runner(first)
    return completion_to_frame(runner.run(task_from_frame(orjson.loads(data))))


def end_meeting(nonce: str) -> None:
    """Remove the file that this worker made for a client."""
    if (meeting := _meetings.pop(nonce, None)) is not None:
        meeting.close()
