"""The causes of the value at a place of the state, or of its absence (docs/reference/command-line.md#views).

1. What is there is led back from its last writers over what they read to the inputs of the run.
2. What is not there is led back to the step that would have written it, to what kept that step from it, and to what the
   step that failed had read: the one its error names, or all.
3. A line continues while there is one cause; several are listed side by side, each followed in a line of its own, once.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from cogcli.base.merge import is_replacing
from cogcli.base.refs import READABLE
from cogcli.base.terminal_text import visible
from cogcli.episode.history import History
from cogcli.episode.run_history import RunHistory, StepHistory
from cogcli.report.lineage import Declared, Lineage, TargetFlow, TracedWrite, overlap
from cogcli.report.styled_text import ASCII, Glyphs, StyledLine

GIVEN: Final = ("inputs", "frame")
_MOST: Final = 200
"""Lines; those left out are counted."""


def known_places(flow: Lineage, found: list[TargetFlow]) -> list[str]:
    """Every place that can be asked about."""
    read = [name for step in flow.steps.values() for name in step.reads]
    return list(dict.fromkeys([*(target.name for target in found), *read]))


def causes(reference: str, fold: History, flow: Lineage, declared: Declared) -> list[list[str]]:
    """Chains of causes, the place in question first; each word a place, or a step with its status if it is not done."""
    return _CauseSearch(fold.root or RunHistory(""), flow, declared).chains(reference)


def why(chains: list[list[str]], glyphs: Glyphs) -> list[StyledLine]:
    """One line per chain."""
    arrow = " <- " if glyphs is ASCII else " ← "
    return [
        [(visible(chain[0]), "bold"), (visible("".join(arrow + word for word in chain[1:])), "")]
        for chain in chains
    ]


class _CauseSearch:
    """Places and steps that wait to be led on, and those that were."""

    def __init__(self, run: RunHistory, flow: Lineage, declared: Declared) -> None:
        self._run = run
        self._flow = flow
        self._declared = declared
        self._waiting: deque[tuple[str, int | None]] = deque()
        self._asked: set[str] = set()

    def chains(self, reference: str) -> list[list[str]]:
        self._ask(reference, None)
        found: list[list[str]] = []
        while self._waiting and len(found) < _MOST:
            place, before = self._waiting.popleft()
            chain = self._place(place, before)
            if len(chain) > 1 or not found:
                found.append(chain)
        if self._waiting:
            found.append([f"and {len(self._waiting)} more"])
        return found

    def _ask(self, place: str, before: int | None) -> None:
        if place not in self._asked:
            self._asked.add(place)
            self._waiting.append((place, before))

    def _place(self, place: str, before: int | None) -> list[str]:
        """The chain that begins at a place, as it was when the event `before` was written."""
        chain = [place]
        while True:
            writes = _last_writes(self._flow, place, before)
            steps = list(dict.fromkeys(write.step for write in writes))
            if not steps:
                return chain + ([] if place.partition(".")[0] in GIVEN else self._missing(place))
            chain.append(", ".join(steps))
            reads = list(dict.fromkeys(name for id in steps for name in self._flow.steps[id].reads))
            before = min(write.seq for write in writes)
            if not reads:
                return chain
            chain.append(", ".join(reads))
            fresh = [name for name in reads if name not in self._asked]
            if len(reads) > 1 or not fresh:
                for name in fresh:
                    self._ask(name, before)
                return chain
            self._asked.add(place := fresh[0])

    def _missing(self, place: str) -> list[str]:
        """From the step that would have written a place to what kept it from that; of a loop's own name the loop."""
        if re.split(r"[.\[]", place)[0] not in READABLE and (readers := self._flow.readers(place)):
            return [f"the loop of {', '.join(readers)}"]
        named = (
            id
            for id, names in self._declared.writes.items()
            if any(overlap(place, n) for n in names)
        )
        step = next((self._run.steps[id] for id in named if id in self._run.steps), None)
        if step is None:
            return ["never written"]
        words = [_worded(step)]
        seen = {step.id}
        while (culprit := self._culprit(step)) is not None and culprit.id not in seen:
            step = culprit
            seen.add(step.id)
            words.append(_worded(step))
        return words + self._read_by(step) if step.status in ("failed", "vetoed") else words

    def _culprit(self, step: StepHistory) -> StepHistory | None:
        if step.status not in ("skipped", "pending") or step.reason not in ("dependency", ""):
            return None
        before = [self._run.steps[id] for id in step.depends_on if id in self._run.steps]
        return next((one for one in before if one.status != "done"), None)

    def _read_by(self, step: StepHistory) -> list[str]:
        """What a step that failed had read: what its error names, with who wrote that, else all."""
        reads = self._flow.steps[step.id].reads if step.id in self._flow.steps else step.reads
        message = step.error.message if step.error else ""
        words = re.split(r"[^\w-]+", message)  # `entities[0].vat` names `entities`
        named = [name for name in reads if name in message or name.rpartition(".")[2] in words]
        shown = named if len(named) == 1 else reads
        writers = dict.fromkeys(
            w.step for name in shown for w in _last_writes(self._flow, name, None)
        )
        return [", ".join(shown), *([", ".join(writers)] if writers else [])] if shown else []


def _worded(step: StepHistory) -> str:
    return step.id if step.status == "done" else f"{step.id} ({step.status})"


def _last_writes(flow: Lineage, place: str, before: int | None) -> list[TracedWrite]:
    """The writes that made a place what it was: the last that replaced all of it, and those after it."""
    found: list[TracedWrite] = []
    for write in reversed(flow.writes):
        if (before is None or write.seq < before) and overlap(place, write.target):
            found.insert(0, write)
            if is_replacing(write.strategy) and len(write.target) <= len(place):
                break
    return found
