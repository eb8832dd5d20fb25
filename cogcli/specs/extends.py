"""The chain of bases of a capability: following, checking and folding it (docs/reference/capability.md#extends)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cogcli.core.problems import suggestion
from cogcli.specs.inherit import MAX_BASES, find_weakened_keys, fold_base

if TYPE_CHECKING:
    from cogcli.specs.problem_report import ProblemReport
    from cogcli.specs.spec_reader import SpecFile


class ExtendsChain(NamedTuple):
    """A capability's file and those of its bases, nearest first. `fault`: code and reason of an incomplete chain."""

    files: tuple[SpecFile, ...]
    fault: tuple[str, str] | None = None


def chain_of(
    own: SpecFile, find: Callable[[str], SpecFile | None], canonical: Callable[[str], str]
) -> ExtendsChain:
    """The chain from a capability's file on; `find` gives the file in force for an id, `canonical` the id of a name."""
    files = [own]
    while (base := (files[-1].raw or {}).get("extends")) is not None:
        id = canonical(base)
        ids = [loaded.id for loaded in files]
        if id in ids:
            cycle = " -> ".join([*ids[ids.index(id) :], id])
            return ExtendsChain(tuple(files), ("extends.cycle", f"cycle {cycle}"))
        if len(files) > MAX_BASES:
            return ExtendsChain(tuple(files), ("extends.depth", f"more than {MAX_BASES} bases"))
        loaded = find(id)
        if loaded is None:
            return ExtendsChain(tuple(files), ("extends.unknown", "there is no such capability in order"))
        files.append(loaded)
    return ExtendsChain(tuple(files))


def fold_chain(files: Sequence[SpecFile]) -> dict[str, Any]:
    """The mapping of the first file with all bases folded in."""
    *nearer, farthest = files
    raw = farthest.raw or {}
    for loaded in reversed(nearer):
        raw = fold_base(loaded.raw or {}, raw)
    return raw


def check_chain(chain: ExtendsChain, report: ProblemReport, known: Callable[[], list[str]]) -> None:
    """Report the problems of a chain at its first file."""
    own, *bases = chain.files
    if chain.fault:
        code, reason = chain.fault
        base = (chain.files[-1].raw or {})["extends"]
        base_text = f"extends `{base}` by way of `{bases[-1].id}`" if bases else f"extends `{base}`"
        hint = suggestion(base, known()) if code == "extends.unknown" else ""
        report.error(code, ("extends",), f"{base_text}: {reason}", hint=hint)
    elif bases:
        for path, reason in find_weakened_keys(own.raw or {}, fold_chain(bases)):
            report.error("extends.weakens", path, f"weaker than its base: {reason}", key=True)
