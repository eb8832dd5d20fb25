"""Trust in a project (docs/reference/service.md#trust). A project is accepted by the digests of its
deciding files, or as a folder.

The store is in the directory of the user's configuration, never in the project, so that no file of
a project can extend the trust."""

from __future__ import annotations

import os
import time
from hashlib import sha256

import orjson

from cogcli.app.settings.config import PROJECT_FILE, ConfigFile
from cogcli.app.settings.trust_digests import compute_digests, digest_states, folder_name
from cogcli.app.settings.user_dirs import cache_home, config_home
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import FolderLock, UnreadableFile, hint_for_write, read_regular, write_atomic
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.specs.layers import HOST, HOST_FOLDER, PROJECT, Layer, distinct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Final

    from cogcli.app.settings.trust_digests import DecidingFiles

SCHEMA: Final = "cogcli.trust/3"
_OLDER: Final = ("cogcli.trust/1", "cogcli.trust/2")
VARIABLE: Final = "COGCLI_TRUST_PROJECT"
_LIMIT: Final = 64 * 1024 * 1024
_MAX_NAMED: Final = 10
"""The most changed files that an error names; `config show` lists all."""
_SETTLED: Final = 2_000_000_000
"""Nanoseconds since a file's last change after which its times reliably show the next change."""


WORDS: Final = {
    "none": "no project",
    "untrusted": "not trusted",
    "accepted": "by digest",
    "changed": "changed since it was accepted",
    "outdated": "accepted by an earlier version, which looked at fewer files",
    "folder": "as a folder, including later changes",
    "environment": f"by {VARIABLE}",
}


class Trust:
    """The current trust in a project.

    `state` is `none` (no project), `untrusted`, `accepted` (by digests), `changed` (since acceptance), `folder` or
    `environment`. It is `outdated` if an earlier version of the program, which checked fewer files, accepted the
    project. Each entry of `changes` is `added`, `changed` or `removed`, and the name of a file or program.
    """

    def __init__(
        self,
        state: str,
        changes: list[tuple[str, str]] | None = None,
        *,
        layers: Callable[[], list[Layer]] = list,
        count: int = 0,
    ) -> None:
        self.state = state
        self.changes = changes or []
        self.count = count
        self._layers = layers

    def __bool__(self) -> bool:
        """Return whether the project is trusted."""
        return self.state in ("accepted", "folder", "environment")

    def covers(self, root: str) -> bool:
        """Return whether the trust extends to a registry root, because the root was accepted with the
        project or is in the trusted folder."""
        if not self:
            return False
        place, roots = (
            os.path.realpath(root),
            [os.path.realpath(layer.root) for layer in self._layers()],
        )
        inside = any(place.startswith(one.rstrip(os.sep) + os.sep) for one in roots)
        return place in roots or (inside and self.state != "accepted")

    @property
    def distrust(self) -> str:
        """Return why a project that was accepted is not trusted; empty for any other project."""
        if self.state == "outdated":
            return "the project was accepted by an earlier version, which looked at fewer files"
        if self.state != "changed":
            return ""
        changed = [f"{what} {name}" for what, name in self.changes[:_MAX_NAMED]]
        if len(self.changes) > _MAX_NAMED:
            changed.append(f"{len(self.changes) - _MAX_NAMED} more (cogcli config show trust)")
        return f"the project has changed since it was accepted ({', '.join(changed)})"


def store_path(environ: Mapping[str, str]) -> str:
    """Return the path of the file with the trusted projects and their digests."""
    return os.path.join(config_home(environ), "trust.json")


def layers_of(project: str, file: ConfigFile | None = None) -> list[Layer]:
    """Return the registry roots to which a project's trust extends, each directory once."""
    return distinct(roots_of(project, file))


