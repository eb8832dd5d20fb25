"""Addresses of web pages as sources: normalized, without duplicates, and judged without any
request.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

from cogcli.official.values import first_text
from cogcli.sdk import Refused, address_refusal

_MAX_URL = 2048
_PORTS = {"http": 80, "https": 443}
_TRACKING = re.compile(r"utm_\w{1,30}|fbclid|gclid|msclkid|mc_[ce]id|igshid", re.ASCII)
_HOST = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
_NOT_PUBLIC = "localhost local internal intranet lan home corp test invalid onion arpa".split()
_TOGETHER = (
    {"CJK", "HIRAGANA", "KATAKANA", "LATIN"},
    {"CJK", "HANGUL", "LATIN"},
    {"CJK", "BOPOMOFO", "LATIN"},
)
_IN_QUERY = "%/?:@!$&'()*+,;=~-._"
_SCRIPT = re.compile(r"[A-Z]+")


def normalize_results(results: list[Any], mode: str = "quick") -> dict[str, object]:
    """Return search results as items, each address once: `quick` with the snippet, `deep` with the
    address to retrieve.

    A result without an http address is kept in `quick` if it has a snippet. The id of an item
    follows from its address.
    """
    if mode not in ("quick", "deep"):
        raise Refused("unsupported", f"mode `{mode:.40}`; the modes are quick and deep")
    items: dict[str, dict[str, object]] = {}
    for result in results:
        item = _result_item(result, deep=mode == "deep")
        if item is not None:
            items.setdefault(str(item["id"]), item)
    return {"items": list(items.values())}


def verify_source(url: str, trusted_hosts: list[str] | None = None) -> dict[str, object]:
    """Return whether an address is https, public, of one script in each part of its host, and of a
    listed host.

    Nothing is requested and no name is resolved. Without a list no address is trusted.
    """
    parts = _parse_url(url)
    if parts is None:
        return {
            "trusted": False,
            "reason": "it is not an http or https address",
            "normalized_source": {"url": url},
        }
    host = _resolved_host(parts)
    mixed_label = next((label for label in _readable_labels(host) if _mixes_scripts(label)), "")
    trusted_host = next((name for name in trusted_hosts or () if _is_host_of(host, name)), "")
    checks = {
        "https": (parts.scheme == "https", "it is not https"),
        "public": (_is_public(host), "its host is not public"),
        "one_script": (not mixed_label, f"`{mixed_label}` mixes scripts, as look-alikes do"),
        "listed": (bool(trusted_host), "its host is on no list of trusted hosts"),
    }
    reasons = [why for holds, why in checks.values() if not holds]
    source: dict[str, object] = {"url": _normalize_url(parts), "scheme": parts.scheme, "host": host}
    source["shown_host"] = ".".join(_readable_labels(host))
    source["checks"] = {name: holds for name, (holds, _) in checks.items()}
    reason = "; ".join(reasons) or f"https, public, listed as {trusted_host}"
    return {"trusted": not reasons, "reason": reason, "normalized_source": source}


def _result_item(result: Any, *, deep: bool) -> dict[str, object] | None:
    if not isinstance(result, dict):
        return None
    url = first_text(result, "url", "link", "href")
    snippet = " ".join(first_text(result, "snippet", "content", "description", "text").split())
    parts = _parse_url(url)
    if parts is None and (deep or not snippet):
        return None
    address = _normalize_url(parts) if parts else ""
    identity: dict[str, object] = {
        "id": hashlib.sha256((address or snippet).encode("utf-8", "replace")).hexdigest()[:12],
        "title": " ".join(first_text(result, "title", "name").split())
        or (parts and _resolved_host(parts))
        or "",
        "url": address,
    }
    return (
        {**identity, "source_ref": {"type": "url", "value": address}}
        if deep
        else {**identity, "snippet": snippet}
    )


def _parse_url(url: str) -> SplitResult | None:
    """Return the parts of an http or https address without user info; None for anything else."""
    text = url.strip()
    if len(text) > _MAX_URL or any(
        character <= " " or character == "\x7f" or character == "\\" for character in text
    ):
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or "@" in parts.netloc or port == 0:
        return None
    return parts if _resolved_host(parts) else None


def _resolved_host(parts: SplitResult) -> str:
    """Return the host in the form in which it is resolved; empty if there is none."""
    name = (parts.hostname or "").removesuffix(".")
    if ":" in name:
        return name
    try:
        ascii_name = name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return ""
    ascii_name = ascii_name.lower()
    return ascii_name if _HOST.fullmatch(ascii_name) else ""


def _normalize_url(parts: SplitResult) -> str:
    """Return one form for addresses of the same page: ASCII host, no default port, fragment or
    tracking parameter.
    """
    host = _resolved_host(parts)
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    pairs = (
        pair for pair in parts.query.split("&") if not _TRACKING.fullmatch(pair.partition("=")[0])
    )
    path = quote(parts.path, safe="%/:@!$&'()*+,;=~-._")
    return urlunsplit(
        (parts.scheme, host + port, path or "/", quote("&".join(pairs), safe=_IN_QUERY), "")
    )


def _readable_labels(host: str) -> list[str]:
    """Return the parts of a host in the form that people read."""
    return [_decode_label(label) for label in host.split(".")]


def _decode_label(label: str) -> str:
    try:
        return label[4:].encode("ascii").decode("punycode") if label.startswith("xn--") else label
    except (UnicodeError, OverflowError):
        return label


def _mixes_scripts(label: str) -> bool:
    names = (unicodedata.name(character, "") for character in label if character.isalpha())
    scripts = {found[0] for name in names if (found := _SCRIPT.match(name))}
    return len(scripts) > 1 and not any(scripts <= group for group in _TOGETHER)


def _is_public(host: str) -> bool:
    if address_refusal(host):
        return False
    return ":" in host or ("." in host and host.rpartition(".")[2] not in _NOT_PUBLIC)


def _is_host_of(host: str, name: str) -> bool:
    """Return whether a host equals a listed one or is a subdomain of it."""
    listed = name.strip().lower().removesuffix(".").removeprefix("*.")
    return bool(listed) and (host == listed or host.endswith(f".{listed}"))
