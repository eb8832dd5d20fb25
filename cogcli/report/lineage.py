"""The writers and readers of each target, and the targets that were never written
(docs/reference/command-line.md#views).

1. Only the root run is included. A nested skill reads and writes its own state, and its step
   contains the result.
2. The closing event of a step includes its gates, items and rounds, so their own events are
   ignored.
3. A step that reads a part of a target, or a place that contains it, is a reader of the target.
4. The targets of a step that never wrote are known only if the episode contains its specs."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.step_path import StepPath
from cogcli.base.terminal_text import cells, pad, truncate, visible
from cogcli.declarations.envelope import Event
from cogcli.declarations.event_type import Payload
from cogcli.declarations.events import RunTerminated, StepFinished, StepStarted
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.typed_payload import read_payload
from cogcli.declarations.value_types import Json
from cogcli.episode.history import History
from cogcli.report.humanize import count_of
from cogcli.report.styled_text import Glyphs, StyledLine

COLUMNS: Final = ("target", "written_by", "never", "read_by", "required")


class DeclaredPlaces(NamedTuple):
    """The declarations of a skill: the targets of each step, in order, and its required outputs."""

    writes: dict[str, list[str]]
    required: frozenset[str]


NOTHING: Final = DeclaredPlaces({}, frozenset())


class _PinnedStep(Record):
    """A step of a pinned skill: the target of each of its outputs."""

    id: str
    output: Json


class _PinnedField(Record):
    """A declared output of a pinned skill."""

    required: bool = False


class _PinnedSkill(Record):
    """The spec of a pinned skill."""

    steps: list[_PinnedStep]
    outputs: dict[str, _PinnedField]


class _PinnedSpec(Record):
    """An entry in an episode's document of specs."""

    spec: _PinnedSkill


class _PinnedSpecs(Record):
    """An episode's document of specs."""

    specs: Json


def declared_places(document: object, skill_id: str) -> DeclaredPlaces:
    """Return the declarations of a skill from an episode's document of specs. Empty if the document has none."""
    pinned = read_record(_PinnedSpecs, document).specs.get(f"skill:{skill_id}")
    skill = read_record(_PinnedSpec, pinned).spec
    writes = {step.id: [*map(str, step.output.values())] for step in skill.steps}
    required = frozenset(name for name, field in skill.outputs.items() if field.required)
    return DeclaredPlaces(writes, required)


class TracedWrite(NamedTuple):
    """One write of a step. `items` is the length of a list."""

    seq: int
    step: str
    target: str
    strategy: str
    items: int | None


class StepFlow(NamedTuple):
    """The reads and writes of a step."""

    reads: list[str]
    writes: list[TracedWrite]


class TargetFlow(NamedTuple):
    """One place in the state. `required` is None if the place is not a declared output."""

    name: str
    writes: list[TracedWrite]
    readers: list[str]
    never: str
    """The reason why the target was never written. Empty if it was."""
    required: bool | None


