"""The causes of a value in the state, or of its absence (docs/reference/command-line.md#views).

1. A value is traced from its last writers through their reads to the inputs of the run.
2. A missing value is traced to the step that would have written it, and to the step that prevented
   the write. The chain of a failed step ends with the read that its error names, or with all its
   reads.
3. A line continues as long as there is one cause. Several causes are listed next to each other.
   Each of them starts one line of its own."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from cogcli.base.merge import replaces_present
from cogcli.base.refs import READABLE
from cogcli.base.terminal_text import visible
from cogcli.episode.history import History
from cogcli.episode.run_history import RunHistory, StepHistory
from cogcli.report.lineage import DeclaredPlaces, Lineage, TargetFlow, TracedWrite, overlap
from cogcli.report.styled_text import ASCII, Glyphs, StyledLine

GIVEN: Final = ("inputs", "frame")
_MAX_FOUND: Final = 200
"""The largest number of lines. Further ones are counted."""


def explainable_places(flow: Lineage, flows: list[TargetFlow]) -> list[str]:
    """Return every place that `why` can explain."""
    read = [name for step in flow.steps.values() for name in step.reads]
    return list(dict.fromkeys([*(target.name for target in flows), *read]))


def find_cause_chains(
    reference: str, history: History, flow: Lineage, declared_places: DeclaredPlaces
) -> list[list[str]]:
    """Return the chains of causes that start at a reference.

    Each element names places in the state, or steps; a step that is not done has its status. If
    there are too many chains, the last one counts the omitted ones.
    """
    return _CauseSearch(history.root or RunHistory(""), flow, declared_places).chains(reference)


def why_lines(chains: list[list[str]], glyphs: Glyphs) -> list[StyledLine]:
    """Return one line per chain."""
    arrow = " <- " if glyphs is ASCII else " ← "
    return [
        [(visible(chain[0]), "bold"), (visible("".join(arrow + word for word in chain[1:])), "")]
        for chain in chains
    ]


class _CauseSearch:
    """The search for causes. It has a queue of places to trace, and the set of places already
    queued."""

    def __init__(self, run: RunHistory, flow: Lineage, declared_places: DeclaredPlaces) -> None:
        self._run = run
        self._flow = flow
        self._declared = declared_places
        self._waiting: deque[tuple[str, int | None]] = deque()
        self._seen: set[str] = set()

    def chains(self, reference: str) -> list[list[str]]:
        self._enqueue_place(reference, None)
        found: list[list[str]] = []
        while self._waiting and len(found) < _MAX_FOUND:
            place, before = self._waiting.popleft()
            chain = self._trace_value(place, before)
            if len(chain) > 1 or not found:
                found.append(chain)
        if self._waiting:
            found.append([f"and {len(self._waiting)} more"])
        return found

    def _enqueue_place(self, place: str, before_seq: int | None) -> None:
        if place not in self._seen:
            self._seen.add(place)
            self._waiting.append((place, before_seq))

    def _trace_value(self, place: str, before_seq: int | None) -> list[str]:
        """Return the chain that starts at a place, as it was before the event number `before_seq`."""
        chain = [place]
        while True:
            writes = _find_last_writes(self._flow, place, before_seq)
            steps = list(dict.fromkeys(write.step for write in writes))
            if not steps:
                return chain + self._trace_source(place)
            chain.append(", ".join(steps))
            reads = list(dict.fromkeys(name for id in steps for name in self._flow.steps[id].reads))
            before_seq = min(write.seq for write in writes)
            if not reads:
                return chain
            chain.append(", ".join(reads))
            fresh = [name for name in reads if name not in self._seen]
            if len(reads) > 1 or not fresh:
                self._enqueue_all(fresh, before_seq)
                return chain
            place = fresh[0]
            self._seen.add(place)

    def _enqueue_all(self, places: list[str], before_seq: int | None) -> None:
        for place in places:
            self._enqueue_place(place, before_seq)

    def _trace_source(self, place: str) -> list[str]:
        """Return the chain of a place that no step wrote. It is empty for an input."""
        return [] if place.partition(".")[0] in GIVEN else self._trace_absence(place)

    def _trace_absence(self, place: str) -> list[str]:
        """Return the chain from the step that would have written a place to the step that prevented
        the write.

        The chain of a loop variable leads to its loop."""
        if re.split(r"[.\[]", place)[0] not in READABLE and (readers := self._flow.readers(place)):
            return [f"the loop of {', '.join(readers)}"]
        step = self._find_declared_writer(place)
        if step is None:
            return ["never written"]
        words = [_render_step(step)]
        seen = {step.id}
        while (culprit := self._find_blocking_step(step)) is not None and culprit.id not in seen:
            step = culprit
            seen.add(step.id)
            words.append(_render_step(step))
        has_failed = step.status in ("failed", "vetoed")
        return words + self._find_failed_reads(step) if has_failed else words

    def _find_declared_writer(self, place: str) -> StepHistory | None:
        """Return the first step of the run that declares a write to this place."""
        for id, names in self._declared.writes.items():
            if id in self._run.steps and any(overlap(place, name) for name in names):
                return self._run.steps[id]
        return None

    def _find_blocking_step(self, step: StepHistory) -> StepHistory | None:
        if step.status not in ("skipped", "pending") or step.reason not in ("dependency", ""):
            return None
        before = [self._run.steps[id] for id in step.depends_on if id in self._run.steps]
        return next((one for one in before if one.status != "done"), None)

    def _find_failed_reads(self, step: StepHistory) -> list[str]:
        """Return the reads of a failed step that its error names, with their writers, or all its reads."""
        reads = self._flow.steps[step.id].reads if step.id in self._flow.steps else step.reads
        message = step.error.message if step.error else ""
        words = re.split(r"[^\w-]+", message)  # `entities[0].vat` names `entities`
        named = [name for name in reads if name in message or name.rpartition(".")[2] in words]
        shown = named if len(named) == 1 else reads
        if not shown:
            return []
        writers = dict.fromkeys(
            w.step for name in shown for w in _find_last_writes(self._flow, name, None)
        )
        return [", ".join(shown), ", ".join(writers)] if writers else [", ".join(shown)]


def _render_step(step: StepHistory) -> str:
    return step.id if step.status == "done" else f"{step.id} ({step.status})"


def _find_last_writes(flow: Lineage, place: str, before_seq: int | None) -> list[TracedWrite]:
    """Return the writes that produced the value of a place, before the event number `before_seq` if
    given.

    These are the last write that replaced the value, and the ones after it.
    """
    writes: list[TracedWrite] = []
    for write in reversed(flow.writes):
        if (before_seq is None or write.seq < before_seq) and overlap(place, write.target):
            writes.insert(0, write)
            if replaces_present(write.strategy) and len(write.target) <= len(place):
                break
    return writes