def roots_of(project: str, file: ConfigFile | None = None) -> list[Layer]:
    """Return the registry roots to which a project's trust extends, under all their names.

    They are the project, its host overrides, the roots in its settings file, and the registries of its scenarios. A
    root may be missing. If it appears later, or if a link to it gets a new target, the project has changed.
    """
    from cogcli.protocols import PROTOCOLS
    from cogcli.specs.scenario_folders import REGISTRY, directory_of

    project = os.path.abspath(project)
    file = file or settings_of(project)
    layers = [
        Layer(PROJECT, project, False),
        Layer(HOST, os.path.join(project, HOST_FOLDER), False, host=True),
    ]
    named = [os.path.abspath(root) for root in file.registry]
    beside = [
        os.path.join(project, directory_of(protocol), REGISTRY)
        for protocol, row in PROTOCOLS.items()
        if row.rules
    ]
    return [*layers, *(Layer(root, root, False) for root in (*named, *beside))]


def settings_of(project: str) -> ConfigFile:
    """Return the configuration in a project's file."""
    path = os.path.join(os.path.abspath(project), PROJECT_FILE)
    return ConfigFile(path, path, project=True)


def trust_of(project: str, environ: Mapping[str, str], file: ConfigFile | None = None) -> Trust:
    """Return the current trust in a project. `file` is its configuration, if that has been read."""

    def layers() -> list[Layer]:
        return layers_of(project, file)

    if environ.get(VARIABLE) == "1":
        return Trust("environment", layers=layers)
    entry = read_store(environ).get(key_of(project))
    if entry is None:
        return Trust("untrusted")
    if isinstance(entry, str):
        return Trust("outdated")
    if read_record(TrustEntry, entry).folder:
        return Trust("folder", layers=layers)
    try:
        accepted, changes = _compare_with_accepted(project, entry, file, environ)
    except (KeyError, TypeError, ValueError):
        return Trust("changed", [("changed", "the record of what was accepted")])
    except UnusableEnvironment as error:
        return Trust("changed", [("added", error.message)])
    return Trust("changed" if changes else "accepted", changes, layers=layers, count=len(accepted))


