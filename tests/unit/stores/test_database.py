"""SQLite files as records: several processes, kills, damage (docs/reference/pack.md#stores)."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from cogcli.agent.stores.agent_store import AgentStore
from cogcli.agent.stores.knowledge_store import KnowledgeStore
from cogcli.agent.stores.memory_store import MemoryStore
from cogcli.base.errors import UnusableEnvironment
from cogcli.stores import database

pytestmark = pytest.mark.sampled(2)

LINE = {
    "subject": "o:1",
    "predicate": "p",
    "evidence_ref": "e",
    "observed_at": "2026-05-04T09:30:00Z",
}
WRITER = f"""
import sys
from pathlib import Path
from cogcli.base.errors import UnusableEnvironment
from cogcli.agent.stores.knowledge_store import KnowledgeStore

def again(action):
    while True:  # on a busy machine others may write for longer than a writer waits: it is told so, and tries again
        try:
            return action()
        except UnusableEnvironment as refusal:
            if refusal.code != "memory.busy":
                raise

store = again(lambda: KnowledgeStore(Path(sys.argv[1])))
for number in range(int(sys.argv[2])):
    again(lambda: store.append([{{**{LINE!r}, "value": [sys.argv[3], number]}}]))
"""
KILLED = f"""
import os, signal, sys
from pathlib import Path
from cogcli.agent.stores.knowledge_store import KnowledgeStore
store = KnowledgeStore(Path(sys.argv[1]))
def lines():
    for number in range(50):
        yield {{**{LINE!r}, "value": number}}
    os.kill(os.getpid(), signal.SIGKILL)
store.append(lines())
"""


def _python(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)])


@pytest.mark.sampled(4)
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.db"
    writers = [_python(WRITER, path, 25, name) for name in "abcd"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    store = KnowledgeStore(path)
    snapshot = store.snapshot()
    assert snapshot.seq == 100
    assert store.verified(snapshot.ref) == snapshot
    store.close()


def test_a_new_store_waits_for_one_that_writes(tmp_path: Path) -> None:
    """SQLite refuses to switch a file to a write-ahead log at once while another connection writes."""
    path = tmp_path / "entries.db"
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, lambda: writer.execute("ROLLBACK"))
    release.start()
    database.Database(path, [["CREATE TABLE entries (name TEXT)"]]).close()
    release.join()
    writer.close()


def test_a_kill_in_the_middle_leaves_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.db"
    store = KnowledgeStore(path)
    before = store.append([{**LINE, "value": "kept"}])
    store.close()
    assert _python(KILLED, path).wait(60) == -signal.SIGKILL
    store = KnowledgeStore(path)
    assert store.snapshot() == before
    assert store.append([{**LINE, "value": "after"}]).seq == 2
    store.close()


@pytest.mark.parametrize(
    "content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 4096]
)
@pytest.mark.parametrize("store", [AgentStore, KnowledgeStore, MemoryStore])
def test_a_damaged_file_is_refused_and_left_as_it_is(
    tmp_path: Path, content: bytes, store: Any
) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(content)
    with pytest.raises(UnusableEnvironment) as refused:
        store(path)
    assert refused.value.code == "memory.damaged"
    assert path.read_bytes() == content


def test_a_page_that_is_damaged_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.db"
    store = KnowledgeStore(path)
    store.append({**LINE, "value": "x" * 500} for _ in range(200))
    store.close()
    data = bytearray(path.read_bytes())
    data[4096 * 6 : 4096 * 12] = os.urandom(4096 * 6)
    path.write_bytes(data)
    store = KnowledgeStore(path)
    with pytest.raises(UnusableEnvironment) as refused:
        store.verified(store.snapshot().ref)
    assert refused.value.code == "memory.damaged"
    store.close()


def test_a_file_of_something_else_or_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(UnusableEnvironment, match="has the table `mine`"):
        KnowledgeStore(path)
    newer = tmp_path / "newer.db"
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UnusableEnvironment, match="version 99"):
        MemoryStore(newer)


def test_a_writer_that_does_not_come_to_an_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    path = tmp_path / "knowledge.db"
    store = KnowledgeStore(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnusableEnvironment) as refused:
        store.append([LINE])
    assert refused.value.code == "memory.busy"
    other.execute("ROLLBACK")
    other.close()
    assert store.append([LINE]).seq == 1
    store.close()


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "new" / "memory.db")
    store.close()
    assert (tmp_path / "new" / "memory.db").stat().st_mode & 0o777 == 0o600


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))
    path.symlink_to(path.with_name("elsewhere.db"))


def _instead(make: Any) -> Any:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


def _beside(suffix: str) -> Any:
    return lambda path: os.mkfifo(path.with_name(path.name + suffix))


@pytest.mark.parametrize(
    "change",
    [
        _link,
        _instead(lambda path: path.symlink_to(path.with_name("nothing"))),
        _instead(lambda path: path.symlink_to("/dev/zero")),
        _instead(os.mkfifo),
        _instead(os.mkdir),
        _beside("-wal"),
        _beside("-shm"),
        _beside("-journal"),
    ],
)
@pytest.mark.parametrize("store", [KnowledgeStore, MemoryStore])
def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path, store: Any, change: Any) -> None:
    path = tmp_path / "store.db"
    store(path).close()
    change(path)
    with pytest.raises(UnusableEnvironment, match="not a plain file") as refused:
        store(path)
    assert refused.value.code == "memory.damaged"


@pytest.mark.parametrize(("store", "table"), [(KnowledgeStore, "edge"), (MemoryStore, "proposal")])
@pytest.mark.parametrize(
    "planted",
    [
        ["CREATE TRIGGER evil AFTER INSERT ON {0} BEGIN DELETE FROM {0}; END"],
        ["ALTER TABLE {0} RENAME TO x", "CREATE VIEW {0} AS SELECT * FROM x"],
    ],
)
def test_triggers_and_views_are_refused(
    tmp_path: Path, store: Any, table: str, planted: list[str]
) -> None:
    path = tmp_path / "store.db"
    store(path).close()
    with sqlite3.connect(path) as connection:
        for statement in planted:
            connection.execute(statement.format(table))
    with pytest.raises(UnusableEnvironment, match=r"the (trigger|view|table) `") as refused:
        store(path)
    assert refused.value.code == "memory.damaged"


def test_a_file_of_a_version_below_the_first_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    KnowledgeStore(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = -1")
    with pytest.raises(UnusableEnvironment, match="no store has version -1"):
        KnowledgeStore(path)
