from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest
from small_registry import CAPABILITY, FILES, SKILL, Write

from cogcli.protocols import PROTOCOLS
from cogcli.specs.cache import CompiledCache, CompiledFile
from cogcli.specs.checks import check, skills
from cogcli.specs.checks.context import CheckContext
from cogcli.specs.checks.skills_and_capabilities import check_skills_and_capabilities
from cogcli.specs.layers import Layer
from cogcli.specs.registry import Registry

ENTRY = CompiledFile({"id": "a.b"}, [["version.format", "W", 1, 2, "/version", "said", "hint"]])


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / "cache" / "specs.db")


def filled(file: str) -> None:
    cache = CompiledCache(file)
    cache.keep("capability", "sha256:1", ENTRY)
    cache.close()


def test_what_was_kept_is_found_by_kind_and_digest(file: str) -> None:
    filled(file)
    cache = CompiledCache(file)
    assert cache.get("capability", "sha256:1") == ENTRY
    assert cache.get("skill", "sha256:1") is None
    assert cache.get("capability", "sha256:2") is None


def test_the_cache_is_for_its_owner_alone(file: str) -> None:
    filled(file)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode) == 0o700


def test_another_version_of_the_rules_does_not_see_old_entries(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(file)
    monkeypatch.setattr("cogcli.specs.cache.__version__", "99.0.0")
    assert CompiledCache(file).get("capability", "sha256:1") is None


def test_a_damaged_file_is_rebuilt(file: str) -> None:
    filled(file)
    Path(file).write_bytes(b"this is not a database" * 100)
    cache = CompiledCache(file)
    assert cache.get("capability", "sha256:1") is None
    cache.keep("capability", "sha256:1", ENTRY)
    cache.close()
    assert CompiledCache(file).get("capability", "sha256:1") == ENTRY


def test_a_changed_row_is_not_believed(file: str) -> None:
    filled(file)
    database = sqlite3.connect(file)
    with database:
        value = database.execute("SELECT value FROM spec").fetchone()[0]
        database.execute("UPDATE spec SET value = ?", (value.replace(b"a.b", b"a.c"),))
    database.close()
    assert CompiledCache(file).get("capability", "sha256:1") is None


@pytest.mark.parametrize("table", ["CREATE TABLE spec (key TEXT)", "CREATE TABLE other (x)"])
def test_a_database_of_another_shape_is_rebuilt(file: str, table: str) -> None:
    os.makedirs(os.path.dirname(file))
    database = sqlite3.connect(file)
    database.execute(table)
    database.close()
    cache = CompiledCache(file)
    assert cache.get("capability", "sha256:1") is None
    cache.keep("capability", "sha256:1", ENTRY)
    cache.close()
    assert CompiledCache(file).get("capability", "sha256:1") == ENTRY


def test_a_locked_cache_is_done_without(file: str) -> None:
    filled(file)
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    cache = CompiledCache(file)
    assert cache.get("capability", "sha256:1") is None
    cache.keep("capability", "sha256:2", ENTRY)
    cache.close()
    database.execute("ROLLBACK")
    database.close()
    assert CompiledCache(file).get("capability", "sha256:1") == ENTRY


def test_a_place_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = CompiledCache(str(tmp_path / "file" / "specs.db"))
    cache.keep("capability", "sha256:1", ENTRY)
    cache.close()
    assert cache.get("capability", "sha256:1") is None


def test_warnings_come_out_of_the_cache_and_errors_never_enter_it(root: Write, file: str) -> None:
    files = {
        "capabilities/text.echo.yaml": CAPABILITY.replace('"1.0.0"', '"1.0"'),
        "capabilities/bad.one.yaml": "id: bad.one\n",
    }
    layer = Layer("p", root(files=files), True)
    found = []
    for _ in range(2):
        cache = CompiledCache(file)
        found.append(
            check(Registry([layer], cache=cache, protocols=PROTOCOLS, base=layer.root).everything())
        )
        cache.close()
    assert (
        found[0]
        == found[1]
        == check(Registry([layer], protocols=PROTOCOLS, base=layer.root).everything())
    )
    assert {(p.code, p.line, p.column) for p in found[1] if p.code == "version.format"} == {
        ("version.format", 2, 10)
    }


def test_problems_of_cached_files_have_exact_positions(root: Write, file: str) -> None:
    layer = Layer(
        "p",
        root(files={"skills/local/t/s/skill.yaml": SKILL.replace("inputs.text", "vars.none")}),
        True,
    )
    for _ in range(2):
        cache = CompiledCache(file)
        (problem,) = check(
            Registry([layer], cache=cache, protocols=PROTOCOLS, base=layer.root).reach("t.s")
        )
        assert (problem.code, problem.line, problem.column) == ("ref.unwritten", 12, 19)
        cache.close()


def problems_of_closure(home: str, file: str = "") -> list[tuple[str, str]]:
    """Code and file of the problems of the closure of `t.s`, with the cache at `file` or without one."""
    cache = CompiledCache(file) if file else None
    layer = Layer("p", home, True)
    registry = Registry([layer], cache=cache, protocols=PROTOCOLS, base=layer.root)
    found = [(problem.code, problem.file) for problem in check(registry.reach("t.s"))]
    if cache is not None:
        cache.close()
    return found


def test_a_sound_closure_is_checked_once(
    root: Write, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, checked = root(), list[str]()
    check_skills = skills.check_skills
    monkeypatch.setattr(
        skills, "check_skills", lambda context: checked.append("") or check_skills(context)
    )
    assert [problems_of_closure(home, file) for _ in range(3)] == [[], [], []]
    assert len(checked) == 1


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("skills/local/t/s/skill.yaml", "inputs.text", "inputs.texts"),
        ("skills/local/t/s/skill.yaml", "uses: text.echo", "uses: skill:t.s"),
        ("capabilities/text.echo.yaml", "text: {type", "words: {type"),
        ("capabilities/text.echo.yaml", "Echo.", "Echo.\ndeprecated: true"),
        ("capabilities/text.echo.yaml", "version", "versions"),
        ("capabilities/text.echo.yaml", "id: text.echo", "id: text.other"),
        ("capabilities/text.echo.yaml", "properties:", "gates:"),
    ],
)
def test_a_change_of_what_a_sound_closure_reads_is_judged(
    root: Write, file: str, path: str, old: str, new: str
) -> None:
    home = root()
    assert problems_of_closure(home, file) == []
    changed = Path(home, path)
    changed.write_text(FILES[path].replace(old, new))
    wrong = problems_of_closure(home)
    assert wrong
    assert [problems_of_closure(home, file) for _ in range(2)] == [wrong, wrong]
    changed.write_text(FILES[path])
    assert problems_of_closure(home, file) == []


class Unreadable:
    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} is read, and is no part of the key")


def test_what_is_kept_follows_from_skills_and_capabilities_alone(root: Write) -> None:
    layer = Layer("p", root(), True)
    catalog = Registry([layer], protocols=PROTOCOLS, base=layer.root).reach("t.s")
    read = {
        "skills",
        "capabilities",
        "aliases",
        "broken",
        "replaced",
        "raw",
        "partial",
        "only",
        "places",
    }
    others = {name: Unreadable() for name in catalog._fields if name not in read}
    context = CheckContext(catalog._replace(**others), Unreadable())
    check_skills_and_capabilities(context)
    assert not context.has_problems


def test_what_replaces_a_capability_is_judged(root: Write, file: str) -> None:
    """An alias whose id another file takes is part of what is kept, as is each capability by name."""
    home = root()
    alias = CAPABILITY.replace("id: text.echo", "id: text.said\naliases: [text.echo]")
    assert problems_of_closure(home, file) == []
    Path(home, "capabilities/text.echo.yaml").unlink()
    Path(home, "capabilities/text.said.yaml").write_text(alias.replace("text: {type", "say: {type"))
    wrong = problems_of_closure(home)
    assert wrong
    assert problems_of_closure(home, file) == wrong
