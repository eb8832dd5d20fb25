"""Searching the web through a SearXNG server that the host names."""

from __future__ import annotations

import json
from urllib.parse import urlencode, urlsplit

from cogcli.sdk import Refused, fetch

_MAX_QUERY = 1000
_MAX_LIMIT = 100


def search(query: str, base: str, limit: float = 10) -> dict[str, object]:
    """Return the results of the search server, best first: `title`, `url` and `snippet`, each
    address once.

    At most `limit` are returned. Raise Refused for an invalid query, limit or reply.
    """
    query_text = " ".join(query.split())
    if not query_text or len(query_text) > _MAX_QUERY:
        raise Refused("bad-data", f"a query has 1 to {_MAX_QUERY} characters")
    if not 1 <= limit <= _MAX_LIMIT or limit != int(limit):
        raise Refused("bad-data", f"limit is a whole number from 1 to {_MAX_LIMIT}")
    if urlsplit(base).query or urlsplit(base).fragment:
        raise Refused("bad-data", "the address of the search server has a query or fragment")
    url = f"{base.rstrip('/')}/search?{urlencode({'q': query_text, 'format': 'json'})}"
    reply = fetch(url, headers=(("Accept", "application/json"),), name="the search server")
    try:
        results_in_reply = json.loads(reply.body)["results"]
        rows = [_result_entry(row) for row in results_in_reply if isinstance(row.get("url"), str)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        hint = "its settings.yml has to list json below search.formats"
        raise Refused(
            "bad-data", "the search server did not answer with results as JSON", hint
        ) from None
    results = list({row["url"]: row for row in reversed(rows)}.values())[::-1]
    return {"results": results[: int(limit)]}


def _result_entry(row: dict[str, object]) -> dict[str, str]:
    title, snippet = (str(row.get(name) or "") for name in ("title", "content"))
    return {
        "title": " ".join(title.split()),
        "url": str(row["url"]),
        "snippet": " ".join(snippet.split()),
    }
