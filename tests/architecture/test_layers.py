"""Imports, parsed from the source: they point down the floors, and pure rooms touch nothing of the outside world."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sources import PACKAGE, modules, modules_with, said

FLOORS = {
    "base": 1,
    "base/schema": 2,
    "base/yaml": 2,
    "base/api_documents": 3,
    "declarations": 3,
    "specs": 4,
    "state": 5,
    "policy": 6,
    "protocols": 6,
    "protocols/live": 7,
    "episode": 7,
    "run/engine": 7,
    "report": 8,
    "run": 8,
    "stores": 8,
    "app": 9,
    "gateway": 10,
    "scale": 10,
    "agent/context": 10,
    "agent/models": 10,
    "agent": 11,
    "agent/stores": 12,
    "agent/cognition": 12,
    "agent/use_cases": 13,
    "authoring/verification": 14,
    "authoring": 15,
    "cli": 16,
}
"""By room, or by a folder in it that has a floor of its own."""
WINGS = ("agent", "authoring", "gateway", "scale")
PURE = ("declarations", "state", "policy", "agent/context", "report", "agent")
"""Of a room, the files that lie in no folder with a floor of its own."""
IMPURE = {
    "os", "io", "pathlib", "tempfile", "shutil", "subprocess", "socket", "ssl", "http", "urllib", "httpx", "requests",
    "threading", "multiprocessing", "concurrent", "asyncio", "random", "secrets", "uuid", "sqlite3", "signal",
}  # fmt: skip
MAY = {"humanize.py": {"time"}, "budgets.py": {"threading"}}
"""`report/humanize.py` formats times; it never asks for the current one (tested below). Budgets have one lock."""


def room(path: Path) -> str:
    """The room of a file, or the folder in it that has a floor of its own; empty for a file above all rooms."""
    return room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts))


def room_of(module: str) -> str:
    """The room of a module, whose name is relative to the package."""
    parts = module.split(".")
    inner = "/".join(parts[:2])
    return inner if inner in FLOORS else parts[0] if parts[0] in FLOORS else ""


def test_imports_point_down() -> None:
    assert [wrong for path in modules() if room(path) for wrong in _imports_up(path)] == []


def _imports_up(path: Path) -> Iterator[str]:
    own = room(path)
    found = said(path)
    for name in {*found.modules, *found.names}:
        package, _, inside = name.partition(".")
        other = room_of(inside) if package == "cogcli" else ""
        if other and other != own and FLOORS[other] >= FLOORS[own]:
            yield f"{path}: {own} (floor {FLOORS[own]}) imports {name}"


def test_only_wings_and_the_command_line_import_a_wing() -> None:
    """What a wing adds to a use case of the core is in the table `app/wings.py`."""
    core = [name for name in FLOORS if name.partition("/")[0] not in (*WINGS, "cli")]
    assert max(FLOORS[name] for name in core) < min(
        floor for name, floor in FLOORS.items() if name.partition("/")[0] in WINGS
    )


def test_every_room_has_a_floor() -> None:
    rooms = {
        path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()
    }
    assert rooms - {"official"} <= set(FLOORS)


def test_the_floors_are_those_of_the_architecture_page() -> None:
    page = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ((?:`[\w/]+`(?:, )?)+) \|", page, re.MULTILINE)
    told = {name: int(floor) for floor, names in rows for name in re.findall(r"`([\w/]+)`", names)}
    assert told == {name: floor for name, floor in FLOORS.items() if (PACKAGE / name).is_dir()}


def test_errors_import_nothing() -> None:
    assert set(said(PACKAGE / "base/errors.py").modules) <= {"__future__"}


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
    for path in (each for each in modules() if room(each) == name):
        found = {module.partition(".")[0] for module in said(path).at_run_time}
        refused = (found & (IMPURE | {"time"})) - MAY.get(path.name, set())
        assert not refused, f"{path}: {refused}"


def test_words_never_ask_for_the_time() -> None:
    source = (PACKAGE / "report/humanize.py").read_text(encoding="utf-8")
    assert not any(
        call in source for call in ("time.time(", "time.monotonic(", "time.sleep(", "localtime()")
    )


@pytest.mark.slow
def test_importing_the_package_reads_no_environment_and_prints_nothing() -> None:
    """Module level holds no call to the environment, to files or to print."""
    for path in modules_with(r"\b(?:environ|getenv)\b|\b(?:open|print|input)\("):
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
