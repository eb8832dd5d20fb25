"""Stores of a hostile project: a schema that computes, a journal that deletes, a statement without an end."""

from __future__ import annotations

import json
import signal
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attack import attack
from support.memory_seed import payload, propose

from cogcli.agent.stores.agent_store import AgentStore
from cogcli.agent.stores.knowledge_store import KnowledgeStore
from cogcli.agent.stores.memory_rows import VERSIONS
from cogcli.agent.stores.memory_store import MemoryStore
from cogcli.base.errors import UnusableEnvironment
from cogcli.episode.listing import episode_index
from cogcli.official import memory as entries
from cogcli.stores.database import Database

pytestmark = pytest.mark.sampled(4)

ENDLESS = f"('{'a' * 60}' LIKE '{'%a' * 30}%b')"
"""An expression that SQLite computes in one step, for longer than any test."""
PLANTED = {
    "table": ("CREATE TABLE planted (x)",),
    "generated column": (f"ALTER TABLE {{0}} ADD COLUMN planted AS {ENDLESS}",),
    "index": ("CREATE INDEX planted ON {0} (length(hex({1})))",),
    "partial index": (f"CREATE INDEX planted ON {{0}} ({{1}}) WHERE {ENDLESS}",),
    "trigger": ("CREATE TRIGGER planted AFTER INSERT ON {0} BEGIN DELETE FROM {0}; END",),
    "view": ("CREATE VIEW planted AS SELECT * FROM {0}",),
    "view instead of a table": ("ALTER TABLE {0} RENAME TO planted", "CREATE VIEW {0} AS SELECT * FROM planted"),
    "virtual table": ("CREATE VIRTUAL TABLE planted USING fts5 (x)",),
    "lacking table": ("DROP TABLE {0}",),
}  # fmt: skip


class EntryStore:
    """The store of the shipped functions that remember values."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, entries._VERSIONS)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


STORES: dict[Any, tuple[str, str]] = {
    KnowledgeStore: ("edge", "subject"),
    MemoryStore: ("proposal", "value"),
    AgentStore: ("interaction", "query"),
    EntryStore: ("entry", "value"),
}


def _plant(path: Path, statements: tuple[str, ...], table: str, column: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement.format(table, column))
    connection.commit()
    connection.close()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("store", STORES)
def test_a_schema_that_no_release_writes_is_refused_and_named(
    tmp_path: Path, store: Any, planted: str
) -> None:
    path = tmp_path / "store.db"
    store(path).close()
    store(path).close()
    _plant(path, PLANTED[planted], *STORES[store])
    before = path.read_bytes()
    with pytest.raises(UnusableEnvironment) as refused:
        store(path)
    assert refused.value.code == "memory.damaged"
    assert "planted" in refused.value.message or f"`{STORES[store][0]}`" in refused.value.message
    assert "move it away" in refused.value.hint
    assert path.read_bytes() == before


def test_a_row_of_the_schema_that_calls_itself_one_of_sqlite_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    KnowledgeStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TRIGGER planted AFTER INSERT ON edge BEGIN DELETE FROM edge; END")
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_master SET name = 'sqlite_autoindex_edge_9' WHERE name = 'planted'"
    )
    connection.commit()
    connection.close()
    with pytest.raises(UnusableEnvironment) as refused:
        KnowledgeStore(path)
    assert refused.value.code == "memory.damaged"


@pytest.mark.parametrize("store", [KnowledgeStore, MemoryStore])
def test_a_schema_that_is_no_text_is_damage(tmp_path: Path, store: Any) -> None:
    path = tmp_path / "store.db"
    store(path).close()
    store(path).close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE", b"CREATE \x80ABLE", 1))
    with pytest.raises(UnusableEnvironment) as refused:
        store(path)
    assert refused.value.code == "memory.damaged"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_version_that_a_release_wrote_is_read_and_brought_up_to_date(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "memory.db"
    Database(path, VERSIONS[:version]).close()
    MemoryStore(path).close()
    store = Database(path, VERSIONS)
    with store.reading() as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(VERSIONS),)
    store.close()


def test_the_statistics_of_a_users_own_tool_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    MemoryStore(path).close()
    _plant(path, ("ANALYZE",), "", "")
    MemoryStore(path).close()


@pytest.mark.parametrize("planted", ["generated column", "trigger", "view instead of a table"])
def test_memory_ls_refuses_a_planted_schema_at_once(project: Any, planted: str) -> None:
    project.write("cogcli.toml", "")
    (made,) = propose(project.root, payload("email"))
    assert made.proposal_id
    _plant(project.root / ".cogcli/memory.db", PLANTED[planted], "proposal", "value")
    outcome = attack(project, "memory", "ls", "--json", installed=True)
    assert (outcome.code, outcome.error) == (3, "memory.damaged")


def test_the_name_of_a_planted_table_writes_no_escape_to_the_terminal(project: Any) -> None:
    project.write("cogcli.toml", "")
    propose(project.root, payload("email"))
    _plant(
        project.root / ".cogcli/memory.db",
        ('CREATE TABLE "x\x1b]0;owned\x07\u202e\nerror: no" (x)',),
        "",
        "",
    )
    outcome = attack(project, "memory", "ls", env={"COGCLI_FORCE_TTY": "120"})
    assert outcome.code == 3
    assert not {b"\x1b]", b"\x07", "\u202e".encode()} & {
        mark for mark in (b"\x1b]", b"\x07", "\u202e".encode()) if mark in outcome.err
    }
    assert b"\nerror: no" not in outcome.err


WAITS = """
import sys
from pathlib import Path
from cogcli.agent.stores.knowledge_store import KnowledgeStore

