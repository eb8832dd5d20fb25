"""Retrieves the texts of the sources of a research."""

from __future__ import annotations

from typing import Any

from cogcli.official.files import OPENED_AS as OPENED_AS
from cogcli.sdk import CallFailed, Refused

_MAX_ITEMS = 50
_MAX_TEXT = 200_000
_MAX_TOGETHER = 4_000_000
_KINDS = ("raw_text", "fs_path", "pdf_path", "url", "memory_key")


def retrieve_sources(items: list[Any], max_chunk_size: float | None = None) -> dict[str, object]:
    """Return the items whose text could be retrieved, with `text` and `source_type`; the others are
    in `failed`, with `error`.

    An item names its source by one of raw_text, fs_path, pdf_path, url and memory_key, or by a
    `source_ref` of `type` and `value`, or has its `text`. A plain text is an address or the text
    itself. The rules for documents, pages and memory apply. With `max_chunk_size`, each piece of a
    text becomes an item, with ids such as `ID#1`. Raise Refused if no source can be retrieved.
    """
    if len(items) > _MAX_ITEMS:
        raise Refused("too-large", f"{len(items)} items; at most {_MAX_ITEMS} are retrieved")
    results = [_retrieve_item(item, number) for number, item in enumerate(items, 1)]
    retrieved = [item for item in results if "text" in item]
    failed = [item for item in results if "text" not in item]
    if failed and not retrieved:
        raise Refused("no-evidence", f"no source can be had: {str(failed[0]['error'])[:300]}")
    total = sum(len(str(item["text"])) for item in retrieved)
    if total > _MAX_TOGETHER:
        raise Refused(
            "too-large",
            f"the sources have {total:,} characters; at most {_MAX_TOGETHER:,} are taken",
        )
    if max_chunk_size is not None:
        retrieved = [piece for item in retrieved for piece in _split_item(item, max_chunk_size)]
    return {"items": retrieved, "failed": failed}


def _split_item(item: dict[str, object], size: float) -> list[dict[str, object]]:
    from cogcli.official.chunks import cut_text

    pieces = cut_text(str(item["text"]), size)["chunks"]
    assert isinstance(pieces, list)  # noqa: S101  # for the type checker
    return [{**item, "id": f"{item['id']}#{n}", "text": piece} for n, piece in enumerate(pieces, 1)]


def _retrieve_item(item: Any, number: int) -> dict[str, object]:
    """Return an item with its text, or with the error that prevented reading it."""
    members = _item_members(item)
    identity = {
        name: members[name] for name in ("id", "title", "url") if isinstance(members.get(name), str)
    }
    identity.setdefault("id", f"source-{number}")
    kind, value = _parse_source(members)
    try:
        text = _read_source(kind, value)
    except Refused as error:
        return {**identity, "source_type": kind, "error": error.message}
    except CallFailed as error:
        return {**identity, "source_type": kind, "error": f"{error.code}: {error.message}"}
    if not text.strip():
        return {**identity, "source_type": kind, "error": "it has no text"}
    return {
        **identity,
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


def _read_source(kind: str, value: str) -> str:
    """Return the text of a source. Raise Refused or CallFailed."""
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
        entry = retrieve_entry(value)
        if not entry["found"]:
            raise Refused("no-evidence", f"nothing is stored under `{value[:80]}`")
        value_in_memory = entry["value"]
        text = value_in_memory.get("text") if isinstance(value_in_memory, dict) else value_in_memory
        if not isinstance(text, str):
            raise Refused("unsupported", f"what is stored under `{value[:80]}` is not text")
        return text
    raise Refused("bad-data", f"an item names none of {', '.join(_KINDS)}")
