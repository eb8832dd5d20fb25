"""A project that was trusted as it was: a change of any file that decides, in any key or field, ends the trust.

The project is that of `hostile_project.py`, so that each file has every field. What counts is what the public commands
print and do.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("links and programs are those of POSIX", allow_module_level=True)

import hostile_project as values
from hostile_project import HostileProject
from support.examples import LONG
from support.project import Project

from cogcli.specs.host_layout import KIND_OF_FILE, HostLayout
from cogcli.specs.layout import Layout

pytestmark = pytest.mark.sampled(8)

SHOW = ("config", "show", "trust")
FILES = {
    "settings": "cogcli.toml",
    "skill": "skills/local/trap/everything/skill.yaml",
    "capability": "capabilities/trap.use.everything.yaml",
    "binding": "bindings/local/trap.use.everything/api.yaml",
    "service": "services/local/trap_api_named.yaml",
    "policy": "policies/official_default_selection.yaml",
    "pack": "packs/trap/1.0.0.yaml",
    "cases": "skills/local/trap/everything/tests/all.yaml",
    "case": "skills/local/trap/api/tests/case_0.yaml",
    "services of the host": ".agent-skills/services.yaml",
    "active bindings": ".agent-skills/active_bindings.json",
    "overrides": ".agent-skills/overrides.yaml",
    "binding of the host": ".agent-skills/bindings/local/trap.host.api/own.yaml",
    "capability of the host": ".agent-skills/capabilities/trap.host.api.yaml",
    "module": "canary_module.py",
    "module of another": "conftest.py",
    "program": "canary.sh",
    "API document": "docs/api.yaml",
    "service of another root": "reg/services/local/reg_api.yaml",
}
"""One file of each kind that decides."""


class Accepted:
    """A project that was trusted as it was."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root)
        del self.project.env["COGCLI_TRUST_PROJECT"]
        self.outside, self.marks = root / "outside", root / "marks"
        for folder in (self.outside, self.marks):
            folder.mkdir()
        HostileProject(self.project.root, self.outside, self.marks).plant(shipped=False)
        program = root / "programs/canary-program"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ntouch {self.marks}/program\n")
        program.chmod(0o755)
        self.project.env["PATH"] = f"{program.parent}:{self.project.env['PATH']}"
        self.project.run("config", "trust").assert_ok()

    @property
    def state(self) -> str:
        """What `config show trust` prints."""
        return self.project.run(*SHOW).assert_ok().out

    def path(self, name: str) -> Path:
        return self.project.root / name

    @contextmanager
    def changing(self, name: str) -> Iterator[Path]:
        """A file that is as before afterwards; one that did not exist is removed, with the folders made for it."""
        path = self.path(name)
        before = (path.read_bytes(), path.stat().st_mode) if path.exists() else None
        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()
            if before:
                path.write_bytes(before[0])
                path.chmod(before[1])
        assert self.state.startswith("accepted")

    def assert_ended(self, change: str, name: str) -> None:
        """Fail unless the trust ended for this file, and a run is refused before anything starts."""
        shown = self.state
        assert shown.startswith("changed"), (change, name, shown)
        assert name in shown, (change, name, shown)

    def assert_refused(self) -> None:
        """Fail unless a run of the project's own skill ends before it starts anything."""
        refused = self.project.run("run", "trap.module", "--json")
        assert refused.json["error"]["code"] == "service.untrusted", refused.out
        assert list(self.marks.iterdir()) == []


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accepted]:
    made = Accepted(tmp_path_factory.mktemp("accepted"))
    assert made.state.startswith("accepted")
    yield made
    assert made.state.startswith("accepted"), "a test left a change behind"


def test_every_place_of_a_file_that_decides_is_tried() -> None:
    places = {name.split("/")[0] for name in FILES.values()}
    assert {*Layout.folders.values(), *(name.split("/")[0] for name in Layout.single)} <= places
    host = {name.split("/")[1] for name in FILES.values() if name.startswith(".agent-skills/")}
    assert {*KIND_OF_FILE, *HostLayout.folders.values()} == host


def test_the_accepted_project_runs(accepted: Accepted) -> None:
    accepted.project.run("run", "trap.module").assert_ok()
    assert [mark.name for mark in accepted.marks.iterdir()] == ["module"]
    (accepted.marks / "module").unlink()


@pytest.mark.sampled(16)
@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_edited_or_removed_ends_the_trust(accepted: Accepted, kind: str) -> None:
    with accepted.changing(FILES[kind]) as path:
        path.write_bytes(path.read_bytes() + (b"\n" if path.suffix == ".json" else b"# and more\n"))
        accepted.assert_ended("edited", FILES[kind])
        accepted.assert_refused()
        path.unlink()
        accepted.assert_ended("removed", FILES[kind])