class Lineage:
    """The reads and writes of the root run's steps, in the order of the log."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.steps: dict[str, StepFlow] = {}
        self.writes: list[TracedWrite] = []
        self.missing: list[str] = []
        self._reads: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        """Reads by the first two parts of their place, each with its step."""
        root: str | None = None
        for number, event in enumerate(events):
            root = event.run_id if number == 0 else root
            if event.run_id == root:
                self._add_event(number, event, read_payload(event))
        for id, step in self.steps.items():
            for name in dict.fromkeys(step.reads):
                self._reads.setdefault(tuple(_split_place(name)[:2]), []).append((name, id))

    def _add_event(self, number: int, event: Event, payload: Payload) -> None:
        match payload:
            case RunTerminated():
                self.missing = payload.required_missing
            case StepStarted() | StepFinished():
                id = payload.step_id or event.step_id
                if id and StepPath(id).is_step:
                    self._add_step(number, id, payload)

    def _add_step(self, number: int, id: str, payload: StepStarted | StepFinished) -> None:
        step = self.steps.setdefault(id, StepFlow([], []))
        if payload.reads:
            step.reads[:] = payload.reads
        if isinstance(payload, StepStarted):
            return
        for write in (write for write in payload.writes if write.target):
            items = len(write.value) if isinstance(write.value, list) else None
            done = TracedWrite(number, id, write.target, write.strategy or "overwrite", items)
            step.writes.append(done)
            self.writes.append(done)

    def step(self, id: str) -> StepFlow:
        """Return the reads and writes of a step. Both are empty if the log does not contain the
        step."""
        return self.steps.get(id) or StepFlow([], [])

    def readers(self, target: str) -> list[str]:
        """Return the steps that read a target, a part of it, or a place that contains it."""
        place = _split_place(target)
        if len(place) == 1:
            near = [
                entry
                for head, entries in self._reads.items()
                if head[0] == place[0]
                for entry in entries
            ]
        else:  # a reader's place has the same first two parts, or is the whole namespace
            near = [*self._reads.get((place[0],), ()), *self._reads.get((place[0], place[1]), ())]
        found = {id for name, id in near if overlap(target, name)}
        return [id for id in self.steps if id in found] if found else []


def overlap(a: str, b: str) -> bool:
    """Return whether two places are the same, or one contains the other."""
    return all(x == y for x, y in zip(_split_place(a), _split_place(b), strict=False))


def _split_place(place: str) -> list[str]:
    return place.replace("[", ".").split(".")


def targets(
    fold: History, flow: Lineage, declared_places: DeclaredPlaces = NOTHING
) -> list[TargetFlow]:
    """Return every target, in plan order of the steps that wrote it or would have written it."""
    writes_by_target: dict[str, list[TracedWrite]] = {}
    for write in flow.writes:
        writes_by_target.setdefault(write.target, []).append(write)
    unwritten = _find_unwritten(writes_by_target, flow, declared_places)
    required = declared_places.required | set(flow.missing)

    def target(name: str, writes: list[TracedWrite], why: str) -> TargetFlow:
        is_output = name.startswith("outputs.")
        needed = (name[8:] in required or None) if is_output else None
        return TargetFlow(name, writes, flow.readers(name), why, needed)

    order = {step.id: n for n, step in enumerate(fold.steps)}
    placed = [
        (writes[0].step, target(name, writes, "")) for name, writes in writes_by_target.items()
    ]
    placed += [
        (id, target(name, [], _explain_unwritten(fold, id))) for name, id in unwritten.items()
    ]
    return [one for _, one in sorted(placed, key=lambda entry: order.get(entry[0], len(order)))]


def _find_unwritten(
    written_names: Container[str], flow: Lineage, declared_places: DeclaredPlaces
) -> dict[str, str]:
    """Return the targets without a write, each with the step that would have written it; empty if
    no step would."""
    step_by_target = {name: id for id, names in declared_places.writes.items() for name in names}
    for name in flow.missing:
        step_by_target.setdefault(f"outputs.{name}", "")
    return {name: id for name, id in step_by_target.items() if name not in written_names}


_NEVER: Final = {
    "done": "gave none", "pending": "did not run", "running": "is running", "failed": "failed",
    "skipped": "was skipped", "vetoed": "was vetoed", "waits": "waits",
    "cut off": "was cut off", "in doubt": "is in doubt",
}  # fmt: skip


def _explain_unwritten(fold: History, step_id: str) -> str:
    if not step_id:
        return "never written: no step wrote it"
    step = fold.root.steps.get(step_id) if fold.root else None
    return f"never written: {step_id} {_NEVER.get(step.status if step else '', 'did not run')}"


def rows(flows: list[TargetFlow]) -> list[Json]:
    """Return the targets as rows of a table."""
    return [
        {
            "target": flow.name,
            "written_by": [_render_writer(write) for write in flow.writes],
            "never": flow.never or None,
            "read_by": flow.readers,
            "required": flow.required,
        }
        for flow in flows
    ]


def lineage(flows: list[TargetFlow], glyphs: Glyphs, *, width: int | None) -> list[StyledLine]:
    """Return one line per target with its writers and readers."""
    texts = [
        (
            visible(target.name),
            visible(target.never or f"written by {', '.join(map(_render_writer, target.writes))}"),
            visible(_render_readers(target, glyphs)),
        )
        for target in flows
    ]
    first = max((cells(text[0]) for text in texts), default=0)
    second = max((cells(text[1]) for text in texts), default=0)
    lines: list[StyledLine] = []
    for target, (name, written, read) in zip(flows, texts, strict=True):
        text = f"  {pad(written, second)}   {read}".rstrip()
        style = "red" if target.never and target.required else "dim" if target.never else ""
        if width is not None:
            name = truncate(name, width)
            text = truncate(text, max(0, width - first))
        lines.append([(pad(name, first), "bold"), (text, style)])
    return lines


def _render_writer(write: TracedWrite) -> str:
    """Return a writer as text, such as `risks (append, 7 items)`."""
    facts = [] if write.strategy == "overwrite" else [write.strategy]
    facts += [count_of(write.items, "item")] if write.items is not None else []
    return f"{write.step} ({', '.join(facts)})" if facts else write.step


def _render_readers(target: TargetFlow, glyphs: Glyphs) -> str:
    parts = [f"read by {', '.join(target.readers)}"] if target.readers else []
    if target.required:
        parts.append(f"required {glyphs.sign('failed' if target.never else 'done')}")
    return "  ".join(parts)
