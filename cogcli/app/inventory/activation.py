"""`bindings activate`: makes a binding the choice for a capability in `active_bindings.json`."""

from __future__ import annotations

import os

import orjson

from cogcli.app.inventory.explain import explain_choice
from cogcli.app.registry import open_registry, selection_options, writing_to
from cogcli.app.settings import Settings
from cogcli.app.settings.own_writes import Written, keep_trust
from cogcli.base.errors import UnusableEnvironment
from cogcli.base.files import FolderLock, UnreadableFile, read_regular, write_atomic
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.value_types import Json
from cogcli.specs.binding_chain import Selection, SelectionOptions
from cogcli.specs.catalog import Catalog
from cogcli.specs.checks import check
from cogcli.specs.host_layout import ACTIVE_FILE
from cogcli.specs.host_overrides import ActiveChoice
from cogcli.specs.layers import HOST_FOLDER
from cogcli.specs.selection import CANDIDATE, named_binding
from cogcli.specs.selection_errors import ineligible_error

_LIMIT = 256 * 1024
_WHOLE_FILES = ("active:", "overrides:", "services:")
"""Prefixes of host files in the catalog's list of broken files."""


class Activation(NamedTuple):
    """The result: the chosen binding, its file, whether the file was written, and the binding that
    was called before."""

    file: str
    written: bool
    capability_id: str
    binding_id: str
    before: str | None
    candidate: bool


def activate(settings: Settings, capability: str, binding: str) -> Activation:
    """Make a binding the active one of a capability, given by id or alias. If a check fails, nothing is written.

    Raise UnusableEnvironment `project.none` or `env.disk`, and CapabilityNotFoundError. Raise BindingResolutionError
    for a binding that is unknown or not callable, and ProblemsFound for problems of the binding or the file.
    """
    if settings.project is None:
        raise UnusableEnvironment(
            "project.none",
            "there is no project here",
            expected="cogcli.toml, skills/ or capabilities/ in this directory or above it",
            hint="start in a project with -C DIR",
        )
    catalog = open_registry(settings).reach_capability(capability)
    id = catalog.aliases.get(capability, capability)
    path = os.path.join(settings.project, HOST_FOLDER, ACTIVE_FILE)
    settings.require_inside(path)
    before = explain_choice(catalog, id, selection_options(settings)).body
    _require_usable_binding(
        catalog,
        id,
        ActiveChoice(binding, settings.display_path(path), id),
        selection_options(settings),
    )
    aliases = [alias for alias, target in catalog.aliases.items() if target == id]
    with keep_trust(settings) as note:
        written = _write_choice(path, id, aliases, binding, note, settings.bound)
    chain = before["chain"] if before["usable"] else ()
    return Activation(
        settings.display_path(path),
        written,
        id,
        binding,
        next((link["binding_id"] for link in chain if link["eligible"]), None),
        catalog.bindings[binding].channel == CANDIDATE,
    )


def _require_usable_binding(
    catalog: Catalog, capability: str, active: ActiveChoice, options: SelectionOptions
) -> None:
    """Raise an error if a host file is unreadable, or if the binding cannot be called or has
    problems.

    Problems of its fallbacks and of their services are included."""
    unreadable = {catalog.broken[key] for key in catalog.broken if key.startswith(_WHOLE_FILES)}
    if unreadable:
        raise ProblemsFound([p for p in catalog.problems if p.file in unreadable])
    active_then = {**catalog.host.active, capability: active}
    then = catalog._replace(host=catalog.host._replace(active=active_then))
    selection = named_binding(then, capability, options)
    if not selection.chain[0].eligible:
        raise ineligible_error(then, selection, options, proposed=True)
    called = _files_of_chain(catalog, selection)
    problems = check(then, options=options)
    found = [p for p in problems if p.severity == "E" or (p.severity == "R" and p.file in called)]
    if found:
        raise ProblemsFound(found)


def _files_of_chain(catalog: Catalog, selection: Selection) -> set[str]:
    """Return the files of all bindings of a chain, and of their services."""
    bindings = [catalog.bindings.get(link.binding_id) for link in selection.chain]
    services = [catalog.services.get(link.service_id or "") for link in selection.chain]
    return {spec.file for spec in (*bindings, *services) if spec}


def _write_choice(
    path: str, capability: str, aliases: list[str], binding: str, note: Written, bound: str
) -> bool:
    """Write the choice into the file and keep its other entries. Return False if the file already
    contains the choice."""
    folder = os.path.dirname(path)
    with writing_to(path):
        os.makedirs(folder, exist_ok=True)
        with FolderLock(folder):
            chosen, mode = _read_choices(path)
            if chosen.get(capability) == binding and not chosen.keys() & set(aliases):
                return False
            kept = {name: value for name, value in chosen.items() if name not in aliases}
            style = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
            data = orjson.dumps({**kept, capability: binding}, option=style)
            write_atomic(path, data, mode=mode, bound=bound)
            note(path, data)
    return True


def _read_choices(path: str) -> tuple[Json, int]:
    """Return the object in the file, including `x-` keys, and the mode of the file.

    An earlier check has reported any problem of the file."""
    try:
        chosen = loads(read_regular(path, limit=_LIMIT))
        mode = os.stat(path).st_mode & 0o777
    except UnreadableFile as refused:
        if refused.reason == "missing":
            return {}, 0o644
        raise UnusableEnvironment("env.disk", f"{path} {refused.message}") from refused
    except InvalidJson as refused:
        raise UnusableEnvironment("specs.invalid", f"{path}: {refused}") from refused
    if not isinstance(chosen, dict):
        raise UnusableEnvironment("specs.invalid", f"{path}: expected an object", hint="write {}")
    return chosen, mode
