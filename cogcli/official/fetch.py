"""Fetches pages of the web. A response without success is an error, never a page."""

from __future__ import annotations

import re

from cogcli.sdk import Refused, fetch

_REDIRECTS = 5
_ACCEPT = (
    "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.8,application/xml;q=0.8"
)
_TEXT = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|x-yaml|javascript|x-ndjson)")
_DECLARED = re.compile(
    rb"<(?:meta|\?xml)[^>]{0,200}?(?:charset|encoding)\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.I
)
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def fetch_page(url: str) -> dict[str, object]:
    """Return the text of a page of at most 4 MiB, its status, and its final address after at most
    five redirects.

    The encoding is the declared one, else UTF-8. Raise Refused if it is not text, or not valid in
    its encoding.
    """
    reply = fetch(url, headers=(("Accept", _ACCEPT),), redirects=_REDIRECTS)
    if reply.media_type and not _TEXT.fullmatch(reply.media_type):
        raise Refused(
            "unsupported", f"{reply.url} is {reply.media_type:.60}, and only text is a page"
        )
    content = _decode_body(reply.body, reply.charset, reply.url)
    size = len(reply.body)
    return {"content": content, "status": reply.status, "final_url": reply.url, "bytes": size}


def _decode_body(body: bytes, charset: str, url: str) -> str:
    declaration = _DECLARED.search(body[:1024])
    name = next((codec for mark, codec in _MARKS if body.startswith(mark)), "")
    name = (
        name
        or charset
        or (declaration[1].decode("ascii", "replace") if declaration else "")
        or "utf-8"
    )
    # As browsers do: these names are commonly given for the wider one.
    name = (
        "cp1252"
        if name.lower() in ("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii")
        else name
    )
    try:
        text = body.decode(name)
    except LookupError:
        raise Refused(
            "unsupported", f"{url} is in the encoding {name!r:.60}, which is not known"
        ) from None
    except ValueError as error:
        raise Refused("bad-data", f"{url} is not in its encoding {name}: {error!s:.120}") from None
    if "\0" in text:
        raise Refused("unsupported", f"{url} is not text: it holds NUL characters")
    return text
