"""Searching, through a server on loopback that answers as SearXNG does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.loopback_servers import reply, served

from cogcli.base.errors import RuntimeErrorBase
from cogcli.base.host_access import ACCESS, HostAccess
from cogcli.official.search import search
from cogcli.sdk import Refused

ROWS = [
    {"title": f" Page\n{n} ", "url": f"https://example.org/{n}", "content": f"Text {n}"}
    for n in (1, 2, 2, 3)
]


@pytest.fixture(autouse=True)
def private() -> Iterator[None]:
    token = ACCESS.set(HostAccess(network="private"))
    yield
    ACCESS.reset(token)


def found(
    value: Any, query: str = "high water", raw: bytes | None = None, status: int = 200, **given: Any
) -> list[Any]:
    asked: list[str] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        reply(status, raw if raw is not None else json.dumps(value).encode(), "application/json")(
            handler
        )

    with served(answer) as url:
        results = search(query, f"{url}/sub/", **given)["results"]
    parts = urlsplit(asked[0])
    assert (parts.path, parse_qs(parts.query)) == (
        "/sub/search",
        {"q": [" ".join(query.split())], "format": ["json"]},
    )
    assert isinstance(results, list)
    return results


def test_results_come_as_the_server_ranks_them_each_once() -> None:
    results = found({"results": ROWS})
    assert [row["title"] for row in results] == ["Page 1", "Page 2", "Page 3"]
    assert results[0] == {"title": "Page 1", "url": "https://example.org/1", "snippet": "Text 1"}


def test_at_most_so_many_results() -> None:
    assert len(found({"results": ROWS}, limit=2)) == 2
    assert found({"results": []}) == []


@pytest.mark.parametrize("query", ["a&format=html#x", "ü ? =", "a\r\nHost: evil"])
def test_a_query_is_words_whatever_it_holds(query: str) -> None:
    assert found({"results": []}, query) == []


@pytest.mark.parametrize(
    "raw", [b"<html>", b"[]", b"{}", b'{"results": 1}', b'{"results": [1]}', b"[" * 9999, b""]
)
def test_what_is_no_list_of_results_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused, match="did not answer with results"):
        found(None, raw=raw)


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "call.rejected"), (429, "call.overloaded"), (500, "call.server-error")],
)
def test_a_failure_gives_no_results(status: int, code: str) -> None:
    with pytest.raises(RuntimeErrorBase) as caught:
        found({"results": ROWS}, status=status)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "given",
    [
        {"query": " "},
        {"query": "x" * 1001},
        {"limit": 0},
        {"limit": 101},
        {"limit": 1.5},
        {"base": "http://a/?x=1"},
    ],
)
def test_what_is_no_search_is_not_asked(given: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        search(**{"query": "words", "base": "http://127.0.0.1:1", **given})