def _compare_with_accepted(
    project: str, entry: Json, file: ConfigFile | None, environ: Mapping[str, str]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the accepted digests, and the changes of the project since then.

    Raise KeyError, TypeError or ValueError for a damaged entry, and UnusableEnvironment
    `trust.size`."""
    accepted = dict(entry["accepted"])
    begun = time.time_ns()
    if not entry["programs"] and _is_cached(project, accepted, None, environ):
        return accepted, []
    from cogcli.app.settings.trust_needs import ServiceRequirements, find_files, find_programs

    root, needs = os.path.abspath(project), ServiceRequirements.from_entry(entry)
    programs = find_programs(root, needs, environ) if needs.programs else None
    if programs is not None and _is_cached(project, accepted, programs, environ):
        return accepted, []
    found = find_files(root, roots_of(root, file), needs)
    watched = {*found.folders, *found.files.values()}
    if programs is not None:
        found.add_all(programs)
    changes = changes_between(accepted, compute_digests(found))
    if not changes:
        _cache_match(project, accepted, watched, programs, begun, environ)
    return accepted, changes


def changes_between(old: Mapping[str, str], new: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the added, changed and removed names."""
    changes = [("removed", name) for name in old.keys() - new.keys()]
    changes += [("added", name) for name in new.keys() - old.keys()]
    changes += [("changed", name) for name in old.keys() & new.keys() if old[name] != new[name]]
    return sorted(changes, key=lambda change: (change[1], change[0]))


# -- files that need not be read again --------------------------------------------------------------------------------
#
# The cache holds the paths of all files and folders that decide, and a digest over device, inode, mode, size and times
# of each. One of the times no program can set: that of the last change, which every write, replacement and new link
# moves. A folder's time moves with each name in it. Anything that changed during the reading, or within two seconds
# before it, is read again, since the next change could fall on the same tick. Windows keeps no such time: there every
# file is read each time.


def _is_cached(
    project: str,
    accepted_digests: dict[str, str],
    programs: DecidingFiles | None,
    environ: Mapping[str, str],
) -> bool:
    """Return whether the cache records that the present files match the accepted digests."""
    try:
        known = read_regular(trust_cache_path(project, environ), limit=_LIMIT)
    except UnreadableFile:
        return False
    key, _, paths = known.decode("utf-8", "surrogateescape").partition("\n")
    identity, _ = _digest_states(set(paths.split("\0")), programs)
    return bool(identity) and key == _digest_key(identity, accepted_digests, programs)


def _cache_match(
    project: str,
    accepted_digests: dict[str, str],
    watched_files: set[str],
    programs: DecidingFiles | None,
    started_at: int,
    environ: Mapping[str, str],
) -> None:
    """Record in the cache that the present files match the accepted digests.

    Nothing is recorded if a file changed too recently: its next change might not change its
    time."""
    identity, newest = _digest_states(watched_files, programs)
    if not identity or newest > started_at - _SETTLED:
        return
    text = f"{_digest_key(identity, accepted_digests, programs)}\n" + "\0".join(
        sorted(watched_files)
    )
    path = trust_cache_path(project, environ)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomic(path, text.encode("utf-8", "surrogateescape"))
    except OSError:
        return  # it is read again next time


def _digest_states(watched_files: set[str], programs: DecidingFiles | None) -> tuple[str, int]:
    """Return a digest over the state of all watched files, and the time of the newest change."""
    files = () if programs is None else (*programs.folders, *programs.files.values())
    return digest_states({*watched_files, *files})


def _digest_key(
    identity: str, accepted_digests: dict[str, str], programs: DecidingFiles | None
) -> str:
    """Return a digest of the state of the files, the paths of the programs and the accepted
    digests."""
    facts = sorted(programs.facts.items()) if programs is not None else []
    content = repr((identity, facts, sorted(accepted_digests.items()))).encode(
        "utf-8", "surrogateescape"
    )
    return sha256(content).hexdigest()


def trust_cache_path(project: str, environ: Mapping[str, str]) -> str:
    """Return the path of the project's trust file in the user's cache."""
    return os.path.join(cache_home(environ), "trust", folder_name(project))


# -- the store --------------------------------------------------------------------------------------------------------


def key_of(project: str) -> str:
    """Return the key of a project in the store: its real path as unique text."""
    path = os.path.realpath(project)
    return path if path.isprintable() and "\\" not in path else ascii(path)


def read_store(environ: Mapping[str, str]) -> Json:
    """Return the trusted projects. A damaged store contains none.

    A project that was accepted by digests under an older schema has the name of that schema as its
    entry. A trusted folder has the same entry in every schema, because its trust does not depend on
    files."""
    try:
        body = orjson.loads(read_regular(store_path(environ), limit=_LIMIT))
    except (UnreadableFile, ValueError):
        return {}
    store = read_record(TrustStore, body)
    if store.schema not in (SCHEMA, *_OLDER):
        return {}
    if store.schema == SCHEMA:
        return store.projects
    return _convert_old_entries(store.projects, store.schema)


class TrustStore(Record):
    """The file of the trusted projects. An entry is a TrustEntry, or the name of an older schema."""

    schema: str
    projects: dict[str, str | Json]


class TrustEntry(Record):
    """The accepted state of a project."""

    folder: bool = False
    """Whether the folder is trusted, not its files."""
    accepted: Json | None = None
    """The digests of the accepted files by name."""


def _convert_old_entries(entries: Json, schema: str) -> Json:
    """Convert the entries of an older schema.

    An entry becomes the name of the schema, unless it is a trusted folder."""
    return {path: entry if entry == {"folder": True} else schema for path, entry in entries.items()}


def change_store(environ: Mapping[str, str], change: Callable[[Json], Json]) -> Json:
    """Change the store under a lock, and return its previous content.

    Raise UnusableEnvironment `env.disk`."""

    path = store_path(environ)
    folder = os.path.dirname(path)
    style = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with FolderLock(folder):
            before = read_store(environ)
            after = change(before)
            if after != before:
                write_atomic(
                    path, orjson.dumps({"schema": SCHEMA, "projects": after}, option=style)
                )
    except OSError as error:
        raise UnusableEnvironment(
            "env.disk", f"{path} cannot be written: {error.strerror}", hint=hint_for_write(error)
        ) from error
    return before
