"""Imports, parsed from the source: they point down the floors, and pure rooms touch nothing of the outside world."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sources import PACKAGE, modules, said

FLOORS = {
    "core": 1,
    "schema": 2,
    "yaml": 2,
    "documents": 3,
    "declarations": 3,
    "specs": 4,
    "state": 4,
    "events": 4,
    "mapping": 5,
    "governance": 6,
    "protocols": 6,
    "context": 7,
    "engine": 7,
    "bindings": 7,
    "episode": 7,
    "report": 8,
    "models": 7,
    "runs": 8,
    "stores": 9,
    "agent": 8,
    "verification": 9,
    "cognition": 9,
    "app": 10,
    "cli": 11,
}
PURE = ("declarations", "state", "events", "mapping", "governance", "context", "report", "agent")
IMPURE = {
    "os", "io", "pathlib", "tempfile", "shutil", "subprocess", "socket", "ssl", "http", "urllib", "httpx", "requests",
    "threading", "multiprocessing", "concurrent", "asyncio", "random", "secrets", "uuid", "sqlite3", "signal",
}  # fmt: skip
MAY = {"humanize.py": {"time"}, "budgets.py": {"threading"}}
"""`report/humanize.py` formats times; it never asks for the current one (tested below). Budgets have one lock."""


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def test_imports_point_down() -> None:
    assert [
        wrong
        for path in modules()
        if room(path) not in ("", "official")
        for wrong in _imports_up(path)
    ] == []


def _imports_up(path: Path) -> Iterator[str]:
    own = room(path)
    for name in said(path).modules:
        package, _, inside = name.partition(".")
        other = inside.partition(".")[0]
        if (
            package == "cogcli"
            and other in FLOORS
            and other != own
            and FLOORS[other] >= FLOORS[own]
        ):
            yield f"{path}: {own} (floor {FLOORS[own]}) imports {name}"


def test_every_room_has_a_floor() -> None:
    rooms = {
        path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()
    }
    assert rooms - {"official"} <= set(FLOORS)


def test_the_floors_are_those_of_the_architecture_page() -> None:
    page = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    told = {name: int(floor) for floor, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert told == {name: floor for name, floor in FLOORS.items() if (PACKAGE / name).is_dir()}


def test_errors_import_nothing() -> None:
    assert set(said(PACKAGE / "core" / "errors.py").modules) <= {"__future__"}


def test_shipped_functions_import_of_ours_what_users_may() -> None:
    for path in (PACKAGE / "official").rglob("*.py"):
        ours = {
            name
            for name in said(path).modules
            if name.startswith("cogcli") and not name.startswith(("cogcli.official", "cogcli.sdk"))
        }
        assert not ours, path


@pytest.mark.parametrize("name", PURE)
def test_pure_rooms_touch_nothing_outside(name: str) -> None:
    for path in (PACKAGE / name).rglob("*.py"):
        found = {module.partition(".")[0] for module in said(path).at_run_time}
        refused = (found & (IMPURE | {"time"})) - MAY.get(path.name, set())
        assert not refused, f"{path}: {refused}"


def test_words_never_ask_for_the_time() -> None:
    source = (PACKAGE / "report" / "humanize.py").read_text(encoding="utf-8")
    assert not any(
        call in source for call in ("time.time(", "time.monotonic(", "time.sleep(", "localtime()")
    )


@pytest.mark.slow
def test_importing_the_package_reads_no_environment_and_prints_nothing() -> None:
    """Module level holds no call to the environment, to files or to print."""
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(
                node, ast.FunctionDef | ast.ClassDef | ast.If | ast.Import | ast.ImportFrom
            ):
                continue
            for part in ast.walk(node):
                assert not (
                    isinstance(part, ast.Attribute) and part.attr in ("environ", "getenv")
                ), path
                called = (
                    part.func.id
                    if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
                    else ""
                )
                assert called not in ("open", "print", "input"), path
