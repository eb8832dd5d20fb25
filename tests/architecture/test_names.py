"""One word, one meaning: names that were given up stay away, and a class name is used once in the package."""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from support.sources import PACKAGE, modules, said

PAIRS = set(
    re.findall(
        r"^\| `(\w+)` \| `[\w./]+` \| `[\w./]+` \|",
        (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
"""Names that two classes have on purpose; the page gives the reason."""
GIVEN_UP = {
    "again", "away", "ballast", "blackboard", "control", "doubts", "following", "gather", "going_on", "granted",
    "heard", "leftovers", "listening", "marks", "outside", "own_schemas", "places", "recall", "retold",
    "runs_at_once", "sittings", "standing", "start_rows", "survey", "tally", "told_error", "told_values",
    "traced", "unfinished", "wanted", "wire", "words",
}  # fmt: skip
"""Modules that no stranger could guess the content of."""
SPEECH = {
    "told",
    "asked",
    "heard",
    "said",
    "shown",
    "opened",
    "governed",
    "sent",
    "performed",
    "begun",
    "recalled",
}
"""Functions are verbs, and none of them speaks."""


RAISING = re.compile(r"\b[Rr]aises? [^.]*")
RAISED = re.compile(r"(?:[Rr]aises? |, or | or |, )([A-Z][A-Za-z]+)")
"""What a docstring says is raised."""


def classes() -> Iterator[tuple[str, Path]]:
    for path in modules():
        yield from ((name, path) for name in said(path).classes)


def test_a_class_name_stands_once() -> None:
    found: dict[str, list[Path]] = defaultdict(list)
    for name, path in classes():
        found[name].append(path)
    twice = {name: paths for name, paths in found.items() if len(paths) > 1}
    assert twice.keys() == PAIRS, twice
    assert all(len(paths) == 2 for paths in twice.values()), twice


def test_no_name_that_was_given_up_returns() -> None:
    assert [path for path in modules() if path.stem in GIVEN_UP] == []
    assert [(path, found) for path in modules() if (found := functions_of(path) & SPEECH)] == []


def functions_of(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    return set(re.findall(r"^def (\w+)", text, re.MULTILINE))


def test_a_docstring_names_only_exceptions_that_are_there() -> None:
    text_by_path = {path: path.read_text(encoding="utf-8") for path in modules()}
    known = {name for name, _ in classes()} | set(dir(builtins))
    known |= {name.rpartition(".")[2] for path in modules() for name in said(path).names}
    for text in text_by_path.values():
        known |= set(re.findall(r"\w\.([A-Z]\w+)", text))
    unknown = [
        (path.name, name)
        for path, text in text_by_path.items()
        for docstring in re.findall(r'"""(.*?)"""', text, re.DOTALL)
        for sentence in RAISING.findall(docstring)
        for name in RAISED.findall(sentence)
        if name not in known
    ]
    assert unknown == []
