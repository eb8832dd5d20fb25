"""Trust in a project (docs/reference/service.md#trust): as it was accepted, file by file, or the folder
whatever it holds.

The store is beside the user's configuration, never in the project: no file of a project can widen trust.
"""

from __future__ import annotations

import os
import time
from hashlib import sha256

import orjson

from cogcli.app.settings.config import PROJECT_FILE, ConfigFile
from cogcli.app.settings.user_dirs import cache_home, config_home
from cogcli.core.errors import EnvironmentRefusal
from cogcli.core.files import Alone, FileRefused, hint_for_write, read_regular, write_atomic
from cogcli.specs.host_layout import layout_of
from cogcli.specs.layers import HOST, HOST_FOLDER, PROJECT, Layer, distinct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from cogcli.app.settings.trust_digests import FoundPaths

SCHEMA: Final = "cogcli.trust/2"
VARIABLE: Final = "COGCLI_TRUST_PROJECT"
_LIMIT: Final = 64 * 1024 * 1024
_MOST_NAMED: Final = 10
"""How many changed files an error names; `config show` lists all."""
_SMALL: Final = 256 * 1024
"""Up to so many bytes are read anew each time: that is as fast as looking whether they need to be."""
_SETTLED: Final = 2_000_000_000
"""How many nanoseconds ago a file must have changed for its times to tell its next change."""


WORDS: Final = {
    "none": "no project",
    "untrusted": "not trusted",
    "accepted": "by digest",
    "changed": "not as it was trusted",
    "outdated": "trusted by its service files alone, which is no longer enough",
    "folder": "as a folder, whatever it holds",
    "environment": f"by {VARIABLE}",
}


class Trust:
    """What a project is trusted with now. `state` is one of `none` (no project), `untrusted`, `accepted` (by digest),
    `changed` (since it was accepted), `outdated` (accepted by an earlier version, by its service files alone), `folder`
    and `environment`; `changes` holds (`added`, `changed` or `removed`, the file or program)."""

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
        return self.state in ("accepted", "folder", "environment")

    def covers(self, root: str) -> bool:
        """Whether a registry root shares the trust: it was looked at when the project was accepted, or lies in the
        folder that is trusted."""
        if not self:
            return False
        place, roots = os.path.realpath(root), [os.path.realpath(layer.root) for layer in self._layers()]
        inside = any(place.startswith(one.rstrip(os.sep) + os.sep) for one in roots)
        return place in roots or (inside and self.state != "accepted")

    @property
    def distrust(self) -> str:
        """Why the project is not trusted, where there is more to say than that it is not."""
        if self.state == "outdated":
            return "the project was trusted by its service files alone, which is no longer enough"
        if self.state != "changed":
            return ""
        changed = [f"{what} {name}" for what, name in self.changes[:_MOST_NAMED]]
        if len(self.changes) > _MOST_NAMED:
            changed.append(f"{len(self.changes) - _MOST_NAMED} more (cogcli config show trust)")
        return f"the project is not as it was trusted ({', '.join(changed)})"


def store_path(environ: Mapping[str, str]) -> str:
    """The store: a file with the trusted projects and their digests."""
    return os.path.join(config_home(environ), "trust.json")


def layers_of(project: str, file: ConfigFile | None = None) -> list[Layer]:
    """The registry roots that share a project's trust: its own, its host overrides, those that its file names, and the
    registries beside its scenarios."""
    from cogcli.protocols import PROTOCOLS
    from cogcli.verification.scenario import REGISTRY, directory_of

    project = os.path.abspath(project)
    file = file or _settings_of(project)
    layers = [
        Layer(PROJECT, project, False),
        Layer(HOST, os.path.join(project, HOST_FOLDER), False, host=True),
    ]
    named = [os.path.abspath(root) for root in file.values.get("registry", ())]
    beside = [
        os.path.join(project, directory_of(protocol), REGISTRY)
        for protocol, row in PROTOCOLS.items()
        if row.rules
    ]
    layers += [Layer(root, root, False) for root in (*named, *beside)]
    return distinct(layer for layer in layers if os.path.isdir(layer.root))


def _settings_of(project: str) -> ConfigFile:
    path = os.path.join(os.path.abspath(project), PROJECT_FILE)
    return ConfigFile(path, path, project=True)


def trust_of(project: str, environ: Mapping[str, str], file: ConfigFile | None = None) -> Trust:
    """The present trust in a project. `file` is its configuration, if that has been read."""
    if environ.get(VARIABLE) == "1":
        return Trust("environment", layers=lambda: layers_of(project, file))
    entry = _read(environ).get(_key(project))
    if entry is None:
        return Trust("untrusted")
    if isinstance(entry, str):
        return Trust("outdated")
    if entry.get("folder") is True:
        return Trust("folder", layers=lambda: layers_of(project, file))
    return _compared(project, entry, file or _settings_of(project), environ)