ADDED = {
    "skill": ("skills/local/trap/more/skill.yaml", "skills/local/trap/everything/skill.yaml"),
    "case": ("skills/local/trap/api/tests/more.yaml", "skills/local/trap/api/tests/case_0.yaml"),
    "capability": ("capabilities/text.content.normalize.yaml", "capabilities/trap.use.api.yaml"),
    "binding": ("bindings/local/trap.use.api/more.yaml", "bindings/local/trap.use.api/own.yaml"),
    "service": ("services/local/more.yaml", "services/local/trap_api.yaml"),
    "pack": ("packs/trap/1.0.1.yaml", "packs/trap/1.0.0.yaml"),
    "module": ("httpx2.py", "canary_module.py"),
    "binding of the host": (
        ".agent-skills/bindings/local/trap.host.api/more.yaml",
        "bindings/local/trap.use.api/own.yaml",
    ),
    "capability of the host": (
        ".agent-skills/capabilities/trap.more.api.yaml",
        "capabilities/trap.use.api.yaml",
    ),
    "service of another root": ("reg/services/local/more.yaml", "reg/services/local/reg_api.yaml"),
    "policy of another root": (
        "reg/policies/official_default_selection.yaml",
        "policies/official_default_selection.yaml",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ADDED)
def test_a_file_that_is_added_ends_the_trust(accepted: Accepted, kind: str) -> None:
    name, like = ADDED[kind]
    with accepted.changing(name) as path:
        shutil.copy(accepted.path(like), path)
        accepted.assert_ended("added", name)


def test_a_link_whose_target_changes_or_that_leads_elsewhere_ends_the_trust(tmp_path: Path) -> None:
    accepted = Accepted(tmp_path)
    elsewhere = tmp_path / "shared.yaml"
    own = accepted.path("capabilities/trap.use.api.yaml")
    shutil.move(own, elsewhere)
    own.symlink_to(elsewhere)
    accepted.project.run("config", "trust", "--yes").assert_ok()
    assert accepted.state.startswith("accepted")
    before = elsewhere.read_text()
    elsewhere.write_text(before + "\n# more\n")
    accepted.assert_ended("edited", "trap.use.api.yaml")
    elsewhere.write_text(before)
    assert accepted.state.startswith("accepted")
    own.unlink()
    own.symlink_to(tmp_path / "other.yaml")
    (tmp_path / "other.yaml").write_text(before + "\n# other\n")
    accepted.assert_ended("retargeted", "trap.use.api.yaml")


def test_a_change_is_accepted_without_a_terminal_by_a_flag_alone(tmp_path: Path) -> None:
    accepted = Accepted(tmp_path)
    path = accepted.path("capabilities/trap.use.asks.yaml")
    body = {
        "id": "trap.use.asks",
        "version": "1.0.0",
        "description": "Asks.",
        "inputs": {},
        "outputs": values.ANY,
    }
    path.write_text(json.dumps({**body, "safety": {"requires_confirmation": True}}))
    accepted.project.run("config", "trust", "--yes").assert_ok()
    path.write_text(json.dumps(body))
    refused = accepted.project.run("config", "trust")
    assert refused.code != 0
    assert "trap.use.asks" in refused.err
    assert "safety" in refused.err
    assert accepted.state.startswith("changed")
    accepted.project.run("config", "trust", "--yes").assert_ok()
    assert accepted.state.startswith("accepted")


# -- each field --------------------------------------------------------------------------------------------------------


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value that is not a mapping and no list, and of every empty one."""
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    found = False
    for name, item in members:
        found = True
        yield from _leaves(item, (*path, name))
    if not found and path:
        yield path


def _changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else ["x"]


def _with(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    """A document in which one value is changed."""
    if not path:
        return change(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(copy[path[0]], path[1:], change)
    return copy


JSON_FILES = {
    kind: name
    for kind, name in FILES.items()
    if name.endswith((".yaml", ".json")) and kind != "API document"
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", JSON_FILES)
def test_a_changed_field_ends_the_trust(accepted: Accepted, kind: str) -> None:
    with accepted.changing(JSON_FILES[kind]) as path:
        document = json.loads(path.read_text())
        fields = list(_leaves(document))
        for field in fields if LONG else random.sample(fields, min(2, len(fields))):
            path.write_text(json.dumps(_with(document, field, _changed), indent=1) + "\n")
            accepted.assert_ended(f"changed {field}", JSON_FILES[kind])


@pytest.mark.sampled(16)
@pytest.mark.parametrize("key", [key for key, line in values.CONFIG.items() if line])
def test_a_key_that_is_removed_ends_the_trust(accepted: Accepted, key: str) -> None:
    place = [line for line in values.CONFIG.values() if line].index(values.CONFIG[key])
    with accepted.changing("cogcli.toml") as path:
        lines = path.read_text().splitlines()
        path.write_text("\n".join(lines[:place] + lines[place + 1 :]) + "\n")
        accepted.assert_ended(f"removed {key}", "cogcli.toml")
