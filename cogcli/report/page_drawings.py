"""The two drawings of a page: the bars of a run on a time axis, and the flow of its values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cogcli.episode.history import History
from cogcli.episode.run_history import StepHistory
from cogcli.report.graph import Node
from cogcli.report.history_graph import graph_of
from cogcli.report.humanize import count_of, duration
from cogcli.report.lineage import DeclaredPlaces, Lineage, TargetFlow
from cogcli.report.svg import Arrow, Box, graph_svg, label_with_sign, timeline_svg
from cogcli.report.timeline import bars

MAX_BOXES: Final = 60
"""The most boxes in a drawing of values. A larger run has only the table."""


def timeline_of(fold: History, name: str) -> str:
    """Return the timeline as SVG, or an empty string if no step started."""
    found = bars(fold, turns=True)
    total = fold.ms or 0
    if not found:
        return ""
    longest = max(found, key=lambda bar: bar.ms)
    description = f"{count_of(len(found), 'bar')} within {duration(total)}; "
    description += f"the longest is {longest.step.name}, {duration(longest.ms)}"
    return timeline_svg(
        found, total, name=name, title="Timeline of the run", description=description
    )


def _list_arrows(
    edges: Iterable[tuple[str, str]], input_reads: Iterable[tuple[str, str]]
) -> list[Arrow]:
    """Return the arrows of the order of steps, then those from inputs to the steps that read them."""
    arrows = [Arrow(before, after, carries=False) for before, after in edges]
    return arrows + [Arrow(read, reader) for read, reader in input_reads]


def _describe_ends(inputs: Iterable[str], outputs: Iterable[str]) -> str:
    return f"from {', '.join(inputs) or 'no input'} to {', '.join(outputs) or 'no output'}"


def lineage_of(
    fold: History,
    flow: Lineage,
    targets: list[TargetFlow],
    declared_places: DeclaredPlaces,
    name: str,
) -> str:
    """Return the steps in layers with their reads and writes, as SVG. Empty if the drawing would be too large, or no
    step is known."""
    graph = graph_of(fold)
    steps = {step.id: step for step in fold.steps}
    input_reads = [(read, id) for id in steps for read in filter(_is_given, flow.step(id).reads)]
    inputs = {read: Box(read, (read,), is_place=True) for read, _ in input_reads}
    outputs = {each.name: _build_output_box(each) for each in targets if _is_output(each)}
    if not graph.nodes or len(graph.nodes) + len(inputs) + len(outputs) > MAX_BOXES:
        return ""
    inner = [_build_step_box(node, steps.get(node.id), flow) for node in graph.nodes]
    arrows = _list_arrows(graph.edges, input_reads)
    arrows += _find_value_arrows(targets, declared_places)
    ends = _describe_ends(inputs, outputs)
    return graph_svg(
        [*inputs.values(), *inner, *outputs.values()],
        arrows,
        name=name,
        title="What each step read and wrote",
        description=f"{count_of(len(graph.nodes), 'step')}, {ends}",
    )


def _is_output(target: TargetFlow) -> bool:
    return target.name.startswith("outputs.")


def _build_output_box(output: TargetFlow) -> Box:
    if output.never:
        return Box(output.name, (output.name, "never written"), "failed", is_place=True)
    return Box(output.name, (output.name,), "done", is_place=True)


def _is_given(place: str) -> bool:
    return place.partition(".")[0] in ("inputs", "frame")


def _build_step_box(node: Node, step: StepHistory | None, flow: Lineage) -> Box:
    took = duration(step.ms) if step else ""
    written = [write.target for write in flow.step(node.id).writes]
    lines = (
        label_with_sign(node.id, node.status),
        " · ".join(part for part in (node.uses, took) if part),
        f"→ {', '.join(dict.fromkeys(written))}" if written else "",
    )
    return Box(node.id, tuple(line for line in lines if line), node.status)


def _find_value_arrows(
    targets: list[TargetFlow], declared_places: DeclaredPlaces
) -> Iterator[Arrow]:
    """Yield arrows from the writers of each target to its readers, and to the target if it is an output.

    A target that was never written has only arrows from the steps that declare it.
    """
    for target in targets:
        readers = target.readers if target.writes else []
        for writer in _find_writers(target, declared_places):
            yield from (Arrow(writer, reader) for reader in readers if reader != writer)
            if _is_output(target):
                yield Arrow(writer, target.name, carries=bool(target.writes))


def _find_writers(target: TargetFlow, declared_places: DeclaredPlaces) -> list[str]:
    """Return the steps that wrote a target. If none did, return the steps that declare it."""
    writers = list(dict.fromkeys(write.step for write in target.writes))
    return writers or [id for id, names in declared_places.writes.items() if target.name in names]