store = KnowledgeStore(Path(sys.argv[1]))
with store._database.reading() as connection:
    print("begun", flush=True)
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    connection.execute(numbers).fetchall()
"""


def test_a_signal_ends_a_statement_that_does_not_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WAITS, str(tmp_path / "knowledge.db")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGINT)
            process.wait(60)
            assert "KeyboardInterrupt" in process.stderr.read()
        finally:
            process.kill()


def _make_index(demo: Any) -> Path:
    """Run a skill, and list it with an index; few episodes get none of themselves."""
    demo.run("run", "demo.greet", "-p", "text=hi").assert_ok()
    folder: Path = demo.root / ".cogcli/episodes"
    index = episode_index.Index(folder)
    assert index.create()
    index.close()
    demo.run("ls").assert_ok()
    return folder / episode_index.FILE


# -- a journal that names another file ---------------------------------------------------------------------------------


def _plant_journal(path: Path, victim: Path) -> None:
    """Write a rollback journal for the database whose super-journal is `victim`."""
    magic, page, name = bytes.fromhex("d9d505f920a163d7"), 4096, str(victim).encode()
    pages = path.stat().st_size // page
    head = (magic + struct.pack(">IIIII", 0, 0, pages, 512, page)).ljust(512, b"\0")
    tail = (
        struct.pack(">I", 0x40000000 // page + 1)
        + name
        + struct.pack(">II", len(name), sum(name))
        + magic
    )
    path.with_name(f"{path.name}-journal").write_bytes(head + tail)


def test_sqlite_itself_deletes_what_a_journal_names(tmp_path: Path) -> None:
    """The trap works."""
    path, victim = tmp_path / "any.db", tmp_path / "victim"
    _plant(path, ("CREATE TABLE t (x)",), "", "")
    victim.write_text("precious")
    _plant_journal(path, victim)
    _plant(path, ("SELECT count(*) FROM sqlite_master",), "", "")
    assert not victim.exists()


@pytest.mark.parametrize("store", STORES)
def test_a_store_with_a_journal_that_names_a_file_is_refused(tmp_path: Path, store: Any) -> None:
    path, victim = tmp_path / "store.db", tmp_path / "victim"
    store(path).close()
    victim.write_text("precious")
    _plant_journal(path, victim)
    with pytest.raises(UnusableEnvironment) as refused:
        store(path)
    assert refused.value.code == "memory.damaged"
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    "command", [("ls", "--json"), ("trace", "@last", "--json"), ("verify", "--all", "--json")]
)
def test_looking_at_episodes_deletes_nothing_that_a_journal_names(
    demo: Any, command: tuple[str, ...]
) -> None:
    index, victim = _make_index(demo), demo.home / "victim"
    victim.write_text("precious")
    _plant_journal(index, victim)
    assert attack(demo, *command).code == 0
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("planted", ["table", "generated column", "trigger", "view"])
def test_an_index_of_episodes_with_a_planted_schema_is_removed_unread(
    demo: Any, planted: str
) -> None:
    index = _make_index(demo)
    listed = json.loads(demo.run("ls", "--json").assert_ok().out)["episodes"]
    _plant(index, PLANTED[planted], "episode", "id")
    assert json.loads(attack(demo, "ls", "--json").out)["episodes"] == listed
    assert not index.exists()


def test_an_unfinished_copy_that_was_planted_is_not_opened(tmp_path: Path) -> None:
    path, victim = tmp_path / "memory.db", tmp_path / "victim"
    Database(path, VERSIONS[:1]).close()
    victim.write_text("precious")
    planted = path.with_name("memory.db.v1.part")
    _plant(planted, ("CREATE TABLE t (x)",), "", "")
    _plant_journal(planted, victim)
    MemoryStore(path).close()
    assert victim.exists()
    assert path.with_name("memory.db.v1").exists()
