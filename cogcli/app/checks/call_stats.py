"""`registry stats`: the number of specs, and statistics of the calls in the runs directory
(docs/reference/command-line.md#registry-checks)."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Final

from cogcli.app import episodes
from cogcli.app.registry import open_registry
from cogcli.app.settings import Settings
from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.spec_types import NESTED
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History, history_of
from cogcli.episode.log_reader import iterate_events
from cogcli.episode.run_history import StepHistory

KINDS: Final = ("skills", "capabilities", "bindings", "services")


class _Calls(NamedTuple):
    """The calls of one capability: the milliseconds of each successful call, and the number of
    failures by error code."""

    times: list[int]
    failed: Counter[str]


def measure_calls(settings: Settings) -> Json:
    """Return the object of `registry stats`.

    `specs` counts the specs by kind and domain. `episodes` counts the readable and the unreadable
    episodes. `calls` lists for each capability its calls, its failures by code, and the median and
    95th percentile of milliseconds."""
    catalog = open_registry(settings).everything()
    ids = {kind: sorted(getattr(catalog, kind)) for kind in KINDS}
    specs: Json = {kind: {"total": len(own)} for kind, own in ids.items()}
    for kind in ("skills", "capabilities"):
        domains = Counter(id.partition(".")[0] for id in ids[kind])
        specs[kind]["domains"] = dict(sorted(domains.items()))
    calls: dict[str, _Calls] = {}
    read = unreadable = 0
    for row in episodes.store_of(settings).episode_rows():
        try:
            _add_calls(calls, history_of(iterate_events(row.directory)))
        except CogcliError:
            unreadable += 1
        else:
            read += 1
    rows = [_summarize_calls(id, found) for id, found in sorted(calls.items())]
    return {"specs": specs, "episodes": {"read": read, "unreadable": unreadable}, "calls": rows}


def _add_calls(calls: dict[str, _Calls], run: History) -> None:
    """Add the calls of every run in an episode to `calls`."""
    for view in run.runs.values():
        for step in view.steps.values():
            if not step.uses or not _is_call(step):
                continue
            one = calls.setdefault(step.uses, _Calls([], Counter()))
            if step.status == "done" and step.ms is not None:
                one.times.append(step.ms)
            elif step.status == "failed":
                one.failed[step.error.code if step.error else ""] += 1


def _is_call(step: StepHistory) -> bool:
    """Return whether a step called a capability itself, rather than reusing a result or running a nested
    skill."""
    return bool(step.attempts) and not step.reused and not (step.uses or "").startswith(NESTED)


def _summarize_calls(id: str, calls: _Calls) -> Json:
    """Return the statistics of one capability."""
    times = sorted(calls.times)
    return {
        "capability": id,
        "calls": len(times) + calls.failed.total(),
        "failed": calls.failed.total(),
        "codes": dict(sorted(calls.failed.items())),
        "median_ms": round(statistics.median(times), 1) if times else None,
        "p95_ms": times[min(len(times) - 1, len(times) * 95 // 100)] if times else None,
    }
