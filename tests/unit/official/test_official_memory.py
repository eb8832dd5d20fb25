"""Values that outlive a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.host_access import ACCESS, NOTHING, HostAccess
from cogcli.official import memory
from cogcli.official.memory import retrieve_entry, search_vectors, store_entry
from cogcli.official.similarity import embed_by_hash
from cogcli.sdk import Refused


@pytest.fixture(autouse=True)
def directory(tmp_path: Path) -> Iterator[Path]:
    token = ACCESS.set(HostAccess(store_dir=str(tmp_path / ".cogcli")))
    yield tmp_path / ".cogcli"
    ACCESS.reset(token)


@pytest.mark.parametrize(
    "value", [None, False, 0, "", [], {}, {"a": [1, 2.5, "ü", None]}, "x" * 1000, 2**53]
)
def test_what_was_stored_is_found(value: Any) -> None:
    store_entry("k", value)
    assert retrieve_entry("k") == {"value": value, "found": True}


def test_a_later_value_takes_the_place_of_an_earlier_one() -> None:
    store_entry("k", 1)
    store_entry("k", 2)
    assert retrieve_entry("k")["value"] == 2


def test_namespaces_are_apart() -> None:
    store_entry("k", 1, "one")
    store_entry("k", 2, "two")
    assert (retrieve_entry("k", "one")["value"], retrieve_entry("k", "two")["value"]) == (1, 2)
    assert retrieve_entry("k") == {"found": False}


def test_a_value_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(memory.time, "time", lambda: now)
    store_entry("k", 1, ttl_seconds=10)
    store_entry("kept", 2)
    now = 1009.9
    assert retrieve_entry("k")["found"]
    now = 1010.0
    assert retrieve_entry("k") == {"found": False}
    now = 1e9
    assert retrieve_entry("kept")["found"]


def test_looking_makes_no_file(directory: Path) -> None:
    assert retrieve_entry("k") == {"found": False}
    assert search_vectors("a word") == {
        "results": [],
        "total_searched": 0,
        "method": "rules:hash-ngram-256",
    }
    assert not directory.exists()


def test_a_mebibyte_is_kept_and_more_is_refused() -> None:
    store_entry("k", "x" * (1024 * 1024 - 2))
    with pytest.raises(Refused, match="1,048,577 bytes"):
        store_entry("k", "x" * (1024 * 1024 - 1))
    assert len(str(retrieve_entry("k")["value"])) == 1024 * 1024 - 2


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "x" * 513, "\ud800"])
def test_names_are_printable_and_short(name: str) -> None:
    for call in (
        lambda: store_entry(name, 1),
        lambda: retrieve_entry(name),
        lambda: store_entry("k", 1, name),
    ):
        with pytest.raises(Refused):
            call()


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), 1e12])
def test_a_time_to_live_is_a_time(seconds: float) -> None:
    with pytest.raises(Refused):
        store_entry("k", 1, ttl_seconds=seconds)


@pytest.mark.parametrize("damage", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_store_is_never_replaced(directory: Path, damage: bytes) -> None:
    store_entry("k", 1)
    file = directory / "entries.db"
    file.write_bytes(damage or file.read_bytes()[:5000])
    before = file.read_bytes()
    for call in (lambda: retrieve_entry("k"), lambda: store_entry("k", 2)):
        with pytest.raises(RuntimeErrorBase) as caught:
            call()
        assert (caught.value.code, caught.value.exit_code, caught.value.left) == (
            "memory.damaged",
            3,
            False,
        )
    assert file.read_bytes() == before


def test_a_value_that_is_no_json_is_damage(directory: Path) -> None:
    import sqlite3

    store_entry("k", 1)
    with sqlite3.connect(directory / "entries.db") as connection:
        connection.execute("UPDATE entry SET value = '{'")
    connection.close()
    with pytest.raises(RuntimeErrorBase) as caught:
        retrieve_entry("k")
    assert caught.value.code == "memory.damaged"


def test_the_files_are_of_their_owner_alone(directory: Path) -> None:
    store_entry("k", 1)
    assert (
        directory.stat().st_mode & 0o777,
        (directory / "entries.db").stat().st_mode & 0o777,
    ) == (
        0o700,
        0o600,
    )


def test_a_run_without_a_store_keeps_nothing() -> None:
    token = ACCESS.set(NOTHING)
    try:
        with pytest.raises(Refused, match="no directory for stores"):
            store_entry("k", 1)
    finally:
        ACCESS.reset(token)


def test_two_writers_lose_nothing(directory: Path) -> None:
    code = (
        "import sys\n"
        "from cogcli.base.host_access import ACCESS, HostAccess\n"
        "from cogcli.official.memory import store_entry\n"
        "ACCESS.set(HostAccess(store_dir=sys.argv[1]))\n"
        "for n in range(15): store_entry(f'{sys.argv[2]}-{n}', n)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(directory), name], env=dict(os.environ))
        for name in "ab"
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert all(retrieve_entry(f"{name}-{n}")["value"] == n for name in "ab" for n in range(15))


def embedded(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, **embed_by_hash(text), **more}


def test_the_nearest_texts_come_first() -> None:
    texts = [
        "The harbour opens at six.",
        "Coffee is served at noon.",
        "Ships wait until the harbour opens.",
    ]
    for number, text in enumerate(texts):
        store_entry(f"note-{number}", embedded(text))
    store_entry("plain", {"text": "not a vector"})
    store_entry("other", embedded("When does the harbour open?"), "elsewhere")
    found = search_vectors("When does the harbour open?", top_k=2)
    results = found["results"]
    assert isinstance(results, list)
    assert {one["key"] for one in results} == {"note-0", "note-2"}
    assert found["total_searched"] == 3
    assert results[0]["score"] >= results[1]["score"] > 0
    assert "embedding" not in results[0]["value"]
    assert results[0]["value"]["text"] in texts


def test_vectors_of_other_models_are_not_compared() -> None:
    store_entry("a", embedded("The harbour opens.", model="another"))
    with pytest.raises(Refused, match="another") as caught:
        search_vectors("the harbour")
    assert caught.value.reason == "needs-model"
    store_entry("b", embedded("Coffee."))
    assert search_vectors("the harbour")["total_searched"] == 1


@pytest.mark.parametrize("embedding", [["a"] * 256, [None] * 256, [0.0] * 256, [True] * 256])
def test_what_is_no_vector_is_passed_over(embedding: list[Any]) -> None:
    store_entry("a", {"embedding": embedding, "model": "hash-ngram-256"})
    assert search_vectors("harbour") == {
        "results": [],
        "total_searched": 0,
        "method": "rules:hash-ngram-256",
    }


@pytest.mark.parametrize("top_k", [0, -1, 1.5, 1001])
def test_top_k_is_a_number_of_results(top_k: float) -> None:
    with pytest.raises(Refused):
        search_vectors("harbour", top_k=top_k)


def test_vectors_of_a_model_are_searched_by_a_vector_of_it() -> None:
    store_entry("north", {"text": "north", "embedding": [1.0, 0.0], "model": "m"})
    store_entry("east", {"text": "east", "embedding": [0.0, 1.0], "model": "m"})
    found = search_vectors("up", embedding=[2, 1], model="m", top_k=1)
    assert found["results"] == [
        {"key": "north", "score": 0.894427, "value": {"text": "north", "model": "m"}}
    ]
    assert (found["total_searched"], found["method"]) == (2, "model:m")


@pytest.mark.parametrize(
    "given", [{"embedding": [1.0]}, {"model": "m"}, {"embedding": [0.0], "model": "m"}]
)
def test_half_a_vector_of_the_query_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="whose they are"):
        search_vectors("up", **given)
