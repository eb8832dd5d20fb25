"""Trust in a project's services (protocols.md 2): its real path and a hash of its service files.

The store lies beside the user's configuration, never in the project. An edited service file ends the trust.
"""

from __future__ import annotations

import os
from hashlib import sha256

from cogcli.app.places import config_home
from cogcli.core.errors import EnvironmentRefusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LIMIT = 256 * 1024


def store_path(environ: Mapping[str, str]) -> str:
    """The file that remembers which projects are trusted."""
    return os.path.join(config_home(environ), "trust.json")


def is_trusted(project: str, environ: Mapping[str, str]) -> bool:
    """Whether the services of a project, as they are now, may start code and read secrets."""
    if environ.get("COGCLI_TRUST_PROJECT") == "1":
        return True
    known = _read(environ).get(os.path.realpath(project))
    return known is not None and known == services_hash(project)


def trust(project: str, environ: Mapping[str, str]) -> int:
    """Trust a project as it is now; the number of its service files."""
    known = _read(environ)
    known[os.path.realpath(project)] = services_hash(project)
    _write(known, environ)
    return len(service_files(project))


def revoke(project: str, environ: Mapping[str, str]) -> bool:
    """End the trust; False if there was none."""
    known = _read(environ)
    if known.pop(os.path.realpath(project), None) is None:
        return False
    _write(known, environ)
    return True


def service_files(project: str) -> list[str]:
    """The files of a project that describe services, relative, in order: those that the registry reads, no others."""
    from cogcli.specs.host_layout import SERVICES_FILE
    from cogcli.specs.layers import HOST_FOLDER, PROJECT, Layer
    from cogcli.specs.layout import Layout

    root = os.path.abspath(project)
    found = [place.path for place in Layout(Layer(PROJECT, root, False)).all("service")]
    host = os.path.join(root, HOST_FOLDER, SERVICES_FILE)
    found += [host] if os.path.lexists(host) else []
    return sorted(os.path.relpath(path, root).replace(os.sep, "/") for path in found)


def services_hash(project: str) -> str:
    """One hash over names and bytes of all service files."""
    from cogcli.core.files import FileRefused, read_regular

    total = sha256()
    for name in service_files(project):
        try:
            content = read_regular(os.path.join(project, name), limit=_LIMIT)
        except FileRefused:
            content = b"\x00unreadable"
        total.update(f"{name}\0{sha256(content).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return f"sha256:{total.hexdigest()}"


def _read(environ: Mapping[str, str]) -> dict[str, str]:
    """What is trusted; a damaged store trusts nothing."""
    import orjson

    from cogcli.core.files import FileRefused, read_regular

    try:
        body = orjson.loads(read_regular(store_path(environ), limit=16 * _LIMIT))
    except (FileRefused, ValueError):
        return {}
    projects = body.get("projects") if isinstance(body, dict) else None
    if not isinstance(projects, dict):
        return {}
    return {path: mark for path, mark in projects.items() if isinstance(mark, str)}


def _write(projects: dict[str, str], environ: Mapping[str, str]) -> None:
    import orjson

    from cogcli.core.files import write_atomic

    path = store_path(environ)
    body = orjson.dumps(
        {"schema": "cogcli.trust/1", "projects": projects},
        option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE,
    )
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomic(path, body)
    except OSError as error:
        raise EnvironmentRefusal(
            "env.disk", f"{path} cannot be written: {error.strerror}", hint="make the directory writable"
        ) from error
