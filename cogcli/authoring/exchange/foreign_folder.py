"""Inspection of a foreign folder, without following links out of it and without running its code
(docs/how-to/come-from-agent-skills.md)."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Final

from cogcli.base.errors import UsageError
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.system_text import bad_byte
from cogcli.specs.layers import HOST_FOLDER
from cogcli.specs.layout import Layout
from cogcli.specs.module_lookup import top_level_functions

SPEC_FOLDERS: Final = (*Layout.folders.values(), "policies")
MAX_ENTRIES: Final = 20_000
_MAX_SOURCE: Final = 1024 * 1024


def require_folder(path: str, label: str) -> str:
    """Return the absolute path of a directory. Raise UsageError if it is not a directory, or if no
    file can have its name.
    """
    full = os.path.abspath(path)
    if not os.path.isdir(full):
        fault = "is not a directory" if os.path.lexists(full) else "does not exist"
        raise UsageError("usage.value", f"{label}: `{path}` {fault}", expected="a directory")
    if bad_byte(full) or not full.isprintable():
        raise UsageError(
            "usage.value", f"{label}: its name has characters that no settings can hold"
        )
    return full


def has_specs(root: str) -> bool:
    """Return whether a directory contains a folder of specs."""
    return any(os.path.isdir(os.path.join(root, name)) for name in SPEC_FOLDERS)


def find_outward_links(root: str) -> list[str]:
    """Return the sorted links, in the spec folders and host overrides of a directory, that lead out
    of it. No link is followed.

    Raise UsageError for a directory with too many entries.
    """
    inside, seen = os.path.realpath(root).rstrip(os.sep) + os.sep, 0
    found: list[str] = []
    for top in (*SPEC_FOLDERS, HOST_FOLDER):
        start = os.path.join(root, top)
        places = [(root, [top])] if os.path.islink(start) else []
        for above, folders, names in os.walk(start):
            places.append((above, [*folders, *names]))
            seen += len(folders) + len(names)
            if seen > MAX_ENTRIES:
                message = f"`{start}` holds more than {MAX_ENTRIES:,} files and folders"
                raise UsageError(
                    "usage.value", message, hint="name the folder that holds the specs alone"
                )
        paths = (os.path.join(above, name) for above, entries in places for name in entries)
        found += [path for path in paths if _leads_out(path, inside)]
    return sorted(found)


def _leads_out(path: str, root: str) -> bool:
    return os.path.islink(path) and not os.path.realpath(path).startswith(root)


def find_source(root: str, module: str) -> str | None:
    """Return the source file of a module below a root, or None."""
    place = os.path.join(root, *module.split("."))
    inside = os.path.realpath(root).rstrip(os.sep) + os.sep
    for path in (f"{place}.py", os.path.join(place, "__init__.py")):
        if os.path.isfile(path) and os.path.realpath(path).startswith(inside):
            return path
    return None


def functions_in(path: str) -> frozenset[str] | None:
    """Return the top-level functions of a source file, without importing it; None if it cannot be
    read or parsed.
    """
    try:
        return top_level_functions(read_regular(path, limit=_MAX_SOURCE))
    except UnreadableFile:
        return None


def has_package(root: str, package: str) -> bool:
    """Return whether a root contains a top-level package or module of this name."""
    return any(os.path.exists(os.path.join(root, name)) for name in (package, f"{package}.py"))


def is_installed(package: str) -> bool:
    """Return whether a package is installed on this machine. It is not imported."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
