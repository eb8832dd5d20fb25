"""Sources of a research: their text, wherever it lies."""

from __future__ import annotations

from typing import Any

from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.sdk import CallFailed, Refused

_MAX_ITEMS = 50
_MAX_TEXT = 200_000
_MAX_TOGETHER = 4_000_000
_KINDS = ("raw_text", "fs_path", "pdf_path", "url", "memory_key")


def retrieve_sources(items: list[Any], max_chunk_size: float | None = None) -> dict[str, object]:
    """Return the items that can be had, with `text` and `source_type`; in `failed` the others, with the `error` and
    no text.

    An item names its source by one of raw_text, fs_path, pdf_path, url and memory_key, or by a `source_ref` of `type`
    and `value`, or has its `text`; a text stands for an address or for itself. Files are read as documents are, pages
    fetched as pages are, values found in the project's memory: what these refuse is refused here. With
    `max_chunk_size` an item for each piece of a text, `ID#1` and so on. Raise Refused where not one can be had.
    """
    if len(items) > _MAX_ITEMS:
        raise Refused("too-large", f"{len(items)} items; at most {_MAX_ITEMS} are retrieved")
    done = [_retrieved(item, number) for number, item in enumerate(items, 1)]
    retrieved = [item for item in done if "text" in item]
    failed = [item for item in done if "text" not in item]
    if failed and not retrieved:
        raise Refused("no-evidence", f"no source can be had: {str(failed[0]['error'])[:300]}")
    total = sum(len(str(item["text"])) for item in retrieved)
    if total > _MAX_TOGETHER:
        raise Refused(
            "too-large",
            f"the sources have {total:,} characters; at most {_MAX_TOGETHER:,} are taken",
        )
    if max_chunk_size is not None:
        retrieved = [piece for item in retrieved for piece in _pieces(item, max_chunk_size)]
    return {"items": retrieved, "failed": failed}


def _pieces(item: dict[str, object], size: float) -> list[dict[str, object]]:
    from cogcli.official.chunks import cut_text

    pieces = cut_text(str(item["text"]), size)["chunks"]
    assert isinstance(pieces, list)  # noqa: S101  # for the type checker
    return [{**item, "id": f"{item['id']}#{n}", "text": piece} for n, piece in enumerate(pieces, 1)]


def _retrieved(item: Any, number: int) -> dict[str, object]:
    given = _item_members(item)
    about = {
        name: given[name] for name in ("id", "title", "url") if isinstance(given.get(name), str)
    }
    about.setdefault("id", f"source-{number}")
    kind, value = _parse_source(given)
    try:
        text = _text_of(kind, value)
    except Refused as error:
        return {**about, "source_type": kind, "error": error.message}
    except CallFailed as error:
        return {**about, "source_type": kind, "error": f"{error.code}: {error.message}"}
    if not text.strip():
        return {**about, "source_type": kind, "error": "it has no text"}
    return {
        **about,
        "source_type": kind,
        "text": text[:_MAX_TEXT],
        "truncated": len(text) > _MAX_TEXT,
    }


def _item_members(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"url" if item.startswith(("http://", "https://")) else "raw_text": item}
    return item if isinstance(item, dict) else {}


def _parse_source(item: dict[str, Any]) -> tuple[str, str]:
    """Return the kind and the value of an item's source. Both are empty if it has none."""
    ref = item.get("source_ref")
    if isinstance(ref, dict) and isinstance(ref.get("value"), str):
        kind = str(ref.get("type"))
        return (kind if kind in _KINDS else ""), ref["value"]
    for kind in _KINDS:
        if isinstance(item.get(kind), str):
            return kind, item[kind]
    if isinstance(item.get("text"), str):
        return "raw_text", item["text"]
    return "", ""


def _text_of(kind: str, value: str) -> str:
    from cogcli.official.document import read_text
    from cogcli.official.fetch import fetch_page
    from cogcli.official.memory import retrieve_entry
    from cogcli.official.pdf import read_pdf
    from cogcli.official.web import extract_content

    if kind == "raw_text":
        return value
    if kind == "fs_path":
        return str(read_text(value)["text"])
    if kind == "pdf_path":
        return str(read_pdf(value)["text"])
    if kind == "url":
        content = str(fetch_page(value)["content"])
        return (
            str(extract_content(content)["text"]) if content.lstrip().startswith("<") else content
        )
    if kind == "memory_key":
        found = retrieve_entry(value)
        if not found["found"]:
            raise Refused("no-evidence", f"nothing is stored under `{value[:80]}`")
        stored = found["value"]
        text = stored.get("text") if isinstance(stored, dict) else stored
        if not isinstance(text, str):
            raise Refused("unsupported", f"what is stored under `{value[:80]}` is not text")
        return text
    raise Refused("bad-data", f"an item names none of {', '.join(_KINDS)}")