def _compared(project: str, entry: dict[str, Any], file: ConfigFile, environ: Mapping[str, str]) -> Trust:
    """What differs from what was accepted. An entry that is damaged, or too much to look at, is a change, too."""
    from cogcli.app.settings.trust_digests import Needs, digests, find_files

    layers = layers_of(project, file)
    try:
        accepted: dict[str, str] = dict(entry["accepted"])
        modules = tuple((root, module) for root, module in entry["modules"])
        programs = tuple(
            (root, service, command, tuple(args), cwd, path, tuple(variables))
            for root, service, command, args, cwd, path, variables in entry["programs"]
        )
        needs = Needs(modules, programs, tuple(map(str, entry["documents"])))
        present = find_files(os.path.abspath(project), layers, needs, file, environ)
        if _is_remembered(project, accepted, present, environ):
            now = accepted
        else:
            begun = time.time_ns()
            now = digests(present)
            if now == accepted:
                _remember(project, accepted, present, begun, environ)
    except (KeyError, TypeError, ValueError):
        return Trust("changed", [("changed", "what is known of it")])
    except EnvironmentRefusal as error:
        return Trust("changed", [("added", error.message)])
    changes = [("removed", name) for name in accepted.keys() - now.keys()]
    changes += [("added", name) for name in now.keys() - accepted.keys()]
    changes += [("changed", name) for name in accepted.keys() & now.keys() if accepted[name] != now[name]]
    state = "changed" if changes else "accepted"
    in_order = sorted(changes, key=lambda change: (change[1], change[0]))
    return Trust(state, in_order, layers=lambda: layers, count=len(accepted))


# -- what need not be read again --------------------------------------------------------------------------------------
#
# Of a large project what was read is remembered by what the system says of each file: device, inode, mode, size, and
# when content and file were last changed. The last of these no program can set: a file that was written, replaced or
# linked anew has another one. Files that changed while they were read, or within two seconds before, are read again,
# since the next change could fall on the same tick. Systems that cannot say it (Windows) read each time.


def _is_remembered(
    project: str, accepted: dict[str, str], present: FoundPaths, environ: Mapping[str, str]
) -> bool:
    from cogcli.app.settings.trust_digests import identities

    try:
        known = read_regular(_memory(project, environ), limit=1024)
    except FileRefused:
        return False
    identity, _, _ = identities(present)
    return bool(identity) and known == _remembered(identity, accepted)


def _remember(
    project: str, accepted: dict[str, str], present: FoundPaths, begun: int, environ: Mapping[str, str]
) -> None:
    from cogcli.app.settings.trust_digests import identities

    identity, newest, size = identities(present)
    if not identity or size <= _SMALL or newest > begun - _SETTLED:
        return
    path = _memory(project, environ)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_atomic(path, _remembered(identity, accepted))
    except OSError:
        return  # it is read again next time


def _memory(project: str, environ: Mapping[str, str]) -> str:
    name = sha256(os.fsencode(os.path.realpath(project))).hexdigest()
    return os.path.join(cache_home(environ), "trust", name[:32])


def _remembered(identity: str, accepted: dict[str, str]) -> bytes:
    """A digest of the identity of the files and of the accepted digests."""
    content = repr((identity, sorted(accepted.items()))).encode("utf-8", "surrogateescape")
    return sha256(content).hexdigest().encode()


# -- the store --------------------------------------------------------------------------------------------------------


def accept(project: str, environ: Mapping[str, str]) -> dict[str, int]:
    """Trust a project as it is now; how many service files, bindings, modules, programs and settings tables that
    were.

    Raises EnvironmentRefusal `trust.size`, `env.disk`.
    """
    from cogcli.app.settings.trust_digests import digests, find_files, needs_of, service_files

    root, file = os.path.abspath(project), _settings_of(project)
    layers = layers_of(project, file)
    needs = needs_of(root, layers)
    present = find_files(root, layers, needs, file, environ)
    entry = {"accepted": digests(present), **needs._asdict()}
    _change(environ, lambda projects: {**projects, _key(project): entry})
    services = len(service_files(root, layers))
    bindings = sum(len(layout_of(layer).all("binding")) for layer in layers)
    return {
        "service file": services,
        "binding": bindings,
        "other file": max(0, len(present.files) - services - bindings),
        "program": len(present.programs),
        "settings table": len(present.tables),
    }


def accept_folder(project: str, environ: Mapping[str, str]) -> None:
    """Trust a project whatever it holds. Raises EnvironmentRefusal `env.disk`."""
    _change(environ, lambda projects: {**projects, _key(project): {"folder": True}})


def revoke(project: str, environ: Mapping[str, str]) -> bool:
    """End the trust; False if there was none. Raises EnvironmentRefusal `env.disk`."""
    before = _change(
        environ, lambda projects: {path: entry for path, entry in projects.items() if path != _key(project)}
    )
    return _key(project) in before


def _key(project: str) -> str:
    """The real path of a project, as text that is unique for this path."""
    path = os.path.realpath(project)
    return path if path.isprintable() and "\\" not in path else ascii(path)


def _read(environ: Mapping[str, str]) -> dict[str, Any]:
    """What is trusted, by project; of an earlier version one text each. A damaged store trusts nothing."""

    try:
        body = orjson.loads(read_regular(store_path(environ), limit=_LIMIT))
    except (FileRefused, ValueError):
        return {}
    projects = body.get("projects") if isinstance(body, dict) else None
    if not isinstance(projects, dict) or body.get("schema") not in (SCHEMA, "cogcli.trust/1"):
        return {}
    kinds = (str,) if body["schema"] != SCHEMA else (str, dict)
    return {path: entry for path, entry in projects.items() if isinstance(entry, kinds)}


def _change(environ: Mapping[str, str], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Change the store under a lock; returns its content before."""

    path = store_path(environ)
    folder = os.path.dirname(path)
    style = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with Alone(folder):
            before = _read(environ)
            after = change(before)
            if after != before:
                write_atomic(path, orjson.dumps({"schema": SCHEMA, "projects": after}, option=style))
    except OSError as error:
        raise EnvironmentRefusal(
            "env.disk", f"{path} cannot be written: {error.strerror}", hint=hint_for_write(error)
        ) from error
    return before
