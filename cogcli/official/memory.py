"""Values that outlive a run: by namespace and key, in the project's `entries.db`."""

from __future__ import annotations

import json
import math
import time
from typing import Any

from cogcli.official.similarity import embed_by_hash
from cogcli.sdk import Refused, has_store, open_store

_FILE = "entries.db"
_VERSIONS = (
    (
        "CREATE TABLE entry (namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, stored_at REAL NOT NULL,"
        " expires_at REAL, PRIMARY KEY (namespace, key)) WITHOUT ROWID",
        "CREATE INDEX entry_expiry ON entry (expires_at) WHERE expires_at IS NOT NULL",
    ),
)
_MAX_VALUE = 1024 * 1024
_MAX_NAME = 512
_LONGEST = 100 * 366 * 86400
_IS_ALIVE = "(expires_at IS NULL OR expires_at > ?)"


def store_entry(
    key: str, value: Any, namespace: str = "default", ttl_seconds: float | None = None
) -> dict[str, object]:
    """Store a value of at most 1 MiB as JSON under a key, replacing an earlier one. Without
    `ttl_seconds` it never expires.
    """
    _require_names(namespace, key)
    if ttl_seconds is not None and not 0 < ttl_seconds <= _LONGEST:
        raise Refused("bad-data", "ttl_seconds is above 0, and at most a hundred years")
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if (size := len(written.encode("utf-8", "surrogatepass"))) > _MAX_VALUE:
        raise Refused("too-large", f"a value of {size:,} bytes; at most {_MAX_VALUE:,} are kept")
    now = time.time()
    row = (namespace, key, written, now, None if ttl_seconds is None else now + ttl_seconds)
    with open_store(_FILE, _VERSIONS) as store, store.writing() as connection:
        connection.execute("DELETE FROM entry WHERE expires_at <= ?", (now,))
        connection.execute("REPLACE INTO entry VALUES (?, ?, ?, ?, ?)", row)
    return {"stored": True}


def retrieve_entry(key: str, namespace: str = "default") -> dict[str, object]:
    """Return the value under a key, and whether it exists. Null may be a value."""
    _require_names(namespace, key)
    if not has_store(_FILE):
        return {"found": False}
    select = f"SELECT value FROM entry WHERE namespace = ? AND key = ? AND {_IS_ALIVE}"  # noqa: S608
    with open_store(_FILE, _VERSIONS) as store, store.reading() as connection:
        row = connection.execute(select, (namespace, key, time.time())).fetchone()
        return {"value": _parse_value(row[0]), "found": True} if row else {"found": False}


def search_vectors(
    query: str,
    namespace: str = "default",
    top_k: float = 5,
    embedding: list[Any] | None = None,
    model: str | None = None,
) -> dict[str, object]:
    """Return the entries nearest to a query, among those with `embedding` and `model` as
    `text.content.embed` gives them.

    The query's vector is `embedding`, made by `model`, if both are given; otherwise a hash vector.
    Vectors of other models are not compared or counted. Raise Refused `needs-model` if there are
    only such.
    """
    if not 1 <= top_k <= 1000 or top_k != int(top_k):
        raise Refused("bad-data", "top_k is a whole number from 1 to 1000")
    _require_names(namespace, "-")
    vector, model, method = _query_vector(query, embedding, model)
    scored: list[tuple[float, str, dict[str, Any]]] = []
    other_models: set[str] = set()
    for key, value in _load_entries(namespace):
        stored = value.get("embedding") if isinstance(value, dict) else None
        if not isinstance(stored, list) or not stored:
            continue
        if value.get("model") != model or len(stored) != len(vector):
            other_models.add(str(value.get("model") or "an unnamed one")[:60])
            continue
        score = _cosine_similarity(vector, stored)
        if score is not None:
            entry = {name: part for name, part in value.items() if name != "embedding"}
            scored.append((score, key, entry))
    if other_models and not scored:
        text = f"all vectors are of other models ({', '.join(sorted(other_models)[:5])}), and the query's is of {model}"
        hint = "embed the query with that model by text.content.embed, and give its `embedding` and `model`"
        raise Refused("needs-model", text, hint)
    scored.sort(key=lambda one: (-one[0], one[1]))
    best = [
        {"key": key, "score": score, "value": entry} for score, key, entry in scored[: int(top_k)]
    ]
    return {"results": best, "total_searched": len(scored), "method": method}


def _query_vector(
    query: str, embedding: list[Any] | None, model: str | None
) -> tuple[list[float], str, str]:
    """Return the query's vector, its model, and the method that made it."""
    if embedding is None and model is None:
        hashed = embed_by_hash(query)
        assert isinstance(hashed["embedding"], list)  # noqa: S101  # for the type checker
        return hashed["embedding"], str(hashed["model"]), f"rules:{hashed['model']}"
    if not embedding or not model or _cosine_similarity(embedding, embedding) is None:
        raise Refused(
            "bad-data",
            "`embedding` is a list of numbers, not all zero, and `model` says whose they are",
        )
    return embedding, model, f"model:{model}"


def _load_entries(namespace: str) -> list[tuple[str, Any]]:
    if not has_store(_FILE):
        return []
    select = f"SELECT key, value FROM entry WHERE namespace = ? AND {_IS_ALIVE} ORDER BY key"  # noqa: S608
    with open_store(_FILE, _VERSIONS) as store, store.reading() as connection:
        return [
            (key, _parse_value(text))
            for key, text in connection.execute(select, (namespace, time.time()))
        ]


def _parse_value(text: object) -> Any:
    import orjson

    if not isinstance(text, str):
        raise orjson.JSONDecodeError(
            "a value is not text", "", 0
        )  # as any other damage of the file
    return orjson.loads(text)


def _cosine_similarity(one: list[float], other: list[Any]) -> float | None:
    """Return the cosine of two vectors of equal length. None if the second is not a vector of finite numbers."""
    if not all(type(value) in (int, float) and math.isfinite(value) for value in other):
        return None
    size = math.hypot(*one) * math.hypot(*other)
    return round(sum(a * b for a, b in zip(one, other, strict=True)) / size, 6) if size else None


def _require_names(namespace: str, key: str) -> None:
    for what, name in (("namespace", namespace), ("key", key)):
        if not name or len(name) > _MAX_NAME or not name.isprintable():
            raise Refused(
                "bad-data", f"a {what} has 1 to {_MAX_NAME} characters, all of them printable"
            )
