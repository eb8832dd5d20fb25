"""The servers of a host's configuration: `mcpServers` of `.mcp.json` (docs/reference/gateway.md#from).

Nothing is started here. An entry that cannot be used is kept with the reason, so that it hides no other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final
from urllib.parse import urlsplit

from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import names_secret
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.service_spec import Service
from cogcli.declarations.value_types import Json
from cogcli.specs.id_grammar import PLACEHOLDER

LAYER: Final = "host"
"""The layer of services that a host's file declares."""
_LIMIT: Final = 1024 * 1024
_OTHER: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_VARIABLE: Final = re.compile(r"\$\{")
_LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_MEMBERS: Final[dict[str, tuple[type, str]]] = {
    "type": (str, "text"),
    "command": (str, "text"),
    "args": (list, "a list"),
    "env": (dict, "an object"),
    "cwd": (str, "text"),
    "url": (str, "text"),
    "headers": (dict, "an object"),
}
"""The members of an entry, with their types. `null` counts as absent."""
_HTTP_TYPES: Final = frozenset(("", "http", "streamable-http", "streamableHttp"))


class HostEntry(Record):
    """One entry of `mcpServers`."""

    type: str = ""
    command: str | None = None
    args: list[object]
    env: Json
    cwd: str | None = None
    url: str | None = None
    headers: Json


class Upstream(NamedTuple):
    """A server behind the gateway: its service, or the reason why it cannot be used."""

    id: str
    service: Service | None
    fault: str = ""


def read_host_file(path: str, *, shown: str, is_trusted: bool) -> list[Upstream]:
    """Return the servers of a host's file, in its order, without an entry that is this gateway.

    `shown` is the path for messages. Raise UnusableEnvironment `gateway.file`.
    """
    try:
        document = loads(read_regular(path, limit=_LIMIT), max_bytes=_LIMIT)
    except UnreadableFile as refused:
        raise _file_error(shown, refused.message) from refused
    except InvalidJson as refused:
        place = f"{shown}:{refused.line}" if refused.line else shown
        raise _file_error(place, refused.message) from refused
    known = checked_document(document, "mcpServers")
    if known is None or "mcpServers" not in known:
        raise _file_error(shown, "it has no object `mcpServers`")
    found: list[Upstream] = []
    for name, raw in known["mcpServers"].items():
        entry = read_record(HostEntry, raw)
        if is_gateway(entry):
            continue
        id = _id_from_name(name)
        if any(each.id == id for each in found):
            found.append(
                Upstream(name, None, f"its name stands for `{id}`, as another entry's does")
            )
            continue
        fault = _find_type_fault(raw) or _find_fault(entry)
        if fault:
            found.append(Upstream(id, None, fault))
        else:
            found.append(_build_upstream(id, entry, path, shown, is_trusted=is_trusted))
    return found


def checked_document(document: object, member: str) -> Json | None:
    """Return the content of a host's file if it is an object whose `member`, if it has one, is an object."""
    if isinstance(document, dict) and isinstance(document.get(member, {}), dict):
        return document
    return None


def _file_error(display_path: str, text: str) -> UnusableEnvironment:
    hint = 'it looks like {"mcpServers": {"NAME": {"command": "PROGRAM", "args": []}}}'
    return UnusableEnvironment("gateway.file", f"{display_path}: {text}", hint=hint)


def is_gateway(entry: HostEntry) -> bool:
    """Return whether an entry starts a gateway of this program, which would call itself."""
    words = [str(word) for word in (entry.command, *entry.args) if word is not None]
    names = {os.path.basename(word).partition("==")[0].removesuffix(".exe") for word in words}
    has_command = any(pair == ("gateway", "serve") for pair in pairwise(words))
    return has_command and any(name.startswith("cogcli") for name in names)


def _id_from_name(name: str) -> str:
    return _OTHER.sub("_", name).strip("_.-")[:64] or "server"


def _build_upstream(
    id: str, entry: HostEntry, path: str, display_path: str, *, is_trusted: bool
) -> Upstream:
    """Return the server of a usable entry."""
    raw: Json = {"id": id, "kind": "mcp"}
    if entry.url is not None:
        raw |= {"url": entry.url, "metadata": {"headers": dict(entry.headers)}}
        if urlsplit(entry.url).hostname in _LOCAL:
            raw["network"] = "private"
    else:
        raw |= {"command": entry.command, "args": entry.args, "env": dict(entry.env)}
        raw |= {"cwd": entry.cwd} if entry.cwd else {}
    root = os.path.dirname(os.path.abspath(path))
    at = ("mcpServers", id)
    service = Service.of(raw, root=root, layer=LAYER, trusted=is_trusted, file=display_path, at=at)
    return Upstream(id, service)


def _find_type_fault(raw: object) -> str:
    """Return which member of an entry has another type than hosts document; empty if none has."""
    if not isinstance(raw, dict):
        return "it is not an object"
    for name, (kind, expected) in _MEMBERS.items():
        value = raw.get(name)
        if value is not None and not isinstance(value, kind):
            return f"its `{name}` is not {expected}"
    return ""


def _find_fault(entry: HostEntry) -> str:
    """Return why an entry cannot be used; empty if it can."""
    if (entry.command is None) == (entry.url is None):
        return "it needs either `command` or `url`"
    if entry.url is not None and entry.type not in _HTTP_TYPES:
        return f"its type `{entry.type[:40]}` is not spoken: use `http`"
    if entry.url is not None and (fault := _find_url_fault(entry.url)):
        return fault
    if not all(isinstance(word, str) for word in entry.args):
        return "its `args` are not all text"
    if _has_variable(word for word in (entry.command, entry.url, *entry.args)):
        return "`${NAME}` is replaced in `env` and `headers` only"
    named = (*entry.env.items(), *entry.headers.items())
    return next(filter(None, (_find_value_fault(name, value) for name, value in named)), "")


def _find_url_fault(url: str) -> str:
    """Return why the address of a server cannot be used; empty if it can."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host:
        return "its `url` has no valid host and port"
    return "" if parts.scheme in ("http", "https") else "its `url` is not http or https"


def _find_value_fault(name: str, value: object) -> str:
    """Return why a variable or a header of an entry cannot be used; empty if it can."""
    if not isinstance(value, str):
        return f"`{name[:40]}` is not text"
    if names_secret(name) and value and not PLACEHOLDER.search(value):
        return f"`{name[:40]}` holds a secret as text: write ${{NAME}} of a variable"
    return ""


def _has_variable(values: Iterable[object]) -> bool:
    return any(isinstance(word, str) and _VARIABLE.search(word) for word in values)
