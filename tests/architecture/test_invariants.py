"""The invariants of docs/architecture.md that are about who may touch what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.sources import PACKAGE, calls_in, modules, modules_with, said

ROOT = Path(__file__).resolve().parents[2]

EVENTS = tuple(
    f"cogcli.declarations.{module}"
    for module in (
        "envelope",
        "events",
        "governance_events",
        "agent_events",
        "session_events",
        "typed_payload",
    )
)
"""The modules with which events are made and read."""


def test_every_test_named_in_the_architecture_exists() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", page))
    defined = {
        match
        for path in (ROOT / "tests").rglob("test_*.py")
        for match in re.findall(
            r"^def (test_[a-z0-9_]+)", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert len(named) >= 10
    assert named <= defined


def _named_files(cell: str, folders: list[Path]) -> dict[Path, list[str]]:
    """Return the files that a cell names, each with the names behind it.

    A file without a path lies next to the one before it.
    """
    files: dict[Path, list[str]] = {}
    for name in re.findall(r"`([^`]+)`", cell):
        if not name.endswith(".py"):
            files[next(reversed(files))].append(name.rpartition(".")[2])
            continue
        beside = [path.parent for path in reversed(files)]
        (file, *_) = [path for folder in beside + folders if (path := folder / name).exists()]
        files[file] = []
    return files


def test_the_sources_of_the_agent_name_code_and_tests_that_exist() -> None:
    page = (ROOT / "docs/reference/sources.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!row \||---)(.+) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert len(rows) >= 70
    for _, where, shown in rows:
        code, tests = _named_files(where, [PACKAGE]), _named_files(shown, [ROOT / "tests"])
        assert code, where
        assert tests, shown
        for file, names in {**code, **tests}.items():
            text = file.read_text(encoding="utf-8")
            missing = [
                n for n in names if not re.search(rf"^ *(def|class) {n}\b", text, re.MULTILINE)
            ]
            assert not missing, f"{file}: {missing}"


def test_one_function_reaches_the_runner() -> None:
    callers = {
        path.name for path in (PACKAGE / "run/engine").glob("*.py") if "attempt" in calls_in(path)
    }
    assert callers == {"call.py"}


@pytest.mark.parametrize("part", ["Engine", "LiveRunner", "InvokerContext"])
def test_a_run_is_put_together_in_one_place(part: str) -> None:
    building = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules_with(rf"\b{part}\(")
        if part in calls_in(path)
    }
    assert building == {"run/launch.py"}


@pytest.mark.slow
def test_only_the_coordinators_side_reduces_or_appends() -> None:
    reducers = {
        f"cogcli.state.reducer.{name}"
        for name in ("apply", "write_value", "begin_step", "end_step")
    }
    reducing = {
        path.relative_to(PACKAGE).as_posix() for path in modules() if reducers & said(path).names
    }
    assert reducing == {
        "run/engine/context.py",
        "run/engine/control_flow.py",
        "run/engine/plain_step.py",
        "episode/projection.py",
        "state/outputs.py",
    }
    for path in [*(PACKAGE / "protocols/live").rglob("*.py"), *(PACKAGE / "official").glob("*.py")]:
        live_state = ("cogcli.state.execution", "cogcli.state.reducer", *EVENTS)
        assert not any(name.startswith(live_state) for name in said(path).names), path
